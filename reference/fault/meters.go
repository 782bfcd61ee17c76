package fault

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

func meterFaults() []Fault {
	const decisions, duration, size, pressure = "_decisions_total", "_decision_duration_seconds", "_cache_size", "_cache_eviction_pressure"
	const rejected, anonymous = `outcome="rejected"`, `reason="anonymous"`
	return []Fault{
		{"metric-misnamed", "METRIC-1", "the decisions are counted under another name", sampled(renamed(decisions, "_requests_total"))},
		{"metric-page-is-json", "METRIC-1", "the page of metrics is JSON", sampled(func(line string) string {
			return strings.Replace(line, "# HELP", "{", 1)
		})},
		{"metric-kind-wrong", "METRIC-1", "the count of starts calls itself a gauge", sampled(func(line string) string {
			return strings.Replace(line, "_startup_total counter", "_startup_total gauge", 1)
		})},
		{"metric-startup-missing", "METRIC-1", "starts are not on the page", sampled(dropped("_startup_total"))},
		{"metric-duration-missing", "METRIC-1", "the durations of decisions are not on the page", sampled(dropped(duration))},
		{"metric-duration-of-admissions", "METRIC-1", "rejections have no duration", sampled(dropped(duration, rejected))},
		{"metric-cache-size-missing", "METRIC-1", "the size of the caches is not on the page", sampled(dropped(size))},
		{"metric-cache-size-zero", "METRIC-1", "the size of the caches is always 0", sampled(valueOf(size, "0"))},
		{"metric-cache-size-negative", "METRIC-1", "the size of the buckets' cache is negative", sampled(valueOf(size, "-1"))},
		{"metric-bulkheads-missing", "METRIC-1", "the bulkheads' cache is not on the page", sampled(dropped(`cache="bulkheads"`))},
		{"metric-pressure-zero", "METRIC-1", "the pressure of the caches is always 0", sampled(valueOf(pressure, "0"))},
		{"metric-pressure-is-size", "METRIC-1", "the pressure of the caches is a size, not a share", sampled(valueOf(pressure, "1000"))},
		{"metric-outcome-swapped", "METRIC-1", "admissions are counted as rejections, and these as admissions", sampled(swapped("admitted", "rejected"))},
		{"metric-limiter-swapped", "METRIC-1", "what one limiter decides is counted for the other", sampled(swapped(`limiter="rate"`, `limiter="concurrency"`))},
		{"metric-rejections-missing", "METRIC-1", "a rejection for the rate is not counted", counting(func(m httpapi.Meters) httpapi.Meters {
			return deafTo{m, admission.RateRejected}
		})},
		{"metric-cap-missing", "METRIC-1", "a rejection for the cap is not counted", counting(func(m httpapi.Meters) httpapi.Meters {
			return deafTo{m, admission.ConcurrencyRejected}
		})},
		{"metric-counted-twice", "METRIC-1", "a decision is counted twice", counting(func(m httpapi.Meters) httpapi.Meters { return twiceMetered{m} })},
		{"metric-rate-is-burst", "METRIC-1", "decisions are counted under the burst of the plan", beforeLimit(func(x *httpapi.Exchange) {
			x.PlanRate = x.Effective.Allowance.Burst() + 1
		})},
		{"metric-anonymous-missing", "METRIC-1", "decisions before authentication are not counted", sampled(dropped(anonymous))},
		{"metric-anonymous-as-user", "METRIC-1", "decisions before authentication are counted as those on users", sampled(func(line string) string {
			if openOf(line) == "" {
				return line
			}
			return strings.Replace(line, anonymous, `reason=""`, 1)
		})},
		{"metric-configuration-missing", "METRIC-1", "configuration failures are not counted", counting(func(m httpapi.Meters) httpapi.Meters { return unfailing{m} })},
		{"metric-configuration-reason", "METRIC-1", "every configuration failure is counted as malformed", counting(func(m httpapi.Meters) httpapi.Meters { return malforming{m} })},
		{"metric-configuration-decided", "METRIC-1", "a configuration failure is counted as a decision as well", counting(func(m httpapi.Meters) httpapi.Meters { return deciding{m} })},

		{"metric-user-label", "METRIC-2", "a user's id is a label", labelled(func(_ *http.Request, x *httpapi.Exchange) string { return label("user", x.Account.User) })},
		{"metric-ip-label", "METRIC-2", "a client's address is a label", labelled(func(r *http.Request, _ *httpapi.Exchange) string { return label("client", r.RemoteAddr) })},
		{"metric-path-label", "METRIC-2", "a path is a label", labelled(func(r *http.Request, _ *httpapi.Exchange) string { return label("path", r.URL.Path) })},
		{"metric-user-as-reason", "METRIC-2", "the reason of a decision is whom it is about", reasoned(func(_ *http.Request, x *httpapi.Exchange) string { return "of " + x.Account.User })},
		{"metric-path-as-reason", "METRIC-2", "the reason of a decision is the path that was asked for", reasoned(func(r *http.Request, _ *httpapi.Exchange) string { return r.URL.Path })},
		{"metric-negotiated-rate", "METRIC-2", "decisions are counted under the user's own rate, also where that is negotiated", beforeLimit(func(x *httpapi.Exchange) {
			x.PlanRate = x.Effective.Allowance.RequestsPerMinute()
		})},
		{"metric-series-per-user", "METRIC-2", "each user has a series of their own, under a number", sampledWithUsers()},
	}
}

