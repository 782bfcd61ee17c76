package target_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

// expiring sets an override of the burst that expires after d.
func expiring(t *testing.T, tg *target.Target, u *target.User, value int64, d time.Duration) {
	t.Helper()
	now, err := tg.Now(t.Context())
	require.NoError(t, err)
	require.NoError(t, tg.SetOverride(t.Context(), u, target.Burst, target.Override{Value: value, Expires: now.Add(d)}))
}

func TestTheOracleFollowsWhatChangesByItself(t *testing.T) {
	for _, mode := range []control.ClockMode{control.ClockFrozen, control.ClockShifted} {
		t.Run(string(mode), func(t *testing.T) {
			tg := openReference(t, mode)
			u := lease(t, tg, "free", 1)
			expiring(t, tg, u, 20, time.Hour)
			e := tg.Send(t.Context(), u, tg.Valid())
			innocent(t, e, 200, "")
			require.EqualValues(t, 20, e.Answer.Limit.Value)

			before, after, ok := tg.Until(u)
			require.True(t, ok)
			require.Less(t, before, after)
			require.NoError(t, tg.Wait(t.Context(), before))
			e = tg.Send(t.Context(), u, tg.Valid())
			innocent(t, e, 200, "")
			require.EqualValues(t, 20, e.Answer.Limit.Value)
			_, after, _ = tg.Until(u)
			require.NoError(t, tg.Wait(t.Context(), after))
			tg.CatchUp(u)
			require.EqualValues(t, 10, u.Bucket.Allowance().Burst)
			e = tg.Send(t.Context(), u, tg.Valid())
			innocent(t, e, 200, "")
			require.EqualValues(t, 10, e.Answer.Limit.Value)
			_, _, ok = tg.Until(u)
			require.False(t, ok)

			boundary, err := tg.SchedulePlan(t.Context(), u, "pro")
			require.NoError(t, err)
			require.False(t, boundary.IsZero())
			innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
			_, after, _ = tg.Until(u)
			require.NoError(t, tg.Wait(t.Context(), after))
			e = tg.Send(t.Context(), u, tg.Valid())
			innocent(t, e, 200, "")
			require.EqualValues(t, 100, e.Answer.Limit.Value)

			_, err = tg.SchedulePlan(t.Context(), u, "plus")
			require.NoError(t, err)
			p, err := tg.EndPeriod(t.Context(), u)
			require.NoError(t, err)
			require.Equal(t, "plus", p.Plan)
			e = tg.Send(t.Context(), u, tg.Valid())
			innocent(t, e, 200, "")
			require.EqualValues(t, 40, e.Answer.Limit.Value)
		})
	}
}

// A request that waits for its key is decided under what holds once it goes on.
func TestARequestHeldAcrossAnExpiry(t *testing.T) {
	tg := openReference(t, control.ClockFrozen)
	u := lease(t, tg, "free", 1)
	expiring(t, tg, u, 20, time.Minute)
	h, e := tg.Hold(t.Context(), u, tg.Valid(), target.PlaceAuthentication)
	require.NoError(t, e.Err)
	require.NotNil(t, h)
	require.NoError(t, tg.Wait(t.Context(), 2*time.Minute))
	e = h.Finish(t.Context())
	innocent(t, e, 200, "")
	require.EqualValues(t, 10, e.Answer.Limit.Value)
}

// Whether a request was decided before an expiry or after it cannot be told where
// the expiry fell between its sending and its answer.
func TestAnAnswerAcrossAnExpiryTellsNothing(t *testing.T) {
	s, f := reference(t, control.ClockShifted, 0)
	between := func() {}
	f.BaseURLs = []string{proxy(t, s.URL(), func(_, body string) string {
		between()
		return body
	})}
	f.Can.StalledUpload = false
	tg, err := target.Open(t.Context(), f, target.Options{ControlToken: target.NewSecret(s.ControlToken())})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tg.Close()) })
	u := lease(t, tg, "free", 1)
	expiring(t, tg, u, 20, time.Hour)
	between = func() {
		if err := tg.Advance(t.Context(), 2*time.Hour); err != nil {
			t.Error(err)
		}
	}
	e := tg.Send(t.Context(), u, tg.Valid())
	require.ErrorIs(t, e.Err, target.ErrTorn)
	require.Empty(t, e.Findings)
	between = func() {}
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
}

func TestAScheduleWithoutAClockToReadIt(t *testing.T) {
	tg := openReference(t, control.ClockReal)
	u := lease(t, tg, "free", 1)
	_, err := tg.SchedulePlan(t.Context(), u, "pro")
	require.NoError(t, err, "it is far ahead")
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
	require.ErrorIs(t, tg.SetOverride(t.Context(), u, target.Burst, target.Override{Value: 5, Expires: time.Now().Add(time.Hour)}), target.ErrUnsupported)
	_, err = tg.SchedulePlan(t.Context(), u, "gold")
	require.Error(t, err)
}

