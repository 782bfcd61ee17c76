package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// reach makes sure that something answers at every base URL, and soon.
func (t *Target) reach(ctx context.Context, patience time.Duration) error {
	for _, base := range t.bases {
		began := time.Now()
		if err := t.reachOne(ctx, base, patience); err != nil {
			return err
		}
		t.far = max(t.far, time.Since(began))
	}
	return nil
}

func (t *Target) reachOne(ctx context.Context, base *url.URL, patience time.Duration) error {
	within, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w: %s does not answer within %s", ErrAway, base, patience))
	defer cancel()
	c, err := dial(within, base, t.trust, netip.Addr{}, t.patience, t.protocol)
	if err == nil {
		if len(t.file.OutsideQuotas) > 0 {
			err = t.greet(c, base, t.file.OutsideQuotas[0], t.protocol)
		}
		c.Close()
	}
	if errors.Is(err, errNotSpoken) && ctx.Err() == nil {
		return t.file.naming("protocol", fmt.Errorf("%w: %s does not speak HTTP/2; accepted: a server that does, or %q", ErrUntrue, base, string(HTTP1)))
	}
	if err != nil && within.Err() != nil {
		return context.Cause(within) // whatever broke off, this is why
	}
	return err
}

func (t *Target) greet(c conversation, base *url.URL, path string, in Protocol) error {
	m, err := compose(base, Request{Method: get, Path: path}, nil, t.agent, false, in)
	var a answer
	if err == nil {
		c.ask(m, 0)
		a, err = c.read(func() int64 { return 0 }, func(int) {})
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s%s: %w", ErrAway, base, path, err)
	case a.status == http.StatusBadGateway || a.status == http.StatusServiceUnavailable || a.status == http.StatusGatewayTimeout:
		return fmt.Errorf("%w: %s%s answers %d", ErrAway, base, path, a.status)
	}
	return nil
}
