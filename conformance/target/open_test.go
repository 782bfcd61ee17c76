package target_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

// gone is the URL of a port where nobody listens.
func gone(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return "http://" + l.Addr().String()
}

func answering(t *testing.T, status int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(s.Close)
	return s.URL
}

// A target that takes connections and says nothing is away as well, and soon.
func TestATargetThatHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	f := fileFor("http://" + l.Addr().String())
	f.OutsideQuotas = []string{"/health"}
	_, err = target.Open(t.Context(), f, target.Options{
		Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret(theKey)}}, Patience: 50 * time.Millisecond,
	})
	require.ErrorIs(t, err, target.ErrAway)
	require.ErrorContains(t, err, "does not answer within 50ms")
}

func TestATargetThatIsAway(t *testing.T) {
	keys := target.Options{Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret(theKey)}}}
	up := answering(t, 200)
	for name, c := range map[string]struct {
		f    func(*target.File)
		away bool
	}{
		"nobody listens":             {func(f *target.File) { f.BaseURLs = []string{gone(t)} }, true},
		"one of two is away":         {func(f *target.File) { f.BaseURLs = append(f.BaseURLs, gone(t)) }, true},
		"its gateway is alone":       {func(f *target.File) { f.BaseURLs, f.OutsideQuotas = []string{answering(t, 502)}, []string{"/health"} }, true},
		"it is not ready":            {func(f *target.File) { f.BaseURLs, f.OutsideQuotas = []string{answering(t, 503)}, []string{"/ready"} }, true},
		"it does not know that path": {func(f *target.File) { f.BaseURLs, f.OutsideQuotas = []string{answering(t, 404)}, []string{"/health"} }, false},
		"its control is away":        {func(f *target.File) { f.Can.Control = &target.ControlAddress{URL: gone(t)} }, true},
		"no name like that":          {func(f *target.File) { f.BaseURLs = []string{"http://no-such-host.invalid"} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := fileFor(up)
			c.f(&f)
			o := keys
			o.ControlToken = target.NewSecret("x")
			tg, err := target.Open(t.Context(), f, o)
			if c.away {
				require.ErrorIs(t, err, target.ErrAway)
				require.NotContains(t, err.Error(), "\n")
				return
			}
			require.NoError(t, err)
			require.NoError(t, tg.Close())
		})
	}
	// One that goes away later says so, too, and has charged nothing.
	s := httptest.NewServer(http.NotFoundHandler())
	tg := open(t, fileFor(s.URL))
	u := lease(t, tg, "free", 1)
	s.Close()
	require.ErrorIs(t, tg.Send(t.Context(), u, tg.Valid()).Err, target.ErrAway)
	require.Zero(t, tg.Charged())
}

func TestATargetWithoutUsers(t *testing.T) {
	up := answering(t, 200)
	_, err := target.Open(t.Context(), fileFor(up), target.Options{})
	require.EqualError(t, err, "keys-file: there is no user to ask as; accepted: a file of keys, users, or a control server or commands that make them")

	_, err = target.Open(t.Context(), fileFor(up), target.Options{Keys: []target.Key{{User: "u", Plan: "gold", Secret: target.NewSecret(theKey)}}})
	require.EqualError(t, err, `user "u" is on plan "gold", which has no allowance; accepted: free`)

	f := fileFor(up)
	f.KeysFile = filepath.Join(t.TempDir(), "gone.keys")
	_, err = target.Open(t.Context(), f, target.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)

	f = fileFor("ftp://x")
	_, err = target.Open(t.Context(), f, target.Options{})
	require.ErrorContains(t, err, "base-urls[0]: ", "a file made in memory is checked, too")

	f = fileFor(up)
	f.Can.Control = &target.ControlAddress{URL: up, TokenFile: filepath.Join(folder(t, map[string]string{"token": "\n"}), "token")}
	_, err = target.Open(t.Context(), f, target.Options{})
	require.ErrorContains(t, err, "token: no token; accepted: one line that is a token")
}

