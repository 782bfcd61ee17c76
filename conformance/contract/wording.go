package contract

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ResetForm is what a deployment's RateLimit-Reset counts.
type ResetForm string

// The forms. The zero value is the contract's own.
const (
	ResetSeconds  ResetForm = ""          // the seconds until the bucket is full
	ResetUnixTime ResetForm = "unix-time" // the instant at which it is, in seconds since 1970
	ResetDate     ResetForm = "date"      // that instant as HTTP writes a date
)

// Wording is how a deployment says what the contract says. The zero value is the
// contract's own wording.
type Wording struct {
	// Names is what it calls headers and members of an error body, by the
	// contract's name; dots lead to a member of an inner object.
	Names map[string]string
	Reset ResetForm
}

// Name is what the deployment calls a header or a member of an error body, or
// whatever else a finding may be about.
func (w Wording) Name(contracts string) string {
	if own, ok := w.Names[contracts]; ok {
		return own
	}
	return contracts
}

// Parse is [ParseAnswer] for the answer of such a deployment.
func (w Wording) Parse(status int, header http.Header, body []byte) Answer {
	number := func(name string) Number { return parseNumber(header.Values(w.Name(name))) }
	a := parseCommon(status, header)
	a.Limit, a.Remaining, a.Reset, a.RetryAfter = number(HeaderLimit), number(HeaderRemaining), number(HeaderReset), number(HeaderRetryAfter)
	a.RequestID = parseText(header.Values(w.Name(HeaderRequestID)))
	if w.Reset != ResetSeconds {
		a.Reset = w.Reset.since(header.Values(w.Name(HeaderReset)), header.Get("Date"))
	}
	if status >= http.StatusBadRequest {
		a.Body.Err = parseObject(body, map[string]*Text{
			w.Name(MemberRequestID): &a.Body.RequestID, w.Name(MemberErrorCode): &a.Body.ErrorCode, w.Name(MemberMessage): &a.Body.Message,
		})
		if a.Body.Err != nil {
			a.Body = ErrorBody{Err: a.Body.Err}
		}
	}
	return a
}

// since reads an instant as the seconds until it, by the Date that came with it.
// That is cut to a second, and may have been written just before or just after
// the decision.
func (f ResetForm) since(lines []string, date string) Number {
	n := parseNumber(lines)
	if f == ResetDate && len(lines) == 1 {
		n.State, n.Value = Malformed, 0
		for _, layout := range []string{http.TimeFormat, time.RFC1123} {
			if t, err := time.Parse(layout, lines[0]); err == nil && t.Unix() >= 0 {
				n.State, n.Value = Good, t.Unix()
			}
		}
	}
	if n.State != Good {
		return n
	}
	at, err := time.Parse(http.TimeFormat, date)
	if err != nil {
		return Number{State: Malformed, Raw: []string{fmt.Sprintf("%s (an instant, beside the Date %q)", n.Raw[0], date)}}
	}
	n.Value, n.Slack = max(0, n.Value-at.Unix()), 1
	n.Raw = []string{fmt.Sprintf("%s (%d s after its Date)", n.Raw[0], n.Value)}
	return n
}

// inner is the members of one member that is an object.
func inner(members map[string]*Text, name string) map[string]*Text {
	in := map[string]*Text{}
	for path, m := range members {
		if rest, ok := strings.CutPrefix(path, name+"."); ok {
			in[rest] = m
		}
	}
	return in
}
