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

	"golang.org/x/net/http2"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/lean"
	"github.com/invoicespec/brimline/reports/record"
)

// network is what requests go over, unless an attack is given something else.
type network struct {
	http.RoundTripper
	name   string       // for the record
	opened func() int64 // connections
	close  func()       // those that are kept
}

// newNetwork chooses by the target: HTTP/1.1 in the clear goes over a round
// tripper of ours, TLS and HTTP/2 over net/http's.
func newNetwork(c Config, workers int) network {
	if c.Transport != nil {
		return network{patient{c.Transport}, "", func() int64 { return 0 }, func() {}}
	}
	places := map[netip.Addr]bool{{}: true} // that requests come from
	for _, m := range c.Members {
		if m.From != nil {
			places[m.From.From] = true
		}
	}
	if c.Site.plain() {
		t := &lean.Transport{Connections: workers + len(places)*len(c.Site.BaseURLs)}
		return network{t, record.TransportLean, t.Opened, t.CloseIdleConnections}
	}
	all, opened := standard{}, new(atomic.Int64)
	for place := range places {
		all[place] = newTransport(workers, place, c.Site, opened)
	}
	name := record.TransportHTTP1
	if c.Site.Protocol == target.HTTP2 {
		name = record.TransportHTTP2
	}
	return network{patient{all}, name, opened.Load, all.CloseIdleConnections}
}

// standard is net/http's transports: one for each address that requests come from.
type standard map[netip.Addr]*http.Transport

// RoundTrip sends a request from where it is to come from.
func (s standard) RoundTrip(r *http.Request) (*http.Response, error) {
	address, _ := r.Context().Value(lean.From{}).(netip.Addr)
	return s[address].RoundTrip(r)
}

// CloseIdleConnections closes those that are kept.
func (s standard) CloseIdleConnections() {
	for _, t := range s {
		t.CloseIdleConnections()
	}
}

// patient enforces the deadline of a request's context on a round tripper that
// only looks at the context's end, as net/http's does.
type patient struct{ http.RoundTripper }

func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline, _ := r.Context().Deadline()
	ctx, cancel := context.WithDeadline(r.Context(), deadline)
	resp, err := p.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = within{resp.Body, cancel}
	return resp, nil
}

// within is a body that is read within a context.
type within struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (w within) Close() error {
	defer w.cancel()
	return w.ReadCloser.Close()
}

// newTransport is net/http's, set up to send what it is told and nothing else. It
// counts the connections that it opens.
func newTransport(workers int, from netip.Addr, site Site, opened *atomic.Int64) *http.Transport {
	dialer := &net.Dialer{Timeout: Timeout, KeepAlive: 15 * time.Second}
	if from.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	spoken, h2 := new(http.Protocols), site.Protocol == target.HTTP2
	spoken.SetHTTP1(!h2)
	spoken.SetHTTP2(h2)
	spoken.SetUnencryptedHTTP2(h2)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err == nil {
				opened.Add(1)
			}
			return c, err
		},
		TLSClientConfig:        site.TLS,
		Protocols:              spoken,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    workers,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// kind names an error without quoting it: texts of errors hold addresses, and
// would make a kind of their own each.
func (t *transport) kind(err error) string {
	var network net.Error
	var op *net.OpError
	var unknown x509.UnknownAuthorityError
	var verify *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var alert tls.AlertError
	var stream http2.StreamError
	switch {
	case t.requests.Err() != nil:
		return "cut off" // by the end of the run
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.As(err, &verify), errors.As(err, &unknown), errors.As(err, &header), errors.As(err, &alert):
		return "tls"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return record.ErrorNoDescriptor
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return record.ErrorNoPort
	case errors.As(err, &op) && op.Op == "dial":
		return "connect"
	case errors.Is(err, lean.ErrStale):
		return "stale connection" // a kept one that the server closed as the request came
	case errors.Is(err, errTooLong):
		return "body too long"
	case errors.As(err, &stream), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed"
	}
	return "other"
}
