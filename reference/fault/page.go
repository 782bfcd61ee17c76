package fault

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/dashboard"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

func pageFaults() []Fault {
	const own, plans = "negotiated", "plan default"
	saying := func(from, to string) alteration {
		return sources(func(source string, _ account.Note) string { return strings.ReplaceAll(source, from, to) })
	}
	return []Fault{
		{"page-shows-plan-values", "BILL-1", "the billing page shows what the plan has, whatever was negotiated",
			billing(func(string, *account.Billing) []policy.Override { return nil })},
		{"page-hides-negotiation", "BILL-1", "the billing page calls a negotiated value the plan's", saying(own, plans)},
		{"page-calls-all-negotiated", "BILL-1", "the billing page calls every value negotiated", saying(plans, own)},
		{"page-keeps-ended-value", "BILL-1", "the billing page still shows a negotiated value that was ended", keepsEnded()},
		{"page-shows-reason", "BILL-1", "the billing page says why a value was negotiated",
			sources(func(source string, by account.Note) string { return source + "<p>" + by.Reason })},
		{"page-hides-author-in-source", "BILL-1", "the billing page's source says who negotiated a value",
			sources(func(source string, by account.Note) string { return source + "<!-- " + by.Author + " -->" })},
	}
}

// sources changes the source of the billing page, knowing the note of the latest
// override.
func sources(change func(source string, by account.Note) string) alteration {
	return func(p *wiring.Parts) {
		var latest notedStore
		operating(func(s wiring.Operator) wiring.Operator { latest.Operator = s; return &latest })(p)
		page := p.Outside[dashboard.BillingPath]
		p.Outside[dashboard.BillingPath] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kept := &keptWriter{ResponseWriter: w, status: http.StatusOK}
			page.ServeHTTP(kept, r)
			source := kept.body.String()
			if kept.status == http.StatusOK {
				source = change(source, latest.note())
			}
			w.Header().Del("Content-Length")
			w.WriteHeader(kept.status)
			w.Write([]byte(source))
		})
	}
}

// keptWriter keeps an answer instead of sending it.
type keptWriter struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *keptWriter) WriteHeader(status int)      { w.status = status }
func (w *keptWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

type notedStore struct {
	wiring.Operator
	mu sync.Mutex
	by account.Note
}

func (s *notedStore) SetOverride(ctx context.Context, user string, o policy.Override, by account.Note) error {
	s.mu.Lock()
	s.by = by
	s.mu.Unlock()
	return s.Operator.SetOverride(ctx, user, o, by)
}

func (s *notedStore) note() account.Note {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by
}

// billing shows other overrides than a user has where nothing is decided by them.
func billing(overrides func(user string, b *account.Billing) []policy.Override) alteration {
	return operating(func(s wiring.Operator) wiring.Operator { return billedStore{s, overrides} })
}

type billedStore struct {
	wiring.Operator
	overrides func(user string, b *account.Billing) []policy.Override
}

func (s billedStore) Billing(ctx context.Context, user string) (account.Billing, error) {
	b, err := s.Operator.Billing(ctx, user)
	b.Overrides = s.overrides(user, &b)
	return b, err
}

func keepsEnded() alteration {
	return func(p *wiring.Parts) {
		set := newNotes[[]policy.Override]()
		operating(func(s wiring.Operator) wiring.Operator { return keepingStore{s, set} })(p)
		billing(func(user string, b *account.Billing) []policy.Override {
			kept := set.change(user, func(old []policy.Override) []policy.Override { return old })
			if len(b.Overrides) > 0 {
				return b.Overrides
			}
			return kept
		})(p)
	}
}

// keepingStore remembers the override that a user was last given.
type keepingStore struct {
	wiring.Operator
	set *notes[[]policy.Override]
}

func (s keepingStore) SetOverride(ctx context.Context, user string, o policy.Override, by account.Note) error {
	s.set.change(user, func([]policy.Override) []policy.Override { return []policy.Override{o} })
	return s.Operator.SetOverride(ctx, user, o, by)
}
