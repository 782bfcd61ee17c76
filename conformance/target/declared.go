package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
)

// probeRest tries what is declared beside what goes on behind the scenes, and
// beside the addresses, which are tried where they are read.
func (t *Target) probeRest(ctx context.Context) {
	can := t.file.Can
	t.older = t.protocol == HTTP2 && t.speak(ctx, HTTP1) == ""
	t.probeHolds(ctx)
	if can.HTTP2 || t.protocol == HTTP2 {
		why := t.untrue[contract.NeedUpload] // which it takes as well
		if t.protocol == HTTP1 {             // else it would not have opened
			if silent := t.speak(ctx, HTTP2); silent != "" {
				why = "can.http2: " + silent
			}
		}
		if why != "" {
			t.disbelieve(contract.NeedHTTP2, why)
		}
	}
	if can.Metrics != nil && !t.vouched(contract.NeedMetrics) {
		if _, err := t.Meters(ctx); err != nil {
			t.disbelieve(contract.NeedMetrics, "can.metrics: "+strings.TrimPrefix(err.Error(), ErrAway.Error()+": "))
		}
	}
	if t.addresses.proxy != nil && !t.vouched(contract.NeedProxy) {
		if why := t.probeProxy(ctx); why != "" {
			t.addresses.proxy = nil
			t.disbelieve(contract.NeedProxy, "can.proxy: "+why)
		}
	}
	if can.Process != nil {
		if strings.Contains(can.Process.Command[0], "{") {
			return // its name is made when it is started
		}
		if _, err := findProgram(t.file.folder, can.Process.Command[0]); err != nil {
			t.disbelieve(contract.NeedProcess, "can.process.command: "+err.Error())
		}
	}
}

// probeHolds tries what is declared to keep a request in flight. The slow operation
// is tried where nothing else does: it takes its time.
func (t *Target) probeHolds(ctx context.Context) {
	var untrue []string
	if t.file.Can.StalledUpload {
		var why string
		t.stalls, why = t.saysContinueLate(ctx)
		if t.stalls && t.protocol == HTTP2 {
			t.stalls, why = t.saysContinue(ctx)
		}
		if !t.stalls && (t.behindHas(contract.NeedGates) || !t.holdsUnseen(ctx)) {
			untrue = append(untrue, "can.stalled-upload: "+why)
			t.disbelieve(contract.NeedUpload, untrue[0])
		}
	}
	if t.file.Operations.Slow != nil && !t.Has(contract.NeedHold) {
		why := t.takesItsTime(ctx)
		if t.works = why == ""; !t.works {
			untrue = append(untrue, "operations.slow: "+why)
		}
	}
	if len(untrue) > 0 && !t.Has(contract.NeedHold) {
		t.disbelieve(contract.NeedHold, strings.Join(untrue, "; "))
	}
}

// vouched reports whether whoever opened the target knows a declaration to be so.
func (t *Target) vouched(n contract.Need) bool { return slices.Contains(t.options.Vouched, n) }

// speak asks every base URL for something in a protocol; empty: all answer.
func (t *Target) speak(ctx context.Context, in Protocol) string {
	within, cancel := context.WithTimeout(ctx, t.patience.first())
	defer cancel()
	path := "/"
	if len(t.file.OutsideQuotas) > 0 {
		path = t.file.OutsideQuotas[0]
	}
	for _, base := range t.bases {
		c, err := dial(within, base, t.trust, netip.Addr{}, t.patience, in)
		if err == nil {
			err = t.greet(c, base, path, in)
			c.Close()
		}
		if err != nil {
			return fmt.Sprintf("%s does not speak it", base)
		}
	}
	return ""
}

// probeProxy sends wrong keys for more clients than one of them alone might try:
// where the hop is believed each of them has a pool of its own.
func (t *Target) probeProxy(ctx context.Context) string {
	const most = 50 // where an address may try more, this would take too long
	if t.addresses.policy.Burst > most {
		return ""
	}
	for range t.addresses.policy.Burst + 2 {
		client, err := t.NewClient(false)
		if err != nil {
			return err.Error()
		}
		r := t.Valid()
		r.From, r.Authorization = client, []string{t.Credential(t.WrongKey())}
		within, cancel := context.WithTimeout(ctx, t.patience.answer())
		e := t.Attempt(within, r)
		cancel()
		switch {
		case e.Err != nil:
			return fmt.Sprintf("%s: an attempt by way of it got no answer", t.addresses.proxy.from)
		case e.Status == http.StatusTooManyRequests:
			return fmt.Sprintf("clients that %s names in %s share one pool: it is not believed", t.addresses.proxy.from, t.addresses.proxy.header)
		}
	}
	return ""
}

// saysContinueLate reports whether 100 Continue can be a witness: a request that
// does not authenticate must not get it. Where a proxy or a framework says it to
// everybody, a stalled upload shows nothing.
func (t *Target) saysContinueLate(ctx context.Context) (late bool, why string) {
	const silent = "a request that was to show it got no answer"
	within, cancel := context.WithTimeout(ctx, t.patience.dial())
	defer cancel()
	r := t.Valid()
	r.Authorization = []string{t.Credential("brimline-asks-whether-100-continue-comes-early")}
	f := t.prepare(within, nil, r, true, t.protocol)
	if f.conn == nil {
		return false, silent
	}
	f.leave(0)
	early := false
	a, err := f.conn.read(f.t.time.atMost, func(status int) {
		if status == http.StatusContinue {
			early = true
			f.conn.reset()
		}
	})
	f.conn.Close()
	f.take(a, err)
	switch {
	case early:
		t.budget.giveBack() // it was cut short, and could not have authenticated
		return false, "100 Continue comes to everybody, so that half a body shows nothing"
	case err != nil:
		return false, silent
	}
	return true, ""
}

// saysContinue reports whether 100 Continue comes at all, once half a body may be
// sent: many a proxy has no word of it in HTTP/2.
func (t *Target) saysContinue(ctx context.Context) (said bool, why string) {
	ctx, cancel := context.WithTimeout(ctx, t.patience.first())
	defer cancel()
	for _, plan := range t.Plans() {
		u, err := t.Lease(ctx, plan, 1)
		if err != nil {
			continue
		}
		defer t.Return(context.WithoutCancel(ctx), u)
		h, e := t.Hold(ctx, u, t.Valid(), PlaceUpload)
		switch {
		case h != nil:
			h.Drop()
			return true, ""
		case errors.Is(e.Err, ErrNoWitness):
			return false, "100 Continue never comes over HTTP/2, so that half a body shows nothing"
		}
	}
	return true, ""
}
