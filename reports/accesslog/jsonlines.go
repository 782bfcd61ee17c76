package accesslog

import (
	"bytes"
	"encoding/json"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/reports/timeline"
)

// object is a line of JSON.
type object map[string]json.RawMessage

func parseObject(text []byte) (o object, ok bool) {
	if len(text) == 0 || text[0] != '{' || json.Unmarshal(text, &o) != nil {
		return nil, false
	}
	return o, true
}

// text is the first of some members that is there, a number as it is written.
func (o object) text(keys ...string) string {
	for _, key := range keys {
		raw, ok := o[key]
		if !ok || len(raw) == 0 || string(raw) == "null" {
			continue
		}
		if raw[0] != '"' {
			return string(raw)
		}
		var s string
		if json.Unmarshal(raw, &s) == nil && s != "" && s != "-" {
			return s
		}
	}
	return ""
}

func (o object) has(keys ...string) bool {
	for _, key := range keys {
		if _, ok := o[key]; ok {
			return true
		}
	}
	return false
}

// at sets the time by a text: seconds since 1970, or RFC 3339, or as Common Log
// Format writes it.
func (l *line) at(text string) bool {
	if text == "" {
		return false
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if !(seconds >= 0 && seconds < 253402300800) { // the year 10000
			return false
		}
		l.stamp = int64(math.Round(seconds * 1e6))
		l.clock(time.UnixMicro(l.stamp).UTC())
		return true
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return l.instant(t)
	}
	var s stamps
	if s.read([]byte(text)) {
		l.stamp, l.minute, l.second, l.zone = s.seconds*1e6, s.minute, s.second, s.offset
		return true
	}
	return false
}

// instant sets the time.
func (l *line) instant(t time.Time) bool {
	if t.Year() < 1970 || t.Year() > 9999 {
		return false
	}
	l.stamp = t.UnixMicro()
	l.clock(t)
	return true
}

func (l *line) clock(t time.Time) {
	l.minute, l.second = t.Minute(), t.Second()
	_, offset := t.Zone()
	l.zone = int32(offset)
}

// setStatus takes a status as it is written, be it 429.0; false: it is none.
func (l *line) setStatus(text string) bool {
	if text == "" || text == "-" {
		return true
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x != math.Trunc(x) || x < 0 || x > 999 {
		return false
	}
	l.status = int(x)
	return true
}

// nginxJSON reads what people make nginx write: its variables under their names,
// or under names that are usual for them. $msec and $time_local are the end.
type nginxJSON struct{ trusted []netip.Prefix }

func isNginxJSON(text []byte) bool {
	o, ok := parseObject(text)
	return ok && o.has("status") && o.has("msec", "time_iso8601", "time_local", "timestamp", "time", "@timestamp") &&
		o.has("remote_addr", "client_ip", "client", "remote_ip")
}

func (n *nginxJSON) read(text []byte, l *line) reason {
	o, ok := parseObject(text)
	if !ok {
		return badJSON // nginx without escape=json, for one
	}
	if !l.at(o.text("msec", "time_iso8601", "@timestamp", "timestamp", "time", "time_local")) {
		return badTime
	}
	if !l.setStatus(o.text("status")) {
		return truncated
	}
	if d := o.text("request_time"); d != "" {
		l.hold = Seconds.parse([]byte(d))
	}
	l.client, l.list = clientName(o.text("http_x_forwarded_for", "x_forwarded_for"), o.text("remote_addr", "client_ip", "client", "remote_ip"), n.trusted)
	l.named = o.text("remote_user") != ""
	if r := o.text("request"); r != "" {
		l.requestLine([]byte(r))
	} else {
		l.request(o.text("request_method", "method"), o.text("request_uri", "uri", "path"))
	}
	return kept
}

// caddy reads Caddy's access log. Its ts is when the answer had been written.
type caddy struct{}

func isCaddy(text []byte) bool {
	o, ok := parseObject(text)
	return ok && o.has("ts") && o.has("request") && o.has("status") && o.has("duration")
}

func (*caddy) read(text []byte, l *line) reason {
	o, ok := parseObject(text)
	if !ok {
		return badJSON
	}
	r, ok := parseObject(o["request"])
	if !ok {
		return badFields // a message of another kind
	}
	if !l.at(caddyTime(o.text("ts"))) {
		return badTime
	}
	if !l.setStatus(o.text("status")) {
		return truncated
	}
	l.hold = caddyDuration(o.text("duration"))
	l.client = canonical([]byte(strings.TrimSpace(firstOf(r.text("client_ip"), r.text("remote_ip"), r.text("remote_addr")))))
	l.named = o.text("user_id") != ""
	l.request(r.text("method"), r.text("uri"))
	return kept
}

// caddyTime turns "2006/01/02 15:04:05.000" into what is read elsewhere.
func caddyTime(text string) string {
	if t, err := time.Parse("2006/01/02 15:04:05.999999999", text); err == nil {
		return t.Format(time.RFC3339Nano)
	}
	return text
}

// caddyDuration takes seconds, or a text such as "1.5ms".
func caddyDuration(text string) int64 {
	if d, err := time.ParseDuration(text); err == nil {
		return Nanoseconds.of(float64(d))
	}
	return Seconds.parse([]byte(text))
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// traefik reads Traefik's JSON. StartUTC is when the request came, Duration is in
// nanoseconds, and what the client saw is DownstreamStatus: a 429 with no
// OriginStatus is Traefik's own.
type traefik struct{}

func isTraefik(text []byte) bool {
	o, ok := parseObject(text)
	return ok && o.has("StartUTC", "StartLocal") && o.has("DownstreamStatus")
}

func (*traefik) read(text []byte, l *line) reason {
	o, ok := parseObject(text)
	if !ok {
		return badJSON
	}
	if !l.at(o.text("StartUTC", "StartLocal")) {
		return badTime
	}
	if !l.setStatus(o.text("DownstreamStatus")) {
		return truncated
	}
	if d := o.text("Duration"); d != "" {
		l.hold = Nanoseconds.parse([]byte(d))
	}
	l.client = canonical([]byte(o.text("ClientHost", "ClientAddr")))
	l.named = o.text("ClientUsername") != ""
	l.request(o.text("RequestMethod"), o.text("RequestPath"))
	return kept
}

// durationOf adds up parts of a duration, in seconds; one that is -1 was never
// begun, and then the whole is not known.
func durationOf(parts ...[]byte) (sum int64) {
	for _, p := range parts {
		d := Seconds.parse(bytes.TrimSpace(p))
		if d == timeline.NoHold {
			return d
		}
		sum += d
	}
	return sum
}
