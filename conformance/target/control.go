package target

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// maxControlBody bounds an answer: an audit may hold 10,000 entries.
const maxControlBody = 32 << 20

const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	remove = http.MethodDelete
)

// ControlError is a refusal by the control server, or by a command in its place:
// nothing was changed.
type ControlError struct {
	Request string // method and path; of a command, where it stands in the target file
	Status  int    // of the answer; 0: a command said so
	Code    string // of a command: how it ended
	Message string
}

func (e *ControlError) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("%s: %s: %s", e.Request, e.Code, e.Message)
	}
	return fmt.Sprintf("control: %s: %d %s: %s", e.Request, e.Status, e.Code, e.Message)
}

// Is lets errors.Is(err, ErrUnsupported) see what the server says it lacks.
func (e *ControlError) Is(err error) bool {
	return err == ErrUnsupported && e.Status == http.StatusNotFound && e.Code == control.CodeUnsupported
}

func refused(err error) bool {
	var e *ControlError
	return errors.As(err, &e) && e.Status < http.StatusInternalServerError
}

func unsupported(f control.Feature) error { return fmt.Errorf("%w: %s", ErrUnsupported, f) }

// controller speaks the control protocol. Its transport repeats nothing that
// moves the clock or creates a user: those are POST.
type controller struct {
	base   string
	token  Secret
	agent  string
	client *http.Client

	server   string
	features []control.Feature
	clock    control.ClockMode
}

// openControl asks the control server what it can do, and makes sure that it
// says no to what nobody can.
func openControl(ctx context.Context, base string, token Secret, trust *tls.Config, agent string, within time.Duration) (*controller, error) {
	c := &controller{base: strings.TrimSuffix(base, "/") + control.Prefix, token: token, agent: agent, client: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, TLSClientConfig: trust.Clone()},
		Timeout:       within,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if err := c.learn(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *controller) learn(ctx context.Context) error {
	var can control.Capabilities
	if err := c.call(ctx, get, "", nil, &can); err != nil {
		return err
	}
	if can.Protocol != 1 {
		return fmt.Errorf("control: %s speaks version %d of the protocol; accepted: 1", c.base, can.Protocol)
	}
	c.server, c.features, c.clock = can.Server, can.Features, can.Clock
	switch c.clock {
	case control.ClockReal:
	case control.ClockShifted, control.ClockFrozen:
		if !c.has(control.FeatureClock) {
			return fmt.Errorf("control: %s has a %s clock and no way to move it; accepted: feature %q as well", c.base, c.clock, control.FeatureClock)
		}
	default:
		return fmt.Errorf("control: %s has a clock of mode %q; accepted: real, shifted, frozen", c.base, c.clock)
	}
	// A server that says yes to everything would make every answer worthless.
	const impossible = "/time-travel/yesterday"
	if err := c.call(ctx, get, impossible, nil, nil); !errors.Is(err, ErrUnsupported) {
		if err == nil || refused(err) {
			return fmt.Errorf("control: %s does not say %q of a feature that does not exist (%s)", c.base, control.CodeUnsupported, impossible)
		}
		return err
	}
	return nil
}

func (c *controller) has(f control.Feature) bool { return slices.Contains(c.features, f) }

func (c *controller) can(a action) bool {
	r, _ := routeOf(a)
	return c.has(r.feature)
}

func (c *controller) name(a action) string { return "can.control: " + string(a) }

func (c *controller) close() { c.client.CloseIdleConnections() }

func (c *controller) do(ctx context.Context, x call, answer any) error {
	r, _ := routeOf(x.action)
	path := r.path
	for name, value := range x.in {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	return c.call(ctx, r.method, path, x.body, answer)
}

// call makes one call: body and answer may be nil. A refusal is a
// [*ControlError]; anything else that goes wrong wraps [ErrAway].
func (c *controller) call(ctx context.Context, method, path string, body, answer any) error {
	var r io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	req.Header.Set("User-Agent", c.agent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: control: %w", ErrAway, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxControlBody+1))
	if err == nil && len(data) > maxControlBody {
		err = fmt.Errorf("more than %d bytes", maxControlBody)
	}
	if err != nil {
		return fmt.Errorf("%w: control: read the answer to %s %s: %w", ErrAway, method, path, err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		e := &ControlError{Request: method + " " + control.Prefix + path, Status: resp.StatusCode}
		var said control.Error
		if json.Unmarshal(data, &said) == nil {
			e.Code, e.Message = said.Code, said.Message
		}
		return e
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("control: the answer to %s %s: %w", method, path, err)
	}
	return nil
}

// feature fails where what a feature takes is not all there.
func (t *Target) feature(f control.Feature) error {
	if !t.behind.has(f) {
		return unsupported(f)
	}
	return nil
}

// Server is what the control server calls itself; empty without one.
func (t *Target) Server() string {
	for _, m := range t.behind.means {
		if c, ok := m.(*controller); ok {
			return c.server
		}
	}
	return ""
}