// sampled changes the page of metrics line by line; an empty line is dropped.
func sampled(change func(line string) string) alteration {
	return func(p *wiring.Parts) {
		page := p.Metrics
		p.Metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kept := &keptWriter{ResponseWriter: w, status: http.StatusOK}
			page.ServeHTTP(kept, r)
			var b strings.Builder
			for line := range strings.Lines(kept.body.String()) {
				b.WriteString(change(line))
			}
			w.Header().Del("Content-Length")
			w.WriteHeader(kept.status)
			io.WriteString(w, b.String())
		})
	}
}

func renamed(from, to string) func(string) string {
	return func(line string) string { return strings.ReplaceAll(line, from, to) }
}

// swapped exchanges two words.
func swapped(a, b string) func(string) string {
	return func(line string) string { return strings.NewReplacer(a, b, b, a).Replace(line) }
}

// dropped drops the lines in which all of these are.
func dropped(parts ...string) func(string) string {
	return func(line string) string {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				return line
			}
		}
		return ""
	}
}

// valueOf changes the value of a meter's samples.
func valueOf(name, value string) func(string) string {
	return func(line string) string {
		if !strings.HasPrefix(line, "invoicespec_rate_limit"+name) {
			return line
		}
		return line[:strings.LastIndexByte(line, ' ')+1] + value + "\n"
	}
}

// counting changes what is counted.
func counting(change func(httpapi.Meters) httpapi.Meters) alteration {
	return func(p *wiring.Parts) { p.Meters = change(p.Meters) }
}

// deafTo does not hear of one outcome.
type deafTo struct {
	httpapi.Meters
	outcome admission.Outcome
}

func (m deafTo) Decided(rate int64, o admission.Outcome, took time.Duration) {
	if o != m.outcome {
		m.Meters.Decided(rate, o, took)
	}
}

type twiceMetered struct{ httpapi.Meters }

func (m twiceMetered) Decided(rate int64, o admission.Outcome, took time.Duration) {
	m.Meters.Decided(rate, o, took)
	m.Meters.Decided(rate, o, took)
}

type unfailing struct{ httpapi.Meters }

func (unfailing) ConfigurationFailed(policy.Reason) {}

type malforming struct{ httpapi.Meters }

func (m malforming) ConfigurationFailed(policy.Reason) {
	m.Meters.ConfigurationFailed(policy.Malformed)
}

type deciding struct{ httpapi.Meters }

func (m deciding) ConfigurationFailed(r policy.Reason) {
	m.Meters.ConfigurationFailed(r)
	m.Meters.Decided(0, admission.RateRejected, 0)
}

// beforeLimit changes what is known of a request before it is decided on.
func beforeLimit(change func(x *httpapi.Exchange)) alteration {
	return before(httpapi.LinkLimit, func(_ *httpapi.Ports, next http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			change(httpapi.From(r.Context()))
			next.ServeHTTP(w, r)
		}
	})
}

func label(name, value string) string { return fmt.Sprintf("%s=%q,", name, value) }

var openBrace = regexp.MustCompile(`^(invoicespec_rate_limit_decisions_total\{)`)

// labelled puts a label of the latest request into the decisions' samples.
func labelled(of func(*http.Request, *httpapi.Exchange) string) alteration {
	return latest(of, func(line, label string) string { return openBrace.ReplaceAllLiteralString(line, openOf(line)+label) })
}

// openOf is how a sample of the decisions begins; empty: it is none.
func openOf(line string) string { return openBrace.FindString(line) }

// reasoned makes what a request says the reason of the decisions.
func reasoned(of func(*http.Request, *httpapi.Exchange) string) alteration {
	return latest(of, func(line, reason string) string {
		if openOf(line) == "" {
			return line
		}
		return strings.Replace(line, `reason=""`, fmt.Sprintf("reason=%q", reason), 1)
	})
}

// latest changes the page by what the latest request was; before the first one it
// is as it should be.
func latest(of func(*http.Request, *httpapi.Exchange) string, change func(line, said string) string) alteration {
	return func(p *wiring.Parts) {
		var said atomic.Pointer[string]
		before(httpapi.LinkLimit, func(_ *httpapi.Ports, next http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				text := of(r, httpapi.From(r.Context()))
				said.Store(&text)
				next.ServeHTTP(w, r)
			}
		})(p)
		sampled(func(line string) string {
			if text := said.Load(); text != nil {
				return change(line, *text)
			}
			return line
		})(p)
	}
}

// sampledWithUsers adds a sample for each user there was a decision on.
func sampledWithUsers() alteration {
	return func(p *wiring.Parts) {
		users := newNotes[bool]()
		decisions(func(_ context.Context, _ *wiring.Parts, x *httpapi.Exchange, _ *limiter.Decision) {
			users.change(x.Account.User, func(bool) bool { return true })
		})(p)
		sampled(func(line string) string {
			if !strings.HasPrefix(line, "# TYPE invoicespec_rate_limit_decisions_total") {
				return line
			}
			for i := range users.count() {
				line += fmt.Sprintf("invoicespec_rate_limit_decisions_total{limiter=\"rate\",outcome=\"admitted\",reason=\"\",requests_per_minute=\"%d\"} 1\n", 1_000_000+i)
			}
			return line
		})(p)
	}
}
