package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/loadgen/metrics"
)

// metricsAddr is a flag: where to serve metrics. Only a host that is named is
// listened on; a port alone is this machine's own.
type metricsAddr string

func (a *metricsAddr) Set(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil || port == "" {
		return errors.New("accepted: a port such as :9102, on this machine alone, or an address with one such as 127.0.0.1:9102")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	*a = metricsAddr(net.JoinHostPort(host, port))
	return nil
}

func (a *metricsAddr) String() string { return string(*a) }
func (a *metricsAddr) Type() string   { return "ADDR" }

// serve serves a run's figures until its end is called; with no address it does
// nothing.
func (a metricsAddr) serve(w io.Writer, m *measure.Meter) (end func(), err error) {
	if a == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", string(a))
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(m))
	s := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // until it is shut down
	}()
	fmt.Fprintf(w, "metrics: http://%s/metrics\n", l.Addr())
	return func() {
		// A page that is being written may end.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			_ = s.Close()
		}
		<-done
	}, nil
}