// controlServer answers the protocol's first questions with what it is given.
func controlServer(t *testing.T, can any, impossible http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != control.Prefix {
			impossible(w, r)
			return
		}
		json.NewEncoder(w).Encode(can)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func says(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(control.Error{Code: code, Message: "no"})
	}
}

func TestAControlServerHasToTellTheTruth(t *testing.T) {
	honest := says(404, control.CodeUnsupported)
	everything := control.Capabilities{Protocol: 1, Server: "fake", Clock: control.ClockReal, Features: []control.Feature{control.FeatureEngine}}
	for name, c := range map[string]struct {
		can        any
		impossible http.HandlerFunc
		want       string // empty: it is taken
	}{
		"honest":                   {everything, honest, ""},
		"yes to everything":        {everything, func(http.ResponseWriter, *http.Request) {}, "does not say \"unsupported\" of a feature that does not exist"},
		"no, but not that":         {everything, says(404, "not_found"), "does not say \"unsupported\""},
		"no, with another status":  {everything, says(400, control.CodeUnsupported), "does not say \"unsupported\""},
		"another version":          {control.Capabilities{Protocol: 2, Clock: control.ClockReal}, honest, "speaks version 2 of the protocol; accepted: 1"},
		"no clock mode":            {control.Capabilities{Protocol: 1}, honest, "has a clock of mode \"\"; accepted: real, shifted, frozen"},
		"a frozen clock for ever":  {control.Capabilities{Protocol: 1, Clock: control.ClockFrozen}, honest, "has a frozen clock and no way to move it"},
		"a shifted clock for ever": {control.Capabilities{Protocol: 1, Clock: control.ClockShifted}, honest, "has a shifted clock and no way to move it"},
		"something else":           {[]int{1}, honest, "control: the answer to GET "},
	} {
		t.Run(name, func(t *testing.T) {
			f := fileFor(answering(t, 200))
			f.Can.Control = &target.ControlAddress{URL: controlServer(t, c.can, c.impossible)}
			keys := []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret(theKey)}}
			tg, err := target.Open(t.Context(), f, target.Options{ControlToken: target.NewSecret("t"), Keys: keys})
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, "fake", tg.Server())
				require.False(t, tg.Has(contract.NeedFail), "it lists the feature, and lacks it")
				require.Equal(t, "can.control: set-engine: listed as a feature, and not supported", tg.Untrue(contract.NeedFail))
				require.NoError(t, tg.Close())
				return
			}
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, target.ErrAway)
		})
	}
}

