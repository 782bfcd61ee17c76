package target_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

const invoice = `{"currency":"EUR","lines":[{"description":"x","quantity":"1","unitPrice":"1.00","taxRate":"19"}]}`

// reference starts the reference server and describes it. Its free plan has room
// for requests whose permit comes back a moment after their answer.
func reference(t *testing.T, mode control.ClockMode, users int) (*server.Server, target.File) {
	t.Helper()
	plans := server.DefaultPlans()
	plans["free"].Entitlements[policy.Concurrency] = "50"
	s, err := server.Open(context.Background(), server.Config{
		Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Clock: mode, Users: users, Plans: plans, Transport: server.Transport{H2C: true},
		Alter: func(p *wiring.Parts) { p.Bounds.Engine = 200 * time.Millisecond },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	f := fileFor(s.URL())
	f.Operations.Valid.Body = invoice
	f.OutsideQuotas = []string{"/health"}
	f.Can.StalledUpload, f.Can.HTTP2 = true, s.HTTP2()
	f.Can.Control = &target.ControlAddress{URL: s.ControlURL()}
	for name := range s.Plans() {
		eff, err := policy.Resolve(s.Plans(), policy.Subscription{Plan: name}, nil, time.Time{})
		require.NoError(t, err)
		f.Allowances[name] = target.Allowance{RequestsPerMinute: eff.Allowance.RequestsPerMinute(), Burst: eff.Allowance.Burst(), Concurrency: eff.Allowance.Concurrency()}
	}
	return s, f
}

func openReference(t *testing.T, mode control.ClockMode) *target.Target {
	t.Helper()
	s, f := reference(t, mode, 0)
	tg, err := target.Open(t.Context(), f, target.Options{ControlToken: target.NewSecret(s.ControlToken())})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tg.Close()) })
	return tg
}

// openWithKeys is openReference for users of a keys file; the target's control
// cannot make users.
func openWithKeys(t *testing.T, users int) *target.Target {
	t.Helper()
	s, f := reference(t, control.ClockShifted, users)
	var keys []target.Key
	for _, u := range s.Users() {
		for _, k := range u.Keys {
			keys = append(keys, target.Key{User: u.ID, Plan: u.Plan, Secret: target.NewSecret(k.Reveal())})
		}
	}
	f.Can.Control = nil
	tg, err := target.Open(t.Context(), f, target.Options{Keys: keys})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tg.Close()) })
	return tg
}

// innocent is an exchange that a correct server must give.
func innocent(t *testing.T, e target.Exchange, status int, code string) {
	t.Helper()
	require.NoError(t, e.Err)
	require.Empty(t, e.Findings)
	require.Equal(t, status, e.Status, "%s", e.Body)
	require.Equal(t, code, e.Answer.Body.ErrorCode.Value)
}

func TestTheReferenceOnEveryClock(t *testing.T) {
	for _, mode := range []control.ClockMode{control.ClockReal, control.ClockShifted, control.ClockFrozen} {
		t.Run(string(mode), func(t *testing.T) {
			tg := openReference(t, mode)
			require.Equal(t, mode, tg.Clock())
			require.Equal(t, mode != control.ClockReal, tg.Movable())
			require.Equal(t, mode != control.ClockReal, tg.Has(contract.NeedClock))
			require.Contains(t, tg.Server(), "brimline")
			require.Contains(t, tg.Describe(), "users as needed on 5 plans  clock: "+string(mode)+"  can: audit")

			u := lease(t, tg, "free", 2)
			for range 10 {
				innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
			}
			invalid, ok := tg.Invalid()
			require.True(t, ok)
			innocent(t, tg.Send(t.Context(), u, invalid), 429, contract.CodeRateLimited)
			if mode == control.ClockReal {
				return
			}
			// To the microsecond where the clock stands still.
			require.NoError(t, tg.Wait(t.Context(), time.Duration(u.Bucket.WaitFor(1))*time.Microsecond))
			e := tg.Send(t.Context(), u, invalid)
			innocent(t, e, 422, contract.CodeValidationFailed)
			if mode == control.ClockFrozen {
				require.Equal(t, e.Span.From, e.Span.To)
				require.Zero(t, u.Bucket.Width())
				short, ok := u.Bucket.ShortOf(1)
				require.True(t, ok)
				require.NoError(t, tg.Advance(t.Context(), time.Duration(short)*time.Microsecond))
				innocent(t, tg.Send(t.Context(), u, tg.Valid()), 429, contract.CodeRateLimited)
			}
			// A date set back changes nothing for the bucket.
			before, err := tg.Now(t.Context())
			require.NoError(t, err)
			require.NoError(t, tg.Advance(t.Context(), -time.Hour))
			after, err := tg.Now(t.Context())
			require.NoError(t, err)
			require.Negative(t, after.Sub(before))
			innocent(t, tg.Send(t.Context(), u, tg.Valid()), 429, contract.CodeRateLimited)

			asked, err := tg.Rest(t.Context(), u)
			require.NoError(t, err)
			require.Empty(t, asked.Method, "its level is known")
			e = tg.Send(t.Context(), u, tg.Valid())
			innocent(t, e, 200, "")
			require.Equal(t, int64(9), e.Answer.Remaining.Value)
		})
	}
}

