package steps

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/invoicespec/brimline/conformance/target"
)

// closed are the values of the labels that have a fixed set of them.
func closed() map[string][]string {
	return map[string][]string{
		labelLimiter: {"", "rate", "concurrency"},
		labelOutcome: {"", "admitted", "rejected"},
		labelCache:   {"", cacheBuckets, cacheBulkheads},
		labelReason:  nil, // whatever says nothing of anybody
		labelRate:    nil,
		"le":         nil,
	}
}

func (s *Scenario) labelsAreClosed() error {
	for _, m := range s.meters {
		if !strings.HasPrefix(m.Name, meters) {
			continue // not the limiter's
		}
		for label, value := range m.Labels {
			values, known := closed()[label]
			switch {
			case !known:
				return s.wrongMeter(m.Name, m.Labels, "no label beside "+strings.Join(slices.Sorted(maps.Keys(closed())), ", "), label)
			case values != nil && !slices.Contains(values, value):
				return s.wrongMeter(m.Name, m.Labels, label+" of "+strings.Join(values[1:], " or "), s.short(value))
			case s.identifies(value):
				return s.wrongMeter(m.Name, m.Labels, "no value that says who asked, from where or for what", label+"="+s.short(value))
			}
		}
	}
	if got, n := sum(s.meters, meterDecisions, labels{labelRate: strconv.FormatInt(telling(target.RequestsPerMinute), 10)}); n > 0 {
		return s.wrongMeter(meterDecisions, labels{labelRate: "a negotiated one"}, "the plan's rate", fmt.Sprintf("%v under the user's own", got))
	}
	return s.verdict()
}

// identifies reports whether a label's value holds a user, an address, a key or a
// path.
func (s *Scenario) identifies(value string) bool {
	if _, err := netip.ParseAddr(value); err == nil || strings.Contains(value, "/") || strings.Contains(value, strangeClient) {
		return true
	}
	for _, u := range append(slices.Clone(s.they), s.other) {
		if u == nil {
			continue
		}
		if value == u.ID || len(u.ID) >= 6 && strings.Contains(value, u.ID) {
			return true
		}
		for k := range u.Keys() {
			if u.Secret(k).In(value) {
				return true
			}
		}
	}
	return false
}

// strangeClient is an address that a client of ours claims to have.
const strangeClient = "203.0.113.77"

// othersDoTheSame lets more users of the same plan do what the first one did, on
// paths and from addresses of their own.
func (s *Scenario) othersDoTheSame(ctx context.Context) error {
	first := s.user()
	const more = 3
	for range more {
		u, err := s.lease(ctx, first.Plan, 1)
		if err != nil {
			if len(s.they) > 1 {
				break // as many as there are
			}
			return err
		}
		s.they = append(s.they, u)
		if _, err := s.drain(ctx, u, s.Valid()); err != nil {
			return err
		}
		r := s.Valid()
		r.Path = s.Scope().Below("of-" + u.ID)
		r.Header = r.Header.Clone()
		if r.Header == nil {
			r.Header = map[string][]string{}
		}
		r.Header.Set(target.XForwardedFor, strangeClient)
		if _, err := s.send(ctx, u, r); err != nil {
			return err
		}
		r.Header, r.Authorization = nil, []string{s.Credential(s.madeUp())}
		if _, err := s.try(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scenario) seriesAreTheSame(ctx context.Context) error {
	count := func(all []target.Meter) int {
		return len(slices.DeleteFunc(slices.Clone(all), func(m target.Meter) bool {
			// The first rejection of an attempt may make a series, which is no user's.
			return !strings.HasPrefix(m.Name, meters) || m.Labels[labelReason] == anonymousReason
		}))
	}
	before := count(s.meters)
	if err := s.readMeters(ctx); err != nil {
		return err
	}
	if now := count(s.meters); now != before && s.Alone() {
		return s.wrongMeter(meters+"…", nil, fmt.Sprintf("%d series", before), fmt.Sprintf("%d series", now))
	}
	return s.verdict()
}
