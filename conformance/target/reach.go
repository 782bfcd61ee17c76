package target

import (
	"context"
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
	c, err := dial(within, base, t.trust, netip.Addr{}, t.patience)
	if err == nil {
		if len(t.file.OutsideQuotas) > 0 {
			err = t.greet(c, base, t.file.OutsideQuotas[0])
		}
		c.Close()
	}
	if err != nil && within.Err() != nil {
		return context.Cause(within) // whatever broke off, this is why
	}
	return err
}

func (t *Target) greet(c *conversation, base *url.URL, path string) error {
	m, err := compose(base, Request{Method: get, Path: path}, nil, t.agent, false)
	if err != nil {
		return err
	}
	var a answer
	if _, err = c.Write(m.head); err == nil {
		a, err = c.read(get, func() int64 { return 0 }, func(int) {})
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s%s: %w", ErrAway, base, path, err)
	case a.status == http.StatusBadGateway || a.status == http.StatusServiceUnavailable || a.status == http.StatusGatewayTimeout:
		return fmt.Errorf("%w: %s%s answers %d", ErrAway, base, path, a.status)
	}
	return nil
}
