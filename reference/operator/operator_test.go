package operator_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/operator"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/store/memory"
	"github.com/invoicespec/brimline/reference/store/storetest"
)

const billingToken, capacityToken = "billing-0123456789", "capacity-0123456789"

// desk is the routes over a store whose clock stands still.
type desk struct {
	*testing.T
	handler http.Handler
	store   *memory.Store
	clock   clock.Movable
}

func open(t *testing.T) desk {
	c := clock.NewFrozen(time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC))
	store := memory.New(storetest.Plans(), c)
	return desk{T: t, store: store, clock: c, handler: operator.Handler(operator.Config{
		Accounts: store, Ledger: store, Clock: c, BillingToken: billingToken, CapacityToken: capacityToken,
		Resolve: func(r account.Record, now time.Time) (policy.Effective, error) {
			return policy.Resolve(r.Plans, r.Subscription, r.Overrides, now)
		},
	})}
}

func (d desk) ask(token, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w
}

// billing asks as an operator and requires success; the answer is read into v.
func (d desk) billing(method, path, body string, v any) {
	d.Helper()
	w := d.ask(billingToken, method, "/internal/billing"+path, body)
	require.Less(d, w.Code, 300, w.Body)
	require.Equal(d, "no-store", w.Header().Get("Cache-Control"))
	if v != nil {
		require.NoError(d, json.Unmarshal(w.Body.Bytes(), v))
	}
}

func (d desk) newUser(plan string) string {
	d.Helper()
	var u struct {
		User string
		Keys []string
	}
	d.billing("POST", "/users", `{"plan":"`+plan+`","keys":1}`, &u)
	require.Len(d, u.Keys, 1)
	k, err := account.ParseKey(u.Keys[0])
	require.NoError(d, err)
	rec, err := d.store.Lookup(d.Context(), d.store.Digest(k))
	require.NoError(d, err)
	require.Equal(d, u.User, rec.User, "the key that was shown is the user's")
	return u.User
}

func TestNobodyWithoutTheToken(t *testing.T) {
	d := open(t)
	user := d.newUser("free")
	paths := []string{"POST /internal/billing/users", "GET /internal/billing/users/" + user, "PUT /internal/billing/users/" + user + "/overrides/burst",
		"POST /internal/capacity/reservations", "GET /internal/billing/nowhere", "GET /internal/billing/"}
	_, keys, err := d.store.CreateUser(t.Context(), "free", 1)
	require.NoError(t, err)
	for _, line := range paths {
		method, path, _ := strings.Cut(line, " ")
		tokens := []string{"", "x", keys[0].Reveal(), billingToken + "x", capacityToken}
		if strings.Contains(path, "capacity") {
			tokens[4] = billingToken
		}
		for _, token := range tokens {
			w := d.ask(token, method, path, `{"value":1000,"author":"a","reason":"b"}`)
			require.Equal(t, http.StatusUnauthorized, w.Code, line)
			require.JSONEq(t, `{"errorCode":"UNAUTHENTICATED","message":"the operator's token is required, as Authorization: Bearer TOKEN"}`, w.Body.String())
		}
	}
	history, err := d.store.Overrides(t.Context(), user)
	require.NoError(t, err)
	require.Empty(t, history)
	r := httptest.NewRequest("GET", "/internal/billing/users/"+user, nil)
	r.Header["Authorization"] = []string{"Bearer " + billingToken, "Bearer " + billingToken}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	require.Equal(t, http.StatusUnauthorized, w.Code, "two credentials are none")
}

func TestWithoutATokenNobodyGetsIn(t *testing.T) {
	h := operator.Handler(operator.Config{})
	for _, header := range []string{"", "Bearer ", "Bearer"} {
		r := httptest.NewRequest("GET", "/internal/billing/users/user-1", nil)
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusUnauthorized, w.Code)
	}
}

