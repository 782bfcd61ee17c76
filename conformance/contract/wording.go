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
	// Replies is what it answers where the contract leaves that open, by the
	// contract's error code: see [OpenReplies].
	Replies map[string]Reply
}

// Reply is a status and the error code in its body.
type Reply struct {
	Status int
	Code   string
}

func (r Reply) String() string { return fmt.Sprintf("%d %s", r.Status, r.Code) }

// OpenReplies lists what the contract leaves open, as the reference answers it.
func OpenReplies() []Reply {
	return []Reply{
		{http.StatusUnauthorized, CodeUnauthenticated},
		{http.StatusPaymentRequired, CodeCapacityExhausted},
		{http.StatusNotFound, CodeNotFound},
		{http.StatusMethodNotAllowed, CodeMethodNotAllowed},
		{http.StatusUnprocessableEntity, CodeValidationFailed},
		{http.StatusInternalServerError, CodeEngineFailure},
		{http.StatusServiceUnavailable, CodeCapacityUnavailable},
		{http.StatusGatewayTimeout, CodeEngineTimeout},
	}
}

// Reply is what the deployment answers where the contract's reply, which it
// leaves open, has a status.
func (w Wording) Reply(status int) Reply {
	for _, r := range OpenReplies() {
		if own, given := w.Replies[r.Code]; given && r.Status == status {
			return own
		}
		if r.Status == status {
			return r
		}
	}
	return Reply{Status: status}
}

// means puts an answer's status and error code into the contract's words: both,
// where they are those of one reply; the status, where no other reply has it.
func (w Wording) means(a *Answer) {
	a.Said = Reply{a.Status, a.Body.ErrorCode.Value}
	var alike []Reply
	for _, r := range OpenReplies() {
		switch own, given := w.Replies[r.Code]; {
		case given && own == a.Said:
			a.Status, a.Body.ErrorCode.Value = r.Status, r.Code
			return
		case given && own.Status == a.Said.Status:
			alike = append(alike, r)
		}
	}
	if len(alike) == 1 {
		a.Status = alike[0].Status
	}
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
	if w.Reset == ResetSeconds && a.Reset.Value >= likeUnixTime {
		a.Reset.Raw = []string{a.Reset.Raw[0] + " (it looks like Unix time: see reset-is)"}
	}
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
	w.means(&a)
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
	left := n.Value - at.Unix()
	switch {
	case n.Value < likeUnixTime:
		n.Raw = []string{n.Raw[0] + " (it looks like seconds: see reset-is)"}
	case left < 0:
		n.Raw = []string{fmt.Sprintf("%s, %d s ago", n.Raw[0], -left)}
	default:
		n.Raw = []string{fmt.Sprintf("%s, %d s from now", n.Raw[0], left)}
	}
	n.Value, n.Slack = max(0, left), 1
	return n
}

// likeUnixTime is a number of seconds that nobody is told to wait, thirty years.
const likeUnixTime = 1_000_000_000

// Earlier is an instant read as seconds, of which the decision may have come so long
// before the Date that it is held against: see [ResetUnixTime]. What was said in
// seconds stays what it is.
func (n Number) Earlier(by time.Duration) Number {
	if late := int64(by / time.Second); n.Slack > 0 && late > 0 {
		n.Value, n.Slack = n.Value+late/2, n.Slack+(late+1)/2
	}
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