func TestWaitingOnARealClock(t *testing.T) {
	tg := openReference(t, control.ClockReal)
	u := lease(t, tg, "pro", 1) // a token each 200 ms
	for {
		e := tg.Send(t.Context(), u, tg.Valid())
		require.NoError(t, e.Err)
		require.Empty(t, e.Findings)
		if e.Status == 429 {
			break
		}
	}
	require.NoError(t, tg.Wait(t.Context(), time.Duration(u.Bucket.WaitFor(1))*time.Microsecond))
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, tg.Wait(ctx, time.Hour), context.Canceled)
}

func TestRestOfAUserOfUnknownPast(t *testing.T) {
	tg := openWithKeys(t, 1)
	require.False(t, tg.Movable())
	u := lease(t, tg, "pro", 2)
	require.Equal(t, 100*oracle.Token, u.Bucket.Width())
	asked, err := tg.Rest(t.Context(), u)
	require.NoError(t, err)
	innocent(t, asked, 200, "")
	for range 100 {
		innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
	}
}

func TestSimultaneousRequests(t *testing.T) {
	tg := openReference(t, control.ClockReal)
	u := lease(t, tg, "free", 1)
	es, findings := tg.SendTogether(t.Context(), u, slices.Repeat([]target.Request{tg.Valid()}, 16))
	require.Empty(t, findings)
	got := map[string]int{}
	for _, e := range es {
		require.NoError(t, e.Err)
		got[e.Answer.Body.ErrorCode.Value]++
	}
	require.Equal(t, 6, got[contract.CodeRateLimited], "%v", got)
}

func TestPolicies(t *testing.T) {
	tg := openReference(t, control.ClockFrozen)
	u := lease(t, tg, "free", 1)
	for range 5 {
		innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
	}
	require.NoError(t, tg.SetPlan(t.Context(), u, "pro"))
	e := tg.Send(t.Context(), u, tg.Valid())
	innocent(t, e, 200, "")
	require.Equal(t, int64(49), e.Answer.Remaining.Value, "half of it is there")
	require.NoError(t, tg.SetOverride(t.Context(), u, target.Burst, target.Override{Value: 10}))
	require.NoError(t, tg.SetOverride(t.Context(), u, target.RequestsPerMinute, target.Override{Value: 1}))
	e = tg.Send(t.Context(), u, tg.Valid())
	innocent(t, e, 200, "")
	require.Equal(t, int64(10), e.Answer.Limit.Value)
	require.NoError(t, tg.SetOverride(t.Context(), u, target.Concurrency, target.Override{Value: 30}))
	require.NoError(t, tg.EndOverride(t.Context(), u, target.Burst))
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
	require.Equal(t, oracle.Allowance{RequestsPerMinute: 1, Burst: 100, Concurrency: 30}, u.Bucket.Allowance())

	var refused *target.ControlError
	require.ErrorAs(t, tg.SetOverride(t.Context(), u, target.Burst, target.Override{Value: 0}), &refused)
	require.Equal(t, 422, refused.Status)
	require.ErrorAs(t, tg.SetOverride(t.Context(), u, "depth", target.Override{Value: 1}), &refused)
	require.Error(t, tg.SetPlan(t.Context(), u, "gold"))
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")

	require.NoError(t, tg.SetOperations(t.Context(), u, 0))
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 402, contract.CodeCapacityExhausted)
}

func TestKeysComeAndGo(t *testing.T) {
	tg := openReference(t, control.ClockFrozen)
	u := lease(t, tg, "free", 1)
	require.NoError(t, tg.AddKey(t.Context(), u))
	require.Equal(t, 2, u.Keys())
	r := tg.Valid()
	r.Key = 1
	innocent(t, tg.Send(t.Context(), u, r), 200, "")
	require.NoError(t, tg.RevokeKey(t.Context(), u, 1))
	innocent(t, tg.SendApart(t.Context(), u, r), 401, contract.CodeUnauthenticated)
	require.Error(t, tg.RevokeKey(t.Context(), u, 2))
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
}