func TestOverridesAreWrittenWithTheirHistory(t *testing.T) {
	d := open(t)
	at := "/users/" + d.newUser("free")
	d.billing("PUT", at+"/overrides/burst", `{"value":40,"author":"ann","reason":"a launch","expires":"2026-04-01T00:00:00Z"}`, nil)
	d.billing("PUT", at+"/overrides/burst", `{"value":50,"author":"bob","reason":"a larger launch"}`, nil)
	d.billing("PUT", at+"/overrides/concurrency", `{"value":1,"author":"bob","reason":"an incident"}`, nil)
	d.billing("DELETE", at+"/overrides/concurrency", `{"author":"ann","reason":"it is over"}`, nil)

	var shown struct {
		Plan         string
		Entitlements map[string]struct {
			Value      int64
			Negotiated bool
			Expires    string
		}
	}
	d.billing("GET", at, "", &shown)
	require.Equal(t, "free", shown.Plan)
	require.Equal(t, int64(50), shown.Entitlements["burst"].Value)
	require.True(t, shown.Entitlements["burst"].Negotiated)
	require.Empty(t, shown.Entitlements["burst"].Expires)
	require.Equal(t, int64(2), shown.Entitlements["concurrency"].Value)
	require.False(t, shown.Entitlements["concurrency"].Negotiated)

	var history []struct{ Dimension, Value, Author, Reason, Expires, Ended, EndAuthor, EndReason string }
	d.billing("GET", at+"/overrides", "", &history)
	require.Len(t, history, 3)
	var told []string
	for _, h := range history {
		told = append(told, strings.Join([]string{h.Dimension, h.Value, h.Author, h.Reason, h.EndAuthor, h.EndReason}, "/"))
	}
	require.ElementsMatch(t, []string{
		"burst/40/ann/a launch/bob/a larger launch", "burst/50/bob/a larger launch//", "concurrency/1/bob/an incident/ann/it is over",
	}, told)
}

// TestAWrongOverrideIsRefusedAndChangesNothing is OVR-3 at this boundary.
func TestAWrongOverrideIsRefusedAndChangesNothing(t *testing.T) {
	d := open(t)
	user := d.newUser("free")
	for name, body := range map[string]string{
		"null":          `{"value":null,"author":"a","reason":"b"}`,
		"zero":          `{"value":0,"author":"a","reason":"b"}`,
		"negative":      `{"value":-1,"author":"a","reason":"b"}`,
		"fraction":      `{"value":1.5,"author":"a","reason":"b"}`,
		"whole float":   `{"value":20.0,"author":"a","reason":"b"}`,
		"exponent":      `{"value":1e1,"author":"a","reason":"b"}`,
		"too large":     `{"value":1000001,"author":"a","reason":"b"}`,
		"huge":          `{"value":99999999999999999999999,"author":"a","reason":"b"}`,
		"a word":        `{"value":"unlimited","author":"a","reason":"b"}`,
		"text":          `{"value":"20","author":"a","reason":"b"}`,
		"true":          `{"value":true,"author":"a","reason":"b"}`,
		"a list":        `{"value":[20],"author":"a","reason":"b"}`,
		"none":          `{"author":"a","reason":"b"}`,
		"no author":     `{"value":20,"reason":"b"}`,
		"empty author":  `{"value":20,"author":" ","reason":"b"}`,
		"no reason":     `{"value":20,"author":"a"}`,
		"unknown":       `{"value":20,"author":"a","reason":"b","burst":1}`,
		"doubled":       `{"value":20,"value":30,"author":"a","reason":"b"}`,
		"past expiry":   `{"value":20,"author":"a","reason":"b","expires":"2026-03-15T12:00:00Z"}`,
		"no expiry":     `{"value":20,"author":"a","reason":"b","expires":"tomorrow"}`,
		"not JSON":      `value=20`,
		"a second body": `{"value":20,"author":"a","reason":"b"} {}`,
		"too long":      `{"value":20,"author":"a","reason":"` + strings.Repeat("x", 70<<10) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := d.ask(billingToken, "PUT", "/internal/billing/users/"+user+"/overrides/burst", body)
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, w.Body)
			require.Contains(t, w.Body.String(), `"VALIDATION_FAILED"`)
			history, err := d.store.Overrides(t.Context(), user)
			require.NoError(t, err)
			require.Empty(t, history)
		})
	}
	w := d.ask(billingToken, "PUT", "/internal/billing/users/"+user+"/overrides/speed", `{"value":20,"author":"a","reason":"b"}`)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code, w.Body)
}

