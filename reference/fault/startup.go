package fault

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

// Environment reads variables, as os.LookupEnv does.
type Environment = func(name string) (value string, set bool)

// Reads is what a server with the fault takes the environment for.
func (f Fault) Reads(environment Environment) Environment {
	if misread, ok := misreadings()[f.Name]; ok {
		return misread(environment)
	}
	return environment
}

func startFaults() []Fault {
	wrongAtStart := func(*wiring.Parts) {} // its parts are right: see misreadings
	return []Fault{
		{"replicas-allowed", "GUARD-1", "several replicas start on local storage", unguarded("replicas")},
		{"replicas-refused-dumbly", "GUARD-1", "several replicas on local storage are refused, and nobody is told why", refusesDumbly("replicas")},

		{"storage-allowed", "GUARD-2", "a storage without an adapter is taken, and the local one used", unguarded("storage")},
		{"storage-refused-dumbly", "GUARD-2", "a storage without an adapter is refused, and nobody is told why", refusesDumbly("storage")},
		{"nonsense-is-default", "GUARD-2", "a number that makes no sense is taken for the default", wrongAtStart},
		{"nonsense-is-clamped", "GUARD-2", "a number out of range is moved into it", wrongAtStart},
		{"fraction-is-cut", "GUARD-2", "of a fraction the whole part is taken", wrongAtStart},
		{"empty-is-default", "GUARD-2", "a setting that is given and empty is taken for one left out", wrongAtStart},
		{"proxies-nonsense-dropped", "GUARD-2", "a trusted proxy that is no address is passed over", wrongAtStart},

		{"restart-leaves-empty", "RESTART-1", "a user who was there before the process begins with an empty bucket", startsEmpty()},
		{"startup-doubled", "RESTART-1", "a start counts two", sampled(valueOf("_startup_total", "2"))},
		{"startup-zero", "RESTART-1", "a start is not counted", sampled(valueOf("_startup_total", "0"))},

		{"anon-burst-fixed", "ANON-8", "the anonymous burst is what it is by default, whatever is configured", wrongAtStart},
		{"anon-rate-fixed", "ANON-8", "the anonymous rate is what it is by default, whatever is configured", wrongAtStart},
		{"anon-places-fixed", "ANON-8", "the attempts in flight are held to what is the default, whatever is configured", wrongAtStart},
		{"anon-proxies-fixed", "ANON-8", "no proxy is trusted, whatever is configured", wrongAtStart},
	}
}

// misreadings are the faults in how the environment is read, by their names.
func misreadings() map[string]func(Environment) Environment {
	anonymous := "anonymous."
	return map[string]func(Environment) Environment{
		"nonsense-is-default": reading(isNumber, func(value string) (string, bool) {
			n, err := strconv.Atoi(value)
			return value, value == "" || err == nil && n >= 1
		}),
		"nonsense-is-clamped": reading(isNumber, func(value string) (string, bool) {
			if n, err := strconv.Atoi(value); err == nil && n < 1 {
				return "1", true
			}
			return value, true
		}),
		"fraction-is-cut": reading(isNumber, func(value string) (string, bool) {
			whole, _, _ := strings.Cut(value, ".")
			return whole, true
		}),
		"empty-is-default": reading(func(string) bool { return true }, func(value string) (string, bool) { return value, value != "" }),
		"proxies-nonsense-dropped": reading(is(contract.SettingAnonymousTrusted), func(value string) (string, bool) {
			return value, !strings.ContainsAny(value, "abcdefghijklmnopqrstuvwxyz")
		}),
		"anon-burst-fixed":   reading(is(anonymous+"burst"), ignored),
		"anon-rate-fixed":    reading(is(anonymous+"requests-per-minute"), ignored),
		"anon-places-fixed":  reading(is(anonymous+"concurrency"), ignored),
		"anon-proxies-fixed": reading(is(contract.SettingAnonymousTrusted), ignored),
	}
}

func ignored(string) (string, bool) { return "", false }

func is(key string) func(string) bool { return func(k string) bool { return k == key } }

// isNumber reports whether a setting is a number.
func isNumber(key string) bool {
	s, _ := contract.FindSetting(key)
	return slices.Contains(s.Nonsense, "1.5")
}

// reading changes what is read of some settings.
func reading(of func(key string) bool, change func(value string) (string, bool)) func(Environment) Environment {
	return func(environment Environment) Environment {
		return func(name string) (string, bool) {
			value, set := environment(name)
			for _, s := range contract.Settings() {
				if set && s.Variable() == name && of(s.Key) {
					return change(value)
				}
			}
			return value, set
		}
	}
}

// unguarded drops a guard.
func unguarded(name string) alteration {
	return func(p *wiring.Parts) {
		p.Guards = slices.DeleteFunc(slices.Clone(p.Guards), func(g wiring.Guard) bool { return g.Name == name })
	}
}

// refusesDumbly keeps a guard's reason to itself.
func refusesDumbly(name string) alteration {
	return func(p *wiring.Parts) {
		p.Guards = slices.Clone(p.Guards)
		for i, g := range p.Guards {
			if g.Name == name {
				p.Guards[i] = wiring.Guard{Name: "start", Check: func() error {
					if g.Check() != nil {
						return errors.New("the configuration was refused")
					}
					return nil
				}}
			}
		}
	}
}

// startsEmpty empties the buckets of users whom nobody has made since the start.
func startsEmpty() alteration {
	return func(p *wiring.Parts) {
		made := newNotes[bool]()
		operating(func(s wiring.Operator) wiring.Operator { return recruiting{s, made} })(p)
		l := limits(p)
		l.spend = func(x *httpapi.Exchange, s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
			s = s.Settled(a, now)
			if first := !made.change(x.Account.User, func(bool) bool { return true }); first {
				s.Level = 0
			}
			return s.Take(a, now)
		}
	}
}

// recruiting takes note of the users that are made.
type recruiting struct {
	wiring.Operator
	made *notes[bool]
}

func (r recruiting) CreateUser(ctx context.Context, plan string, keys int) (string, []account.Key, error) {
	id, issued, err := r.Operator.CreateUser(ctx, plan, keys)
	r.made.change(id, func(bool) bool { return true })
	return id, issued, err
}