func TestBrokenEntitlementsLeaveTheBucketAlone(t *testing.T) {
	tg := openReference(t, control.ClockFrozen)
	u := lease(t, tg, "free", 1)
	refused := func() {
		t.Helper()
		innocent(t, tg.SendApart(t.Context(), u, tg.Valid()), 503, contract.CodeConfigUnavailable)
	}
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
	require.NoError(t, tg.BreakEntitlement(t.Context(), u, target.Burst, "unlimited"))
	refused()
	require.NoError(t, tg.RemoveEntitlement(t.Context(), u, target.Concurrency))
	refused()
	require.NoError(t, tg.MendEntitlements(t.Context(), u))
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")

	require.NoError(t, tg.StoreOverride(t.Context(), u, target.Burst, "0", time.Time{}))
	refused()
	require.Equal(t, int64(10), u.Bucket.Allowance().Burst, "what is malformed is no value")
	require.NoError(t, tg.EndOverride(t.Context(), u, target.Burst))
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
}

func TestTheOperatorBoundaryRefuses(t *testing.T) {
	tg := openReference(t, control.ClockFrozen)
	u := lease(t, tg, "free", 1)
	var refused *target.ControlError
	require.ErrorAs(t, tg.WriteOverride(t.Context(), u, target.Burst, nil), &refused)
	require.Equal(t, 422, refused.Status)
	require.Contains(t, refused.Message, "null")

	o := target.Override{Value: 5, Reason: "a contract", Author: "kim"}
	require.NoError(t, tg.SetOverride(t.Context(), u, target.Burst, o))
	history, err := tg.History(t.Context(), u)
	require.NoError(t, err)
	require.Len(t, history, 1)
	require.Equal(t, []string{"burst", "5", "a contract", "kim"}, []string{history[0].Dimension, history[0].Value, history[0].Reason, history[0].Author})

	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
	usage, err := tg.Usage(t.Context(), u)
	require.NoError(t, err)
	require.Equal(t, control.Usage{Left: 99, Used: 1}, usage)
	require.NoError(t, tg.WriteOverride(t.Context(), u, target.Burst, 5), "a good one is taken")
}

func TestDimensions(t *testing.T) {
	a := oracle.Allowance{RequestsPerMinute: 1, Burst: 2, Concurrency: 3}
	for i, d := range target.Dimensions() {
		require.Equal(t, int64(i+1), d.Of(a))
	}
	require.Equal(t, int64(100_000), target.Concurrency.Most())
	require.Equal(t, int64(1_000_000), target.Burst.Most())
}

func TestUnparsable(t *testing.T) {
	tg := openReference(t, control.ClockFrozen)
	u := lease(t, tg, "free", 1)
	statuses := map[string]int{
		"a length that is no number": 400, "two hosts": 400, "an unknown transfer coding": 501,
		"an unknown expectation": 417, "an unknown version": 505, "a head of 64 KiB": 431,
	}
	for _, x := range target.AllUnparsable() {
		e := tg.SendUnparsable(t.Context(), u, x)
		require.NoError(t, e.Err, x.Name)
		require.Equal(t, statuses[x.Name], e.Status, x.Name)
		require.Contains(t, e.Curl, x.Name)
	}
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 200, "")
}

// billingPage is a deployment with a page behind a form and a cookie.
func billingPage(t *testing.T) *httptest.Server {
	m := http.NewServeMux()
	m.HandleFunc("POST /in", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.FormValue("key"), "isk_") {
			http.Error(w, "no", http.StatusUnprocessableEntity)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "s", Path: "/"})
		http.Redirect(w, r, "/page", http.StatusSeeOther)
	})
	m.HandleFunc("GET /page", func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("session"); err != nil {
			http.Error(w, "sign in", http.StatusForbidden)
			return
		}
		w.Write([]byte("<p>10 a minute"))
	})
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	return s
}

func TestPage(t *testing.T) {
	f := fileFor(billingPage(t).URL)
	f.InternalRoutes = []target.Route{{Method: "PUT", Path: "/internal/{user}/{dimension}", Body: `"{user}"`}}
	u := func(tg *target.Target) *target.User { return lease(t, tg, "free", 1) }
	good := target.Key{User: "a b", Plan: "free", Secret: target.NewSecret("isk_free_1")}

	bare := open(t, f, good)
	require.False(t, bare.Has(contract.NeedPage))
	_, err := bare.Page(t.Context(), u(bare))
	require.ErrorIs(t, err, target.ErrUnsupported)
	require.True(t, bare.Has(contract.NeedInternal))
	require.Equal(t, []target.Request{{Method: "PUT", Path: "/internal/a%20b/burst", Body: []byte(`"a%20b"`)}},
		bare.InternalRoutes(&target.User{ID: "a b"}, target.Burst))

	f.Can.Page = &target.Page{Path: "/page", SignIn: "/in", Field: "key", Negotiated: "own"}
	tg := open(t, f, good)
	require.True(t, tg.Has(contract.NeedPage))
	require.Equal(t, "own", tg.Negotiated())
	text, err := tg.Page(t.Context(), u(tg))
	require.NoError(t, err)
	require.Equal(t, "<p>10 a minute", text)

	stranger := open(t, f, target.Key{User: "a", Plan: "free", Secret: target.NewSecret("other")})
	_, err = stranger.Page(t.Context(), u(stranger))
	require.ErrorContains(t, err, "sign-in /in answers 422")
	require.NotContains(t, err.Error(), "other")
}
