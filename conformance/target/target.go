// Package target is a deployment as a black box: what its target file says of
// it, the users it lends out, the requests it is sent, the clock it runs on and,
// where it offers the control protocol, what can be set and read behind the
// scenes. It knows no limiter's insides and judges nothing by itself; package
// oracle does, and every [Exchange] carries what the oracle found.
//
// Most callers want [ReadFile] and [Open], then [Target.Lease], [Target.Send] and
// [Target.Hold].
//
// Requests are written to fresh connections by code of this package, not by
// net/http's transport, as HTTP/1.1 or each as the one stream of an HTTP/2
// connection: nothing is retried, no redirect is followed, no proxy of the
// environment is used, a request target goes out as it is spelled, and the
// oracle's span begins when the first byte is about to leave and ends when the
// head of the answer is there.
package target

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/internal/build"
)

// Errors that callers tell apart.
var (
	ErrAway        = errors.New("the target is away")                          // could not be told: exit code 3
	ErrUnsupported = errors.New("the target does not offer this")              // a scenario that needs it is not run
	ErrBudget      = errors.New("limits.max-operations is reached")            // nothing was sent
	ErrNoUser      = errors.New("there is no user to lease")                   // the scenario could not be set up
	ErrNoWitness   = errors.New("the request was not seen to be in flight")    // the scenario could not be set up
	ErrTimeline    = errors.New("it is not known any more where the clock is") // inconclusive
	ErrUntrue      = errors.New("declared, but untrue")                        // the target file has to be mended
	errNoKey       = errors.New("the user has no such key")                    // a mistake of the caller's
	errEnded       = errors.New("the request in flight was ended already")     // a mistake of the caller's
)

// Options are what a target file does not hold. The zero value takes keys and
// token from the files that the target file names.
type Options struct {
	Keys         []Key  // users in memory, instead of the keys file
	ControlToken Secret // instead of the token file

	Environment func(name string) (value string, set bool) // that keys of users, connection strings and what commands are passed are in; nil: this process's own

	Run string // names the run in each request; empty: drawn at random

	// Vouched are declarations that whoever opens the target has seen to himself.
	// Of a trusted proxy, a page of metrics and a server that can be started a probe
	// could not tell an untrue declaration from a deployment that is wrong: these are
	// not doubted.
	Vouched []contract.Need

	Patience time.Duration // with a target that does not answer its first question; 0: as usual

	secrets *masks // that are known already; nil: none
}

// Target is an open target. Its methods may be called concurrently, but those
// that take a [User] not for the same one, and those that move the clock not
// while anybody waits for an answer.
type Target struct {
	file     File
	bases    []*url.URL
	trust    *tls.Config   // nil: whom this machine trusts
	protocol Protocol      // of requests
	older    bool          // HTTP/1.1 is spoken beside HTTP/2
	next     atomic.Uint64 // which base URL is asked
	wording  contract.Wording
	valid    Request
	invalid  Request
	failing  Request
	slow     Request
	behind   behind
	stalls   bool // a stalled upload is a witness
	ledger   bool // it is none, and what is left of the bucket is
	works    bool // the slow operation takes its time, and nothing else holds a request
	flown    flown
	time     *timeline
	silence  silence
	budget   *budget
	run      string        // random, in each request's User-Agent
	sent     atomic.Int64  // requests
	gone     atomic.Int64  // requests that found nobody listening
	far      time.Duration // how long the first question took, at the base URL that is farthest
	agent    string
	patience patience
	options  Options
	process  *serverProcess // nil: it runs anyway
	trial    trial

	addresses addresses
	untrue    map[contract.Need]string // what was found of what the file declares

	mu       sync.Mutex
	users    []*User       // of the keys file
	returned []*User       // of them, those who were lent and may be again
	unlent   map[shelf]int // by kind, the first place at which one may be who was never lent
	onPlan   map[string]int
	known    []Secret // every key ever seen
	secrets  *masks   // and all else that must not be shown

	good sync.Map // keys that were seen to be let in, or to have a bucket
}

