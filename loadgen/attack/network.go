package attack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reports/record"
)

// from is the key of a request's context under which stands the address that it
// is to come from.
type from struct{}

// network is net/http's transports: one for whatever this machine sends from, and
// one for each address that members want to come from.
type network map[netip.Addr]*http.Transport

func newNetwork(workers int, members []traffic.Member, trust *tls.Config, opened *atomic.Int64) network {
	n := network{netip.Addr{}: newTransport(workers, netip.Addr{}, trust, opened)}
	for _, m := range members {
		if m.From != nil && n[m.From.From] == nil {
			n[m.From.From] = newTransport(workers, m.From.From, trust, opened)
		}
	}
	return n
}

// RoundTrip sends a request from where it is to come from.
func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	address, _ := r.Context().Value(from{}).(netip.Addr)
	return n[address].RoundTrip(r)
}

// CloseIdleConnections closes those that are kept.
func (n network) CloseIdleConnections() {
	for _, t := range n {
		t.CloseIdleConnections()
	}
}

// newTransport is net/http's, set up to send what it is told and nothing else. It
// counts the connections that it opens.
func newTransport(workers int, from netip.Addr, trust *tls.Config, opened *atomic.Int64) *http.Transport {
	dialer := &net.Dialer{Timeout: Timeout, KeepAlive: 15 * time.Second}
	if from.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	h1 := new(http.Protocols)
	h1.SetHTTP1(true)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err == nil {
				opened.Add(1)
			}
			return c, err
		},
		TLSClientConfig:        trust,
		Protocols:              h1,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    workers,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// kind names an error without quoting it: texts of errors hold addresses, and
// would make a kind of their own each.
func (t *transport) kind(ctx context.Context, err error) string {
	var network net.Error
	var op *net.OpError
	var unknown x509.UnknownAuthorityError
	var verify *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case t.requests.Err() != nil:
		return "cut off" // by the end of the run
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.As(err, &verify), errors.As(err, &unknown), errors.As(err, &header), errors.As(err, &alert):
		return "tls"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return record.ErrorNoDescriptor
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return record.ErrorNoPort
	case errors.As(err, &op) && op.Op == "dial":
		return "connect"
	case errors.Is(err, errTooLong):
		return "body too long"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed"
	}
	return "other"
}