func TestAudits(t *testing.T) {
	tg := openReference(t, control.ClockFrozen)
	u := lease(t, tg, "free", 1)
	e := tg.Send(t.Context(), u, tg.Valid())
	innocent(t, e, 200, "")
	one := func(a control.Audit) bool { return len(a.Entries) == 1 && a.Charges == 1 }
	a, err := tg.Audit(t.Context(), e.Answer.RequestID.Value, one)
	require.NoError(t, err)
	require.True(t, one(a), "%+v", a)
	require.Equal(t, int64(1), a.EngineCalls)
	require.False(t, u.Secret(0).In(a.Entries[0].Raw))
	a, err = tg.UserAudit(t.Context(), u, one)
	require.NoError(t, err)
	require.True(t, one(a))

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = tg.Audit(ctx, "made-up", func(control.Audit) bool { return false })
	require.ErrorIs(t, err, context.DeadlineExceeded, "it looks again")
}

func TestReturnLeavesNothingBehind(t *testing.T) {
	s, f := reference(t, control.ClockFrozen, 1)
	var keys []target.Key
	for _, u := range s.Users() {
		if u.Plan == "free" {
			keys = append(keys, target.Key{User: u.ID, Plan: u.Plan, Secret: target.NewSecret(u.Keys[0].Reveal())})
		}
	}
	// A control server that has everything but a way to make users.
	f.Can.Control.URL = withoutUsers(t, s.ControlURL())
	tg, err := target.Open(t.Context(), f, target.Options{Keys: keys, ControlToken: target.NewSecret(s.ControlToken())})
	require.NoError(t, err)
	defer tg.Close()
	require.Equal(t, []string{"free"}, tg.Plans())
	require.False(t, tg.Has(contract.NeedPolicy))

	u, err := tg.Lease(t.Context(), "free", 1)
	require.NoError(t, err)
	_, err = tg.Rest(t.Context(), u)
	require.NoError(t, err)
	_, e := tg.Hold(t.Context(), u, tg.Valid(), target.PlaceEngine)
	require.NoError(t, e.Err)
	require.NoError(t, tg.SetPlan(t.Context(), u, "pro"))
	require.NoError(t, tg.SetOverride(t.Context(), u, target.Burst, target.Override{Value: 3}))
	require.NoError(t, tg.SetEngine(t.Context(), u, control.EngineFail))
	require.NoError(t, tg.Return(t.Context(), u))

	again, err := tg.Lease(t.Context(), "free", 1)
	require.NoError(t, err)
	require.Equal(t, u.ID, again.ID)
	innocent(t, tg.Send(t.Context(), again, tg.Valid()), 200, "")
	require.Equal(t, oracle.Allowance{RequestsPerMinute: 10, Burst: 10, Concurrency: 50}, again.Bucket.Allowance())

	// What cannot be put back ends a user's use.
	require.NoError(t, tg.SetOperations(t.Context(), again, 5))
	require.NoError(t, tg.Return(t.Context(), again))
	_, err = tg.Lease(t.Context(), "free", 1)
	require.ErrorIs(t, err, target.ErrNoUser)
}

// withoutUsers stands before a control server and hides that it can make users.
func withoutUsers(t *testing.T, url string) string {
	t.Helper()
	front := proxy(t, url, func(path string, body string) string {
		if path == control.Prefix {
			body = strings.Replace(body, `"users",`, "", 1)
		}
		return body
	})
	return front
}

func TestAMoveThatMayHaveHappened(t *testing.T) {
	s, f := reference(t, control.ClockFrozen, 0)
	cut := false
	f.Can.Control.URL = proxy(t, s.ControlURL(), func(path, body string) string {
		if cut && strings.HasSuffix(path, "/clock/advance") {
			panic(http.ErrAbortHandler)
		}
		return body
	})
	tg, err := target.Open(t.Context(), f, target.Options{ControlToken: target.NewSecret(s.ControlToken())})
	require.NoError(t, err)
	defer tg.Close()
	u := lease(t, tg, "free", 1)
	var refused *target.ControlError
	require.ErrorAs(t, tg.Advance(t.Context(), 290*365*24*time.Hour), &refused)
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
	cut = true
	require.ErrorIs(t, tg.Advance(t.Context(), time.Second), target.ErrAway)
	require.ErrorIs(t, tg.Send(t.Context(), u, tg.Valid()).Err, target.ErrTimeline)
	require.ErrorIs(t, tg.Advance(t.Context(), time.Second), target.ErrTimeline)
}
