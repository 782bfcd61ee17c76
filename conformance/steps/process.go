package steps

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

// startups are the sentences about servers that a scenario starts and stops.
func (s *Scenario) startups() []sentence {
	return []sentence{
		{when, `^a server is started with nothing set$`, "one more of the deployment's kind", needs{contract.NeedProcess}, func(ctx context.Context) error { return s.starts(ctx, nil) }},
		{when, `^a server is started with (several replicas|one replica|several replicas on local storage|local storage)$`, "one more of the deployment's kind", needs{contract.NeedProcess}, s.startsWith},
		{when, `^servers are started with every value of (\S+) that makes no sense$`, "one server for each value of that setting; a setting below invoicespec.rate-limit", needs{contract.NeedProcess}, s.startsWithNonsense},
		{then, `^it starts$`, "and is ready", needs{contract.NeedProcess}, s.didStart},
		{then, `^it refuses to start, names replicas and storage, and never listens$`, "and exits with another code than 0", needs{contract.NeedProcess}, s.refusedBoth},
		{then, `^each refuses to start and names that setting$`, "and exits with another code than 0", needs{contract.NeedProcess}, s.refusedByName},

		{given, `^a server of its own$`, "one more of the deployment's kind, which the rest of the scenario asks", needs{contract.NeedProcess}, func(ctx context.Context) error { return s.ready(s.ownServer(ctx, nil)) }},
		{given, `^a server of its own with (an anonymous burst of three|a quick anonymous rate|one anonymous place|this machine as a trusted proxy)$`, "one more of the deployment's kind, which the rest of the scenario asks", needs{contract.NeedProcess}, s.ownServerWith},
		{when, `^that server is stopped and another is started in its place$`, "on what the first one stored", needs{contract.NeedProcess}, s.startAnew},
		{when, `^somebody sends wrong keys until the first rejection$`, "to the scenario's own server", nil, s.guessUntilRejected},
		{when, `^somebody waits for one such attempt and makes it$`, "at the quick anonymous rate", nil, s.waitAndGuess},
		{when, `^the validations of two keys are begun and held$`, "where there is one place", needs{contract.NeedHoldAuth}, s.beginTwo},
		{then, `^one of them was refused for want of a place$`, "429 CONCURRENCY_LIMIT_EXCEEDED", nil, s.oneWasRefused},
		{when, `^somebody sends wrong keys for one client after the other$`, "three clients that the proxy names, and the first one again", nil, s.guessForClients},
		{then, `^three of them were let through$`, "and what came back meanwhile", nil, s.threeLetThrough},
		{then, `^it was let through$`, "the latest answer is 401", nil, s.wasLetThrough},
		{then, `^each client had attempts of its own$`, "the first attempt of each got 401, the second one 429", nil, s.eachClientHadItsOwn},
	}
}

// attempt is a server that was started.
type attempt struct {
	setting  string // that makes no sense; empty: none
	settings target.Settings
	target.Start
}

func (s *Scenario) startsWith(ctx context.Context, what string) error {
	const several, local = "2", "local"
	return s.starts(ctx, map[string]target.Settings{
		"several replicas":                  {contract.SettingReplicas: several},
		"one replica":                       {contract.SettingReplicas: "1"},
		"several replicas on local storage": {contract.SettingReplicas: several, contract.SettingStorage: local},
		"local storage":                     {contract.SettingStorage: local},
	}[what])
}

func (s *Scenario) starts(ctx context.Context, settings target.Settings) error {
	start, err := s.TryStart(ctx, settings)
	s.attempts = []attempt{{settings: settings, Start: start}}
	return asSetup(err)
}

// atOnce is how many servers are started at a time.
const atOnce = 4

func (s *Scenario) startsWithNonsense(ctx context.Context, key string) error {
	setting, ok := contract.FindSetting(key)
	if !ok {
		return fmt.Errorf("no such setting: %q", key)
	}
	s.attempts = make([]attempt, len(setting.Nonsense))
	errs := make([]error, len(setting.Nonsense))
	places := make(chan bool, atOnce)
	var all sync.WaitGroup
	for i, value := range setting.Nonsense {
		all.Go(func() {
			places <- true
			defer func() { <-places }()
			settings := target.Settings{key: value}
			var start target.Start
			start, errs[i] = s.TryStart(ctx, settings)
			s.attempts[i] = attempt{key, settings, start}
		})
	}
	all.Wait()
	return asSetup(errors.Join(errs...))
}