// Open reaches the target described by f: it asks every base URL for one of the
// paths outside the quotas (or connects, if none is named), asks the control
// server what it can do, makes sure that it says no to what it cannot, and tries
// whether a stalled upload shows anything (with one bad key). A
// target that cannot be reached gives an error that wraps [ErrAway]. Close it
// when done.
func Open(ctx context.Context, f File, o Options) (_ *Target, err error) {
	if p := f.check(); p != nil {
		return nil, p
	}
	t := &Target{file: f, wording: f.wording(), budget: &budget{most: f.Limits.MaxOperations}, options: o, protocol: cmp.Or(f.Protocol, HTTP1), secrets: cmp.Or(o.secrets, &masks{}), run: cmp.Or(o.Run, runID()), patience: patience(f.Limits.Patience)}
	defer func() { err = t.Conceal(err) }()
	t.agent = fmt.Sprintf("brimline/%s run/%s", build.Version(), t.run)
	if t.budget.most == 0 {
		t.budget.most = DefaultMaxOperations
	}
	for _, text := range f.BaseURLs {
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		t.bases = append(t.bases, u)
	}
	if err := t.loadOperations(); err != nil {
		return nil, err
	}
	keys, err := f.keys(o)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		t.secrets.add(k.Secret)
	}
	if len(f.Users) > 0 {
		t.options.Keys = keys
	}
	if t.trust, err = f.trust(); err != nil {
		return nil, err
	}
	if err := t.reach(ctx, cmp.Or(o.Patience, t.patience.first())); err != nil {
		return nil, err
	}
	mode, err := t.openBehind(ctx, o)
	if err == nil && mode != control.ClockReal && t.wording.Reset != contract.ResetSeconds {
		err = f.naming("reset-is", fmt.Errorf("an instant means nothing on a clock that can be moved; accepted: %s", resetSeconds))
	}
	if err == nil {
		t.time = newTimeline(mode)
		t.openAddresses(ctx)
		err = t.admitKeys(keys)
	}
	if err != nil {
		t.behind.close()
		return nil, err
	}
	t.probeRest(ctx)
	return t, nil
}

// Close gives up what Open took. Users should have been returned.
func (t *Target) Close() error {
	t.behind.close()
	if t.process != nil {
		return t.process.remove()
	}
	return nil
}

// runID is drawn anew each time.
func runID() string { return strings.ToLower(rand.Text()[:12]) }

// Run names this opening of the target in the User-Agent of all that it sends, so
// that a deployment's log can be filtered by it.
func (t *Target) Run() string { return t.run }

// keys is what a target's users are made of.
func (f File) keys(o Options) ([]Key, error) {
	switch {
	case len(o.Keys) > 0:
		return o.Keys, nil
	case len(f.Users) > 0:
		return f.usersKeys(o.Environment)
	case f.KeysFile == "":
		return nil, nil
	}
	keys, err := ReadKeys(f.in(f.KeysFile))
	return keys, f.at("keys-file", err)
}

// admitKeys makes users of keys. Nothing is known of their buckets, of all from
// one instant on, so that they are lent in the file's order.
func (t *Target) admitKeys(keys []Key) error {
	byID, now := map[string]*User{}, t.time.atMost()
	t.onPlan = map[string]int{}
	for _, k := range keys {
		u, ok := byID[k.User]
		if !ok {
			a, ok := t.Allowance(k.Plan)
			if !ok {
				return fmt.Errorf("user %q is on plan %q, which has no allowance; accepted: %s", k.User, k.Plan, strings.Join(t.allowances(), ", "))
			}
			u = &User{ID: k.User, Plan: k.Plan, Bucket: oracle.NewUnknown(a, now), place: len(t.users)}
			byID[k.User], t.users = u, append(t.users, u)
			t.onPlan[k.Plan]++
		}
		u.keys, u.from = append(u.keys, k.Secret), append(u.from, k.From)
		t.known = append(t.known, k.Secret)
	}
	if len(t.users) == 0 && !t.behind.has(control.FeatureUsers) {
		problem := "keys-file: there is no user to ask as"
		if why := t.behind.doubted[control.FeatureUsers]; why != "" {
			problem = fmt.Sprintf("%s: %s: %s", problem, ErrUntrue, why)
		}
		return fmt.Errorf("%s; accepted: a file of keys, users, or a control server or commands that make them", problem)
	}
	return nil
}

func (t *Target) allowances() []string { return slices.Sorted(maps.Keys(t.file.Allowances)) }

// Allowance is what the target file says that a plan allows.
func (t *Target) Allowance(plan string) (oracle.Allowance, bool) {
	a, ok := t.file.Allowances[plan]
	return oracle.Allowance(a), ok
}