func TestPlansChangeAtTheBoundary(t *testing.T) {
	d := open(t)
	at := "/users/" + d.newUser("free")
	type view struct {
		Plan, ScheduledPlan   string
		Boundary, PeriodStart time.Time
		PeriodEnd             time.Time
		OperationsUsed        int64
		OperationsLeft        int64
		Broken                string
		Entitlements          map[string]any
	}
	var at0, at1 view
	d.billing("PUT", at+"/scheduled-plan", `{"plan":"pro"}`, &at0)
	require.Equal(t, time.Date(2026, 4, 15, 12, 0, 0, 0, time.UTC), at0.Boundary)
	d.billing("GET", at, "", &at1)
	require.Equal(t, []string{"free", "pro"}, []string{at1.Plan, at1.ScheduledPlan})
	require.Equal(t, at0.Boundary, at1.PeriodEnd)
	require.Equal(t, int64(3), at1.OperationsLeft)

	d.billing("DELETE", at+"/scheduled-plan", "", nil)
	var at2 view
	d.billing("GET", at, "", &at2)
	require.Empty(t, at2.ScheduledPlan)

	d.billing("PUT", at+"/scheduled-plan", `{"plan":"pro"}`, nil)
	d.clock.Advance(time.Hour)
	var ended, at3 view
	d.billing("POST", at+"/period/end", "", &ended)
	require.Equal(t, d.clock.Now().UTC(), ended.Boundary)
	d.billing("GET", at, "", &at3)
	require.Equal(t, "pro", at3.Plan)
	require.Equal(t, int64(5), at3.OperationsLeft)

	w := d.ask(billingToken, "PUT", "/internal/billing"+at+"/scheduled-plan", `{"plan":"gold"}`)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Contains(t, w.Body.String(), `gold`)
}

func TestABrokenEntitlementIsSaid(t *testing.T) {
	d := open(t)
	user := d.newUser("free")
	require.NoError(t, d.store.RemoveEntitlement(t.Context(), user, policy.Burst))
	var shown struct {
		Broken       string
		Entitlements map[string]any
	}
	d.billing("GET", "/users/"+user, "", &shown)
	require.Contains(t, shown.Broken, "burst")
	require.Empty(t, shown.Entitlements)
}

func TestKeysAreListedByNameAndRevoked(t *testing.T) {
	d := open(t)
	user := d.newUser("free")
	var added struct{ Key string }
	d.billing("POST", "/users/"+user+"/keys", "", &added)
	k, err := account.ParseKey(added.Key)
	require.NoError(t, err)
	rec, err := d.store.Lookup(t.Context(), d.store.Digest(k))
	require.NoError(t, err)

	d.billing("DELETE", "/users/"+user+"/keys/"+rec.KeyID, "", nil)
	_, err = d.store.Lookup(t.Context(), d.store.Digest(k))
	require.ErrorIs(t, err, account.ErrUnknownKey)

	w := d.ask(billingToken, "GET", "/internal/billing/users/"+user+"/keys", "")
	require.NotContains(t, w.Body.String(), added.Key, "a key is shown once")
	var list []struct{ ID, Revoked string }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &list))
	require.Len(t, list, 2)
	for _, info := range list {
		require.Equal(t, info.ID == rec.KeyID, info.Revoked != "")
	}
}

func TestOperationsOfServicesAreAccountedFor(t *testing.T) {
	d := open(t)
	user := d.newUser("free") // 3 operations
	ask := func(method, path, body string, want int) {
		t.Helper()
		w := d.ask(capacityToken, method, "/internal/capacity/reservations"+path, body)
		require.Equal(t, want, w.Code, w.Body)
	}
	reserve := func(id string, want int) { t.Helper(); ask("POST", "", `{"user":"`+user+`","id":"`+id+`"}`, want) }
	reserve("a", 204)
	reserve("b", 204)
	reserve("c", 204)
	reserve("d", 402)
	ask("POST", "/a/charge", "", 204)
	ask("POST", "/a/charge", "", 204)
	ask("DELETE", "/b", "", 204)
	ask("DELETE", "/b", "", 204)
	reserve("d", 204)
	ask("POST", "/nothing/charge", "", 422)
	for _, id := range []string{"", "a/b", "..", `\u0000`, strings.Repeat("x", 125)} {
		ask("POST", "", `{"user":"`+user+`","id":"`+id+`"}`, 422)
	}
	reserve("d", 409)
	ask("POST", "", `{"user":"user-999","id":"x"}`, 404)
	b, err := d.store.Billing(t.Context(), user)
	require.NoError(t, err)
	require.Equal(t, int64(1), b.Used)
}

func TestUnknownUsersRoutesAndMethods(t *testing.T) {
	d := open(t)
	require.Equal(t, http.StatusNotFound, d.ask(billingToken, "GET", "/internal/billing/users/user-999", "").Code)
	require.Equal(t, http.StatusNotFound, d.ask(billingToken, "GET", "/internal/billing/nowhere", "").Code)
	require.Equal(t, http.StatusNotFound, d.ask("", "GET", "/internal/elsewhere", "").Code)
	require.Equal(t, http.StatusMethodNotAllowed, d.ask(billingToken, "PATCH", "/internal/billing/users/user-999", "").Code)
	require.Equal(t, http.StatusUnprocessableEntity, d.ask(billingToken, "POST", "/internal/billing/users", `{"plan":"gold","keys":1}`).Code)
}
