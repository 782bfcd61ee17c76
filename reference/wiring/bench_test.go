package wiring_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/store/memory"
)

// BenchmarkRequest is one request through the whole chain, without the network:
// admitted with a line to calculate, and rejected by the bucket.
func BenchmarkRequest(b *testing.B) {
	plans := map[string]policy.Plan{"free": {Name: "free", Operations: 1 << 40, Entitlements: map[policy.Dimension]string{
		policy.RequestsPerMinute: "1", policy.Burst: "1", policy.Concurrency: "100000",
	}}}
	for _, name := range []string{"admitted", "rejected"} {
		b.Run(name, func(b *testing.B) {
			store := memory.New(plans, clock.NewReal())
			user, keys, err := store.CreateUser(b.Context(), "free", 1)
			require.NoError(b, err)
			p := parts(plans)
			p.Accounts, p.Ledger, p.Digest = store, store, store.Digest
			want := http.StatusTooManyRequests
			if name == "admitted" {
				want = http.StatusOK
				require.NoError(b, store.SetOverride(b.Context(), user,
					policy.Override{Dimension: policy.Burst, Value: "1000000"}, account.Note{Author: "a", Reason: "b"}))
				// A minute passes with each request, so the bucket is never empty.
				frozen := clock.NewFrozen(time.Now())
				p.Clock, p.Limiter = frozen, limiter.NewLocal(frozen, limiter.Config{})
			}
			h := p.Handler()
			once := func() int {
				if m, ok := p.Clock.(clock.Movable); ok {
					m.Advance(time.Minute)
				}
				r := httptest.NewRequest(http.MethodPost, "/v1/invoice/calculate", strings.NewReader(
					`{"currency":"EUR","lines":[{"description":"x","quantity":1,"unitPrice":"9.99","taxRate":19}]}`))
				r.Header.Set("Authorization", "Bearer "+keys[0].Reveal())
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w.Code
			}
			once()
			b.ReportAllocs()
			for b.Loop() {
				if got := once(); got != want {
					b.Fatalf("got %d, want %d", got, want)
				}
			}
		})
	}
}
