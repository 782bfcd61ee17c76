package contract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// State says how a header or a body member came.
type State uint8

// The states. The zero value is a field that did not come at all.
const (
	Absent    State = iota
	Good            // once, and in the form the contract asks for
	Malformed       // once, in another form
	Doubled         // more than once
)

func (s State) String() string {
	return [...]string{"absent", "good", "malformed", "doubled"}[s&3]
}

// Number is a header that has to be a plain non-negative decimal integer
// (HDR-8). Value is 0 unless State is Good.
type Number struct {
	State State
	Value int64
	Slack int64    // how far off Value may be, either way: see [ResetUnixTime]
	Raw   []string // the field lines as they came
}

// String shows the header's value for people: "6", "absent", or the raw lines.
func (n Number) String() string {
	if n.State == Absent {
		return "absent"
	}
	return strings.Join(n.Raw, " | ")
}

// Text is a header or body member that has to be a non-empty string. Value is
// empty unless State is Good.
type Text struct {
	State State
	Value string
}

// Answer is what a deployment answered, reduced to the contract's words.
type Answer struct {
	Status     int
	Said       Reply  // status and error code as they came; zero: as below
	Limit      Number // RateLimit-Limit
	Remaining  Number // RateLimit-Remaining
	Reset      Number // RateLimit-Reset
	RetryAfter Number // Retry-After
	RequestID  Text   // X-Request-Id
	MediaType  string // lower case, without parameters; empty: absent or malformed
	NoStore    bool   // Cache-Control forbids storing (ERR-4)
	Body       ErrorBody
	Bodiless   bool // an answer to HEAD, which has no body to say anything
}

// SaidStatus is the status as it came.
func (a Answer) SaidStatus() int { return cmp.Or(a.Said.Status, a.Status) }

// ErrorBody is the body of an answer with a status of 400 or above (ERR-1).
type ErrorBody struct {
	Err       error // why the body is no single JSON object; nil: it is one
	RequestID Text
	ErrorCode Text
	Message   Text
}

// ParseAnswer reads an answer in the contract's own wording. It never fails: what
// is wrong with a field is in its State. Bodies below status 400 are not looked at.
func ParseAnswer(status int, header http.Header, body []byte) Answer {
	return Wording{}.Parse(status, header, body)
}

// parseCommon reads what every deployment calls the same.
func parseCommon(status int, header http.Header) Answer {
	a := Answer{Status: status, NoStore: hasDirective(header.Values("Cache-Control"), "no-store")}
	if media, _, err := mime.ParseMediaType(header.Get("Content-Type")); err == nil {
		a.MediaType = media
	}
	return a
}

func parseNumber(lines []string) Number {
	n := Number{Raw: lines}
	switch len(lines) {
	case 0:
		return n
	case 1:
	default:
		n.State = Doubled
		return n
	}
	n.State = Malformed
	if strings.Trim(lines[0], "0123456789") != "" {
		return n // ParseInt would take a sign
	}
	if v, err := strconv.ParseInt(lines[0], 10, 64); err == nil {
		n.State, n.Value = Good, v
	}
	return n
}

func parseText(lines []string) Text {
	switch {
	case len(lines) == 0:
		return Text{}
	case len(lines) > 1:
		return Text{State: Doubled}
	case lines[0] == "":
		return Text{State: Malformed}
	}
	return Text{State: Good, Value: lines[0]}
}

func hasDirective(lines []string, directive string) bool {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(part), directive) {
				return true
			}
		}
	}
	return false
}

// parseObject reads members of the one object that a body is. It walks the tokens
// of the outer object itself, since decoding into a struct would fold the case of
// names and keep the last of two.
func parseObject(body []byte, members map[string]*Text) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.New("the body is no JSON object")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return errors.New("the body is no well-formed JSON object")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return errors.New("the body is no well-formed JSON object")
		}
		if m, ok := members[name.(string)]; ok {
			*m = m.next(value)
		}
		if in := inner(members, name.(string)); len(in) > 0 {
			_ = parseObject(value, in) // what is no object has none of them
		}
	}
	if _, err := dec.Token(); err != nil {
		return errors.New("the body's JSON object has no end")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the body goes on after its JSON object")
	}
	return nil
}

// next is the member once value has come for it as well.
func (t Text) next(value json.RawMessage) Text {
	if t.State != Absent {
		return Text{State: Doubled}
	}
	var s *string // null leaves it nil
	if err := json.Unmarshal(value, &s); err != nil || s == nil || *s == "" {
		return Text{State: Malformed}
	}
	return Text{State: Good, Value: *s}
}
