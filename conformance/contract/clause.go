package contract

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Level says how binding a clause is.
type Level string

// The levels.
const (
	Must    Level = "MUST"    // the contract's owner says so: a deployment that does otherwise fails
	Decided Level = "DECIDED" // left open and settled here: a deployment that does otherwise differs
)

// Need is something a target has to offer before a scenario can see what it is
// about. See [Needs] for what each one is.
type Need string

// The needs.
const (
	NeedHTTP         Need = "http"
	NeedKeys         Need = "keys"
	NeedPlans        Need = "plans"
	NeedInvalid      Need = "invalid"
	NeedOutside      Need = "outside"
	NeedInternal     Need = "internal"
	NeedHold         Need = "hold"
	NeedUpload       Need = "upload"
	NeedGates        Need = "gates"
	NeedHTTP1        Need = "http1"
	NeedHTTP2        Need = "http2"
	NeedHoldAuth     Need = "hold-auth"
	NeedFail         Need = "fail"
	NeedEngine       Need = "engine"
	NeedPolicy       Need = "policy"
	NeedSchedule     Need = "schedule"
	NeedHistory      Need = "history"
	NeedEntitlements Need = "entitlements"
	NeedOperations   Need = "operations"
	NeedClock        Need = "clock"
	NeedAudit        Need = "audit"
	NeedMetrics      Need = "metrics"
	NeedAddresses    Need = "addresses"
	NeedProxy        Need = "proxy"
	NeedProcess      Need = "process"
	NeedKeptLog      Need = "kept-log"
	NeedRestart      Need = "restart"
	NeedReplicas     Need = "replicas"
	NeedPage         Need = "page"
	NeedReference    Need = "reference"
)

// Meaning is a need in words.
type Meaning struct {
	Need Need
	Text string
}

// Needs lists every need there is and what it is.
func Needs() []Meaning {
	return []Meaning{
		{NeedHTTP, "a base URL, one valid operation and one key"},
		{NeedKeys, "two keys of one user"},
		{NeedPlans, "users on several plans"},
		{NeedInvalid, "an operation that fails validation"},
		{NeedOutside, "routes outside the quotas, named in the target file"},
		{NeedInternal, "internal routes, named in the target file"},
		{NeedHold, "a request that stays in flight until it is let go, or for a known time"},
		{NeedUpload, "a request that stays in flight while its body is half sent, and can be let go by itself"},
		{NeedGates, "requests that can be held in the engine and while their response is written"},
		{NeedHTTP1, "HTTP/1.1, for what no other protocol can express"},
		{NeedHTTP2, "HTTP/2, and a request that stays in flight there while its body is half sent"},
		{NeedHoldAuth, "a request that stays in the validation of its key until it is let go"},
		{NeedFail, "an operation that the engine fails"},
		{NeedEngine, "an engine that can be told to panic or to run into its timeout"},
		{NeedPolicy, "users whose plan, overrides and keys can be changed"},
		{NeedSchedule, "a plan that can be scheduled, and a billing period that can be read and ended"},
		{NeedHistory, "the history of a user's overrides"},
		{NeedEntitlements, "entitlements and overrides that can be stored broken, for one user"},
		{NeedOperations, "users whose operations left can be set and read"},
		{NeedClock, "a clock that can be moved"},
		{NeedAudit, "log entries, engine calls and charges by request id"},
		{NeedMetrics, "the page of metrics"},
		{NeedAddresses, "several source addresses"},
		{NeedProxy, "a trusted proxy to send through"},
		{NeedProcess, "a server that can be started and stopped with a configuration"},
		{NeedKeptLog, "the log of a server that was started, shown by the next one in its place"},
		{NeedRestart, "a server that can be told to start anew on what it has stored"},
		{NeedReplicas, "several base URLs on one pool"},
		{NeedPage, "the billing page, and how to sign in to it, in the target file"},
		{NeedReference, "the reference's own tests: not to be seen from outside"},
	}
}

// ParseNeed reads a need's name.
func ParseNeed(name string) (Need, error) {
	var names []string
	for _, m := range Needs() {
		if string(m.Need) == name {
			return m.Need, nil
		}
		names = append(names, string(m.Need))
	}
	return "", fmt.Errorf("unknown need %q: there are %s", name, strings.Join(names, ", "))
}

// Clause is one numbered sentence of the contract.
type Clause struct {
	ID       string `json:"id"`
	Level    Level  `json:"level"`
	Needs    []Need `json:"needs"` // to see the whole clause; a scenario of it may need less
	Group    string `json:"group"`
	Sentence string `json:"sentence"`
	Decision string `json:"decision,omitempty"` // what the reference does and why, where it is DECIDED
}

// Group is the clauses that share a heading.
type Group struct {
	Name    string
	Clauses []Clause
}

// Clauses lists every clause in the contract's order. The list is the caller's.
func Clauses() []Clause { return slices.Clone(list()) }

// list is every clause, made once: scenarios look clauses up all the time.
var list = sync.OnceValue(func() []Clause {
	var all []Clause
	for _, g := range Groups() {
		all = append(all, g.Clauses...)
	}
	return all
})

// Groups lists every clause under its heading, both in the contract's order.
func Groups() []Group {
	groups := slices.Concat(userGroups(), policyGroups(), operatorGroups())
	settled := decisions()
	for _, g := range groups {
		for i := range g.Clauses {
			c := &g.Clauses[i]
			c.Group, c.Decision = g.Name, settled[c.ID]
		}
	}
	return groups
}

// FindClause returns the clause of an id; case matters.
func FindClause(id string) (Clause, bool) {
	for _, c := range list() {
		if c.ID == id {
			return c, true
		}
	}
	return Clause{}, false
}