// Plans lists the plans that users can be leased on, sorted.
func (t *Target) Plans() []string {
	if t.behind.has(control.FeatureUsers) {
		return t.allowances()
	}
	return slices.DeleteFunc(t.allowances(), func(plan string) bool { return t.onPlan[plan] == 0 })
}

// UsersOn is how many users there are on a plan; -1: they are made as needed.
func (t *Target) UsersOn(plan string) int {
	if t.behind.has(control.FeatureUsers) {
		return -1
	}
	return t.onPlan[plan]
}

// RoundTrip is how long a request takes that costs the target nothing, by the
// one with which it was opened.
func (t *Target) RoundTrip() time.Duration { return t.far }

// OutsideQuotas lists the paths that no quota applies to.
func (t *Target) OutsideQuotas() []string { return slices.Clone(t.file.OutsideQuotas) }

// Has reports whether the target offers what a scenario needs.
func (t *Target) Has(n contract.Need) bool {
	switch n {
	case contract.NeedHTTP:
		return true // or it would not have opened
	case contract.NeedKeys:
		return t.behindHas(n) || slices.ContainsFunc(t.users, func(u *User) bool { return len(u.keys) > 1 })
	case contract.NeedPlans:
		return len(t.Plans()) > 1
	case contract.NeedInvalid:
		return t.file.Operations.Invalid != nil
	case contract.NeedOutside:
		return len(t.file.OutsideQuotas) > 0
	case contract.NeedHold:
		return t.CanHold(PlaceUpload) || t.CanHold(PlaceWork) || t.behindHas(n)
	case contract.NeedUpload:
		return t.CanHold(PlaceUpload)
	case contract.NeedHTTP2:
		return (t.file.Can.HTTP2 || t.protocol == HTTP2) && t.stalls && t.untrue[n] == ""
	case contract.NeedHTTP1:
		return t.protocol == HTTP1 || t.older
	case contract.NeedFail:
		return t.file.Operations.Failing != nil || t.behindHas(n)
	case contract.NeedInternal:
		return len(t.file.InternalRoutes) > 0
	case contract.NeedPage:
		return t.file.Can.Page != nil
	case contract.NeedAddresses:
		return len(t.addresses.spaces) > 0
	case contract.NeedProxy:
		return t.addresses.proxy != nil
	case contract.NeedMetrics:
		return t.file.Can.Metrics != nil && t.untrue[n] == ""
	case contract.NeedProcess:
		return t.file.Can.Process != nil && t.untrue[n] == ""
	case contract.NeedKeptLog:
		return t.Has(contract.NeedProcess) && t.file.Can.Process.KeptLog
	case contract.NeedRestart, contract.NeedClock:
		return t.behindHas(n) && t.Movable() // a restart is everybody's: where time moves, scenarios run alone
	case contract.NeedReplicas:
		return len(t.bases) > 1
	}
	return len(featuresOf(n)) > 0 && t.behindHas(n)
}

// Describe is the target in one line: host, protocol, users, plans, clock, what it can.
func (t *Target) Describe() string {
	var hosts, needs []string
	for _, b := range t.bases {
		hosts = append(hosts, b.Host)
	}
	for _, m := range contract.Needs() {
		if m.Need != contract.NeedHTTP && m.Need != contract.NeedHTTP1 && t.Has(m.Need) {
			needs = append(needs, string(m.Need))
		}
	}
	slices.Sort(needs)
	can := "plain HTTP"
	if len(needs) > 0 {
		can = strings.Join(needs, ", ")
	}
	if t.file.Can.StalledUpload && !t.CanHold(PlaceUpload) {
		can += " (100 Continue comes to everybody, so a stalled upload shows nothing)"
	}
	users := fmt.Sprintf("%d users", len(t.users))
	switch {
	case t.behind.has(control.FeatureUsers):
		users = "users as needed"
	case len(t.users) == 1:
		users = "1 user"
	}
	plans := fmt.Sprintf("%d plans", len(t.Plans()))
	if len(t.Plans()) == 1 {
		plans = "1 plan"
	}
	protocol := t.protocol.String()
	if t.file.unverified() {
		protocol += ", whoever answers (tls.insecure)"
	}
	where := ""
	if p := t.Scope().Prefix; p != contract.ScopePrefix {
		where = "  limited: " + p + " in place of " + contract.ScopePrefix
	}
	return fmt.Sprintf("%s  %s  %s on %s  clock: %s  can: %s%s", strings.Join(hosts, ", "), protocol, users, plans, t.Clock(), can, where)
}
