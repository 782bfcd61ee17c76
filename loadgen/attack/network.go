package attack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// newNetwork is net/http's transport, set up to send what it is told and nothing
// else. It counts the connections that it opens.
func newNetwork(workers int, trust *tls.Config, opened *atomic.Int64) *http.Transport {
	dialer := &net.Dialer{Timeout: Timeout, KeepAlive: 15 * time.Second}
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
