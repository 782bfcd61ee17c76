package conformancetest_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/invoicespec/brimline/conformance/conformancetest"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

// service is somebody's API: POST /v1/invoice/draft, limited by a bucket and a
// cap for each user, and by a pool for each address that fails to authenticate.
type service struct {
	plans map[string]target.Allowance
	wait  func(units, rate int64) int64 // seconds, as headers tell them
	gates conformancetest.Gates
	runs  bool // its clock; or else it stands still but for what it is moved by
	began time.Time

	mu     sync.Mutex
	moved  time.Duration // by which the limits' clock was moved
	date   time.Duration // by which the date was, which may be set back as well
	users  map[string]*user
	keys   map[string]*user
	strays map[string]*bucket // by address
}

type user struct {
	id, plan string
	bucket   bucket
	inFlight int64
}

// bucket holds tokens, in sixty-millionths: a microsecond brings as many of them
// as requests are allowed in a minute.
type bucket struct {
	target.Allowance
	level int64
	at    time.Duration
}

const token = 60_000_000

func newService() *service {
	return &service{
		plans: map[string]target.Allowance{
			"free": {RequestsPerMinute: 10, Burst: 10, Concurrency: 2},
			"pro":  {RequestsPerMinute: 300, Burst: 100, Concurrency: 20},
		},
		wait:   roundedUp,
		began:  time.Now(),
		users:  map[string]*user{},
		keys:   map[string]*user{},
		strays: map[string]*bucket{},
	}
}

func roundedUp(units, rate int64) int64   { return (units + rate*1_000_000 - 1) / (rate * 1_000_000) }
func roundedDown(units, rate int64) int64 { return units / (rate * 1_000_000) }

func full(a target.Allowance, now time.Duration) bucket { return bucket{a, a.Burst * token, now} }

// take refills and takes a token, if there is one.
func (b *bucket) take(now time.Duration) bool {
	back := now - b.at
	b.at = now
	if back > 0 {
		b.level = min(b.Burst*token, b.level+min(back.Microseconds(), 60_000_000*b.Burst)*b.RequestsPerMinute)
	}
	if b.level < token {
		return false
	}
	b.level -= token
	return true
}

// limits is what the limits' clock says.
func (s *service) limits() time.Duration {
	if s.runs {
		return time.Since(s.began)
	}
	return s.moved
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/health" {
		fmt.Fprintln(w, "ok")
		return
	}
	if r.URL.Path != "/v1/invoice" && !strings.HasPrefix(r.URL.Path, "/v1/invoice/") {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("X-Request-Id", rand.Text())
	u, stray := s.who(r)
	if u == nil {
		s.refuseStray(w, stray)
		return
	}
	code, release := s.admit(w.Header(), u)
	if code != "" {
		fail(w, http.StatusTooManyRequests, code)
		return
	}
	defer release()
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	var draft struct{ Lines []any }
	switch {
	case r.URL.Path != "/v1/invoice/draft":
		fail(w, http.StatusNotFound, "NOT_FOUND")
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		fail(w, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
	case err != nil || json.Unmarshal(body, &draft) != nil || len(draft.Lines) == 0:
		fail(w, http.StatusUnprocessableEntity, "VALIDATION_FAILED")
	default:
		s.gates.Pass(r.Context(), u.id, control.PlaceEngine)
		fmt.Fprint(w, "{")
		http.NewResponseController(w).Flush()
		s.gates.Pass(r.Context(), u.id, control.PlaceResponse)
		fmt.Fprintln(w, `"status":"draft"}`)
	}
}

// who finds the user of a request's one key; nil: nobody's, and whether the
// address may still fail to authenticate.
func (s *service) who(r *http.Request) (u *user, allowed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lines := r.Header.Values("Authorization"); len(lines) == 1 {
		if key, ok := strings.CutPrefix(lines[0], "Bearer "); ok && s.keys[key] != nil {
			return s.keys[key], true
		}
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	if s.strays[host] == nil {
		b := full(target.Allowance{RequestsPerMinute: 30, Burst: 10}, s.limits())
		s.strays[host] = &b
	}
	return nil, s.strays[host].take(s.limits())
}

func (s *service) refuseStray(w http.ResponseWriter, allowed bool) {
	if allowed {
		fail(w, http.StatusUnauthorized, "UNAUTHENTICATED")
		return
	}
	w.Header().Set("Retry-After", "2")
	fail(w, http.StatusTooManyRequests, "RATE_LIMIT_EXCEEDED")
}

// admit takes a token, then a place in flight, and says so in h. What it returns
// gives the place back.
func (s *service) admit(h http.Header, u *user) (code string, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &u.bucket
	admitted := b.take(s.limits())
	h.Set("RateLimit-Limit", strconv.FormatInt(b.Burst, 10))
	h.Set("RateLimit-Remaining", strconv.FormatInt(b.level/token, 10))
	h.Set("RateLimit-Reset", strconv.FormatInt(s.wait(b.Burst*token-b.level, b.RequestsPerMinute), 10))
	switch {
	case !admitted:
		h.Set("Retry-After", strconv.FormatInt(max(1, s.wait(token-b.level, b.RequestsPerMinute)), 10))
		return "RATE_LIMIT_EXCEEDED", nil
	case u.inFlight >= b.Concurrency:
		h.Set("Retry-After", "1")
		return "CONCURRENCY_LIMIT_EXCEEDED", nil
	}
	u.inFlight++
	return "", func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.inFlight--
	}
}

func fail(w http.ResponseWriter, status int, code string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"requestId": h.Get("X-Request-Id"), "errorCode": code, "message": "no"})
}

// What its tests can do behind the scenes.

func (s *service) newUser(_ context.Context, plan string, keys int) (control.User, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.plans[plan]; !ok {
		return control.User{}, fmt.Errorf("there is no plan %q", plan)
	}
	made := control.User{ID: rand.Text(), Plan: plan}
	u := &user{id: made.ID, plan: plan, bucket: full(s.plans[plan], s.limits())}
	s.users[u.id] = u
	for range keys {
		key := rand.Text()
		made.Keys = append(made.Keys, key)
		s.keys[key] = u
	}
	return made, nil
}

var errUnknown = errors.New("there is no such user or key")

func (s *service) addKey(_ context.Context, id string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.users[id]
	if !ok {
		return "", errUnknown
	}
	key := rand.Text()
	s.keys[key] = u
	return key, nil
}

func (s *service) revokeKey(_ context.Context, id, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.keys[key]; u == nil || u.id != id {
		return errUnknown
	}
	delete(s.keys, key)
	return nil
}

func (s *service) now(context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Unix(1_800_000_000, 0).Add(s.date), nil
}

func (s *service) advance(_ context.Context, d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.date += d
	s.moved += max(0, d)
	return nil
}

// config is what the suite has to know of it.
func (s *service) config() conformancetest.Config {
	const path = "/v1/invoice/draft"
	return conformancetest.Config{
		Target: target.File{
			Operations: target.Operations{
				Valid:   target.Operation{Method: "POST", Path: path, Body: `{"lines":[1]}`},
				Invalid: &target.Operation{Method: "POST", Path: path, Body: `{}`},
			},
			OutsideQuotas: []string{"/health"},
			Allowances:    s.plans,
			Can:           target.Can{StalledUpload: true}, // a request is admitted before its body is read
		},
		Hooks: conformancetest.Hooks{
			NewUser: s.newUser, AddKey: s.addKey, RevokeKey: s.revokeKey,
			Now: s.now, Advance: s.advance, Frozen: true,
			Gates: &s.gates,
		},
	}
}