func TestWhatATargetOffers(t *testing.T) {
	up := answering(t, 200)
	f := fileFor(up)
	f.Allowances["pro"] = target.Allowance{RequestsPerMinute: 300, Burst: 100, Concurrency: 20}
	one := open(t, f)
	require.Equal(t, up[7:]+"  HTTP/1.1  1 user on 1 plan  clock: real  can: invalid", one.Describe())
	require.Equal(t, []string{"free"}, one.Plans(), "nobody is on pro")
	require.False(t, one.Movable())
	require.Empty(t, one.Server())

	f.Operations.Invalid, f.Can.StalledUpload, f.BaseURLs = nil, true, []string{up, answering(t, 200)}
	two := open(t, f,
		target.Key{User: "a", Plan: "free", Secret: target.NewSecret("k1")}, target.Key{User: "a", Plan: "free", Secret: target.NewSecret("k2")},
		target.Key{User: "b", Plan: "pro", Secret: target.NewSecret("k3")})
	require.Contains(t, two.Describe(), "2 users on 2 plans  clock: real  can: hold, keys, plans, replicas")
	for need, want := range map[contract.Need]bool{
		contract.NeedHTTP: true, contract.NeedInvalid: false, contract.NeedPolicy: false, contract.NeedClock: false, contract.NeedReference: false, "made-up": false,
	} {
		require.Equal(t, want, two.Has(need), need)
	}
	require.True(t, two.CanHold(target.PlaceUpload))
	require.False(t, two.CanHold(target.PlaceEngine))
	_, ok := two.Invalid()
	require.False(t, ok)

	u := lease(t, two, "free", 2)
	require.Equal(t, "a", u.ID)
	require.Equal(t, 2, u.Keys())
	for _, c := range []struct {
		plan string
		keys int
		want string
	}{{"free", 1, `none on plan "free" with 1 keys is free`}, {"pro", 2, `none on plan "pro" with 2 keys is free`}, {"gold", 1, `plan "gold" has no allowance`}} {
		_, err := two.Lease(t.Context(), c.plan, c.keys)
		require.ErrorIs(t, err, target.ErrNoUser)
		require.ErrorContains(t, err, c.want)
	}
	require.ErrorIs(t, two.SetPlan(t.Context(), u, "pro"), target.ErrUnsupported)
	require.ErrorIs(t, two.Advance(t.Context(), 1), target.ErrUnsupported)
	held, e := two.Hold(t.Context(), u, two.Valid(), target.PlaceEngine)
	require.Nil(t, held)
	require.ErrorIs(t, e.Err, target.ErrUnsupported)
}

func TestTheFullestUserIsLentFirst(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit-Limit", "10")
		w.Header().Set("RateLimit-Remaining", "9")
		w.Header().Set("RateLimit-Reset", "6")
	}))
	defer s.Close()
	tg := open(t, fileFor(s.URL), target.Key{User: "a", Plan: "free", Secret: target.NewSecret("k1")}, target.Key{User: "b", Plan: "free", Secret: target.NewSecret("k2")})
	first, err := tg.Lease(t.Context(), "free", 1)
	require.NoError(t, err)
	require.Empty(t, tg.Send(t.Context(), first, tg.Valid()).Findings, "its past is not known, so nine left are right")
	second, err := tg.Lease(t.Context(), "free", 1)
	require.NoError(t, err)
	require.NotEqual(t, first.ID, second.ID)
	require.NoError(t, tg.Return(t.Context(), second))
	require.NoError(t, tg.Return(t.Context(), first))
	again := lease(t, tg, "free", 1)
	require.Equal(t, first.ID, again.ID, "nine tokens are certain, of the other nothing is known")
	require.NoError(t, tg.Return(t.Context(), nil))
}

func TestTheBudgetIsNeverExceeded(t *testing.T) {
	status := 200
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer s.Close()
	f := fileFor(s.URL)
	f.Limits.MaxOperations = 3
	tg := open(t, f)
	u := lease(t, tg, "free", 1)
	for range 3 {
		status = 422
		require.NoError(t, tg.Send(t.Context(), u, tg.Valid()).Err)
		status = 200
		require.NoError(t, tg.Send(t.Context(), u, tg.Valid()).Err)
	}
	require.Equal(t, int64(3), tg.Charged())
	e := tg.Send(t.Context(), u, tg.Valid())
	require.ErrorIs(t, e.Err, target.ErrBudget)
	require.Zero(t, e.Status)
	require.NoError(t, tg.SendApart(t.Context(), nil, target.Request{Method: "GET", Path: "/health", Authorization: []string{}}).Err, "what needs no key costs nothing")

	f.Limits.MaxOperations = 2
	tg = open(t, f)
	u = lease(t, tg, "free", 1)
	es, _ := tg.SendTogether(t.Context(), u, []target.Request{tg.Valid(), tg.Valid(), tg.Valid(), tg.Valid()})
	refused := 0
	for _, e := range es {
		if e.Err != nil {
			require.ErrorIs(t, e.Err, target.ErrBudget)
			refused++
		}
	}
	require.Equal(t, 2, refused)
	require.Equal(t, int64(2), tg.Charged())
}