// refused records that a start did not go as it should.
func (s *Scenario) wrongStart(a attempt, field, expected string) error {
	return s.broken(exchange{Exchange: target.Exchange{Curl: s.CommandLine(a.settings)}}, field, expected, s.short(a.Start.String()))
}

// undecided is for a server that has neither started nor refused to in its time:
// a machine that is busy enough makes one of any server.
func (s *Scenario) undecided(a attempt) error {
	return fmt.Errorf("%w: %s", ErrInconclusive, s.short(a.Start.String()))
}

func (s *Scenario) didStart() error {
	for _, a := range s.attempts {
		if !a.Ready && !a.Exited {
			return s.undecided(a)
		}
		if !a.Ready {
			return s.wrongStart(a, "start", "a server that is ready")
		}
	}
	return s.verdict()
}

// refuses looks at a start that has to be refused, for a reason that names
// settings.
func (s *Scenario) refuses(a attempt, names ...string) error {
	switch {
	case a.Ready || a.Listened:
		return s.wrongStart(a, "start", "refused before it listens")
	case !a.Exited:
		return s.undecided(a)
	case a.Code == 0:
		return s.wrongStart(a, "exit code", "another than 0")
	}
	for _, name := range names {
		if !says(a.Output, name) && !says(a.Output, s.SettingName(name)) {
			return s.wrongStart(a, "reason", "one that names "+contract.SettingsPrefix+name)
		}
	}
	return s.verdict()
}

// says reports whether a text names a setting, in whatever spelling.
func says(text, setting string) bool {
	plain := func(s string) string {
		return strings.NewReplacer(".", "", "-", "", "_", "").Replace(strings.ToLower(s))
	}
	return strings.Contains(plain(text), plain(setting[strings.LastIndexByte(setting, '.')+1:]))
}

func (s *Scenario) refusedBoth() error {
	return s.refuses(s.attempts[0], contract.SettingReplicas, contract.SettingStorage)
}

func (s *Scenario) refusedByName() error {
	for _, a := range s.attempts {
		if err := s.refuses(a, a.setting); err != nil {
			return err
		}
	}
	return s.verdict()
}

// ownServer starts a server, which the rest of the scenario is about.
func (s *Scenario) ownServer(ctx context.Context, settings target.Settings) error {
	own, err := s.StartServer(ctx, settings)
	if err != nil {
		return setup(err)
	}
	s.Target = own
	return nil
}

func (s *Scenario) ownServerWith(ctx context.Context, what string) error {
	return s.ready(s.ownServer(ctx, map[string]target.Settings{
		// One attempt a minute, so that none comes back while the burst is counted.
		"an anonymous burst of three": {contract.SettingAnonymousBurst: "3", contract.SettingAnonymousRate: "1"},
		// One in 50 ms: by default it would be two seconds.
		"a quick anonymous rate":          {contract.SettingAnonymousBurst: "1", contract.SettingAnonymousRate: fmt.Sprint(quick)},
		"one anonymous place":             {contract.SettingAnonymousPlaces: "1"},
		"this machine as a trusted proxy": {contract.SettingAnonymousBurst: "1", contract.SettingAnonymousRate: "1", contract.SettingAnonymousTrusted: "127.0.0.0/8,::1/128"},
	}[what]))
}

func (s *Scenario) startAnew(ctx context.Context) error {
	s.begin()
	err := s.StartAnew(ctx)
	if errors.Is(err, target.ErrDidNotStart) {
		return fmt.Errorf("%w: %w", ErrInconclusive, err)
	}
	return asSetup(err)
}

// quick is an anonymous rate, in attempts a minute.
const quick = 1200

