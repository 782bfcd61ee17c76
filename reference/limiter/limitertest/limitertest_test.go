package limitertest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter/limitertest"
)

// openOn puts a composition on a clock that stands still unless a test moves it.
func openOn(change func(*composed)) func(testing.TB) limitertest.Harness {
	return func(testing.TB) limitertest.Harness {
		c := clock.NewFrozen(time.Unix(0, 0))
		l := newComposed(c)
		change(l)
		return limitertest.Harness{Limiter: l, Instant: c.Instant, Advance: c.Advance}
	}
}

func TestRightCompositionPasses(t *testing.T) {
	limitertest.Run(t, openOn(func(*composed) {}))
}

// A test that has never failed may be unable to: every wrong limiter is found
// out by the cases that are about its fault, and every case finds one out.
func TestWrongLimitersAreFoundOut(t *testing.T) {
	notYet := map[string]bool{}
	for _, name := range limitertest.Cases() {
		notYet[name] = true
	}
	for _, wrong := range wrongLimiters {
		t.Run(wrong.name, func(t *testing.T) {
			found := map[string]string{}
			for _, f := range limitertest.Check(t, openOn(wrong.change)) {
				found[f.Case] = f.What.Error()
				delete(notYet, f.Case)
			}
			for _, name := range wrong.by {
				require.Contains(t, found, name)
				t.Log(found[name])
			}
		})
	}
	require.Empty(t, notYet, "cases that no wrong limiter fails")
}

func TestFindingNamesItsCase(t *testing.T) {
	findings := limitertest.Check(t, openOn(func(l *composed) {
		l.release = func(context.Context, string, string) error { return fmt.Errorf("the store is away") }
	}))
	require.NotEmpty(t, findings)
	require.Equal(t, "RATE-1 a full bucket admits its burst: release: the store is away", findings[0].String())
}
