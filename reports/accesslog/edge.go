package accesslog

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/reports/timeline"
)

// fieldsOf splits a line at spaces, but for those between quotes. No more than
// most fields are wanted.
func fieldsOf(b []byte, most int) (list [][]byte) {
	for len(list) < most {
		b = bytes.TrimLeft(b, " ")
		if len(b) == 0 {
			break
		}
		end := bytes.IndexByte(b, ' ')
		if b[0] == '"' {
			if i := closing(b[1:]); i >= 0 {
				end = i + 2
			} else {
				end = -1
			}
		}
		if end < 0 || end >= len(b) {
			return append(list, b)
		}
		list, b = append(list, b[:end]), b[end:]
	}
	return list
}

// alb reads the access log of an AWS application load balancer. Its first time is
// that of the answer; request_creation_time is when the request came.
type alb struct{}

// The places of an ALB entry's fields.
const (
	albTime, albClient, albDurations   = 1, 3, 5 // three durations
	albStatus, albRequest, albCreation = 8, 12, 21
	albFields                          = 22
)

func isALB(text []byte) bool {
	kind, rest, _ := bytes.Cut(text, []byte{' '})
	switch string(kind) {
	case "http", "https", "h2", "grpcs", "ws", "wss":
		when, _, _ := bytes.Cut(rest, []byte{' '})
		_, err := time.Parse(time.RFC3339Nano, string(when))
		return err == nil
	}
	return false
}

func (alb) read(text []byte, l *line) reason {
	f := fieldsOf(text, albFields)
	if len(f) <= albRequest {
		return truncated
	}
	at := string(f[albTime])
	if len(f) > albCreation {
		at = string(f[albCreation])
	}
	if !l.at(at) {
		return badTime
	}
	if !l.setStatus(string(f[albStatus])) {
		return truncated
	}
	l.hold = durationOf(f[albDurations], f[albDurations+1], f[albDurations+2])
	if len(f) <= albCreation && l.hold > 0 {
		l.stamp -= l.hold
	}
	l.client = canonical(f[albClient])
	l.requestLine([]byte(unquoted(f[albRequest])))
	return kept
}

// cloudFront reads CloudFront's standard log: date and time of the end, in UTC and
// whole seconds, and time-taken in seconds.
type cloudFront struct{ place map[string]int }

func isCloudFront(text []byte) bool {
	return bytes.HasPrefix(text, []byte("#Fields:")) && bytes.Contains(text, []byte(" x-edge-"))
}

func newCloudFront(heading []byte) dialect {
	c := cloudFront{place: map[string]int{}}
	for i, name := range strings.Fields(strings.TrimPrefix(string(heading), "#Fields:")) {
		c.place[name] = i
	}
	return c
}

func (c cloudFront) read(text []byte, l *line) reason {
	if text[0] == '#' {
		return comment
	}
	f := bytes.Split(text, []byte{'\t'})
	if len(f) < len(c.place) {
		return truncated
	}
	field := func(name string) string {
		if i, ok := c.place[name]; ok && string(f[i]) != "-" {
			return string(f[i])
		}
		return ""
	}
	if !l.at(field("date") + "T" + field("time") + "Z") {
		return badTime
	}
	if !l.setStatus(field("sc-status")) {
		return truncated
	}
	if d := field("time-taken"); d != "" {
		l.hold = Seconds.parse([]byte(d))
	}
	l.client = canonical([]byte(field("c-ip")))
	target := field("cs-uri-stem")
	if q := field("cs-uri-query"); q != "" {
		target += "?" + q
	}
	l.request(field("cs-method"), target)
	return kept
}

// envoy reads Envoy's default text format: [START_TIME] "request" code flags bytes
// bytes duration service-time "forwarded-for" "agent" "id" "authority" "upstream".
// The flag RL is the limiter's own 429; one without it came from upstream.
type envoy struct{ trusted []netip.Prefix }

// envoyFields are those after the start time.
const envoyFields = 11

func isEnvoy(text []byte) bool {
	if len(text) == 0 || text[0] != '[' {
		return false
	}
	end := bytes.IndexByte(text, ']')
	if end < 0 {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, string(text[1:end]))
	return err == nil
}

func (e envoy) read(text []byte, l *line) reason {
	end := bytes.IndexByte(text, ']')
	if text[0] != '[' || end < 0 {
		return fragment
	}
	if !l.at(string(text[1:end])) {
		return badTime
	}
	f := fieldsOf(text[end+1:], envoyFields)
	if len(f) < 8 {
		return truncated
	}
	if !l.setStatus(string(f[1])) {
		return truncated
	}
	l.requestLine([]byte(unquoted(f[0])))
	for flag := range bytes.SplitSeq(f[2], []byte{','}) {
		l.limited = l.limited || string(flag) == "RL"
	}
	l.passed = !l.limited
	if ms, err := strconv.ParseFloat(string(f[5]), 64); err == nil {
		l.hold = Milliseconds.of(ms)
	} else {
		l.hold = timeline.NoHold
	}
	list := unquoted(f[7])
	l.list = strings.Contains(list, ",")
	l.client = fromList([]byte(list+" "), e.trusted)
	return kept
}