// guess sends a wrong key, as somebody at an address says a proxy; empty: as
// ourselves.
func (s *Scenario) guess(ctx context.Context, client string) (exchange, error) {
	lines := http.Header{}
	if client != "" {
		lines.Set(target.XForwardedFor, client) // believed by default
	}
	e, err := s.take(exchange{Exchange: s.SendApart(ctx, nil, s.with(lines))})
	if err == nil && !letThrough(e) && !rateRejected(e) {
		err = fmt.Errorf("%w: a wrong key was answered with %s", ErrInconclusive, statusAndCode(e))
	}
	return e, err
}

func letThrough(e exchange) bool { return e.Answer.Status == http.StatusUnauthorized }

func (s *Scenario) guessUntilRejected(ctx context.Context) error {
	const enough = 50
	return s.sends(func() (got []exchange, err error) {
		for range enough {
			e, err := s.guess(ctx, "")
			if err != nil {
				return got, err
			}
			if got = append(got, e); rateRejected(e) {
				return got, nil
			}
		}
		return got, nil
	})
}

func (s *Scenario) threeLetThrough() error {
	const burst = 3
	first, last := s.got[0], s.got[len(s.got)-1]
	let := int64(len(slices.DeleteFunc(slices.Clone(s.got), rateRejected)))
	back := (last.Span.To - first.Span.From) / oracle.Token // one a minute
	if let < burst || let > burst+back {
		return s.broken(last, "wrong keys let through", fmt.Sprint(burst), fmt.Sprint(let))
	}
	return s.verdict()
}

func (s *Scenario) waitAndGuess(ctx context.Context) error {
	if last := s.answer(); !rateRejected(last) {
		return fmt.Errorf("%w: nobody was rejected, so nobody has to wait", ErrInconclusive)
	}
	if err := s.Wait(ctx, time.Minute/quick); err != nil {
		return noAnswer(err)
	}
	return s.sends(func() ([]exchange, error) {
		e, err := s.guess(ctx, "")
		return []exchange{e}, err
	})
}

func (s *Scenario) wasLetThrough() error {
	if e := s.answer(); !letThrough(e) {
		return s.broken(e, "status", "401, as one attempt was due", statusAndCode(e))
	}
	return s.verdict()
}

// beginTwo holds the validation of one key, and begins that of another.
func (s *Scenario) beginTwo(ctx context.Context) error {
	all, err := s.plans()
	if err != nil {
		return err
	}
	u, err := s.lease(ctx, all[0].name, 2)
	if err != nil {
		return err
	}
	s.they = append(s.they, u)
	first, held, err := s.hold(ctx, u, s.valid(0), target.PlaceAuthentication)
	if err != nil {
		return err
	}
	if !held {
		return s.broken(first, "the only place", "taken by the first attempt", statusAndCode(first))
	}
	h, second := s.HoldApart(ctx, u.User, s.valid(1))
	if h != nil {
		u.held = append(u.held, h)
		return s.broken(exchange{Exchange: second}, "attempts in flight", "1", "2")
	}
	return s.sends(func() ([]exchange, error) {
		e, err := s.take(exchange{Exchange: second})
		return []exchange{e}, err
	})
}

func (s *Scenario) oneWasRefused() error {
	if e := s.answer(); !capRejected(e) {
		return s.broken(e, "status", "429 "+contract.CodeConcurrencyLimited, statusAndCode(e))
	}
	return s.verdict()
}

// guessForClients makes one attempt for each of three clients, and another for
// the first.
func (s *Scenario) guessForClients(ctx context.Context) error {
	return s.sends(func() (got []exchange, err error) {
		for _, last := range []byte{1, 2, 3, 1} {
			e, err := s.guess(ctx, net.IPv4(203, 0, 113, last).String())
			if err != nil {
				return got, err
			}
			got = append(got, e)
		}
		return got, nil
	})
}

func (s *Scenario) eachClientHadItsOwn() error {
	again := len(s.got) - 1
	if s.got[again].Span.To-s.got[0].Span.From >= oracle.Token { // one a minute
		return fmt.Errorf("%w: the attempts took so long that another one was due", ErrInconclusive)
	}
	for i, e := range s.got {
		if want := i != again; letThrough(e) != want {
			return s.broken(e, "status", map[bool]string{true: "401, the first attempt of this client", false: "429, the second attempt of this client"}[want], statusAndCode(e))
		}
	}
	return s.verdict()
}
