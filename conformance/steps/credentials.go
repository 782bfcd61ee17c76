package steps

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

// strangers are the sentences about requests that do not authenticate.
func (s *Scenario) strangers() []sentence {
	return []sentence{
		{when, `^their second key is revoked$`, "so that it must not authenticate any more", needs{contract.NeedPolicy}, func(ctx context.Context) error { return asSetup(s.RevokeKey(ctx, s.user().User, 1)) }},
		{when, `^somebody sends valid requests with every kind of bad credentials$`, "no key, an empty one, an unknown one, another scheme, a good one twice, a good one in the wrong header", nil, s.knockInEveryWay},
		{when, `^somebody sends a valid request with no key$`, "one attempt without any credential", nil, func(ctx context.Context) error { return s.knock(ctx, [][]string{{}}) }},
		{when, `^somebody sends valid requests with no key and with that key$`, "one attempt without any credential, one with the revoked key", nil, func(ctx context.Context) error {
			return s.knock(ctx, [][]string{{}, {s.Credential(s.user().Secret(1).Reveal())}})
		}},
		{then, `^each was refused as unauthenticated$`, "401 UNAUTHENTICATED in the error shape, without RateLimit headers", nil, s.refusedAsUnauthenticated},
		{then, `^the answers differ in nothing but the request id$`, "status, headers and body are the same", nil, s.lookAlike},
	}
}

// badCredentials lists credential lines that must not authenticate.
func (s *Scenario) badCredentials() [][]string {
	key := s.user().Secret(0).Reveal()
	return [][]string{
		{},                        // none
		{s.Credential("")},        // an empty key
		{s.Credential("unknown")}, // no key at all
		{s.Credential(s.remember(s.TwistedKey(s.user().Secret(0))))},
		{"Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+key))},
		{s.Credential(key), s.Credential(key)}, // a good one, twice
	}
}

// madeUp is a key that nobody has, and that no log may hold.
func (s *Scenario) madeUp() string { return s.remember(s.WrongKey()) }

func (s *Scenario) remember(key string) string {
	s.secrets = append(s.secrets, key)
	return key
}

// isMadeUp reports whether a request is sent with such a key.
func (s *Scenario) isMadeUp(r target.Request) bool {
	return len(r.Authorization) == 1 && slices.ContainsFunc(s.secrets, func(key string) bool { return r.Authorization[0] == s.Credential(key) })
}

// knockInEveryWay tries all bad credentials, and a good one where none belongs.
func (s *Scenario) knockInEveryWay(ctx context.Context) error {
	if err := s.knock(ctx, s.badCredentials()); err != nil {
		return err
	}
	const elsewhere = "X-Api-Key"
	if strings.EqualFold(s.CredentialHeader(), elsewhere) {
		return nil
	}
	r := s.Valid()
	r.Authorization = []string{}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(elsewhere, s.user().Secret(0).Reveal())
	e, err := s.attempt(ctx, r)
	if err != nil {
		return err
	}
	s.got = append(s.got, e)
	return nil
}

// knock sends a valid request with each of several credentials.
func (s *Scenario) knock(ctx context.Context, credentials [][]string) error {
	return s.sends(func() (got []exchange, err error) {
		for _, lines := range credentials {
			r := s.Valid()
			r.Authorization = lines
			e, err := s.attempt(ctx, r)
			if err != nil {
				return got, err
			}
			if !e.Unread { // an HTTP parser may refuse two lines: no handler saw them (LOG-8)
				got = append(got, e)
			}
		}
		return got, nil
	})
}

func (s *Scenario) refusedAsUnauthenticated() error {
	want := s.Wording().Reply(http.StatusUnauthorized)
	for _, e := range s.got {
		if e.Answer.Said != want {
			return s.broken(e, "status", want.String(), statusAndCode(e))
		}
		for name, n := range rateLimits(e.Answer) {
			if n.State != contract.Absent {
				return s.broken(e, name, "absent", n.String())
			}
		}
		if wrong := shape(e.Answer); len(wrong) > 0 {
			return s.broken(e, wrong[0].Field, wrong[0].Expected, wrong[0].Got)
		}
	}
	return s.verdict()
}

// lookAlike compares what a stranger could learn from each answer.
func (s *Scenario) lookAlike() error {
	want := looks(s.got[0], s.Wording())
	for _, e := range s.got[1:] {
		if got := looks(e, s.Wording()); got != want {
			return s.broken(e, "answer", want, got)
		}
	}
	return s.verdict()
}

// looks is an answer without what differs by right: its date and request id.
func looks(e exchange, w contract.Wording) string {
	var lines []string
	for name, values := range e.Header {
		switch name {
		case "Date", http.CanonicalHeaderKey(w.Name(contract.HeaderRequestID)), "Content-Length":
		default:
			lines = append(lines, fmt.Sprintf("%s: %s", name, strings.Join(values, ", ")))
		}
	}
	slices.Sort(lines)
	body := string(e.Body)
	if id := e.Answer.RequestID.Value; id != "" {
		body = strings.ReplaceAll(body, id, "…")
	}
	return fmt.Sprintf("%d; %s; %s", e.Status, strings.Join(lines, "; "), body)
}
