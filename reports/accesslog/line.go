package accesslog

import (
	"bytes"
	"fmt"
	"net/netip"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

// A line is what one line of a log says. Its slices lie in the text it was read
// from, or are the line's own.
type line struct {
	stamp   int64 // microseconds since 1970
	minute  int   // of the hour, as written
	second  int
	zone    int32 // seconds east of UTC
	hold    int64 // microseconds; [timeline.NoHold]: not told
	client  []byte
	list    bool // the client was taken from a list of addresses
	named   bool // it names a user
	status  int  // 0: none logged
	method  []byte
	target  []byte // nil, as the method: the request line is malformed
	shape   shape
	limited bool // the log says that the limiter refused it, whatever the status
	passed  bool // the log says that a 429 was somebody else's
	code    []byte
}

// dialect reads the lines of one format. It may keep what it read last.
type dialect interface {
	read(text []byte, l *line) reason
}

// kind is a format that is known.
type kind struct {
	format record.LogFormat
	stamp  record.LogStamp           // what its stamps mean
	is     func(text []byte) bool    // told by one line
	new    func(text []byte) dialect // text: the line that told it
	skip   bool                      // that line is no entry
}

// kinds are the formats, the surest to be told first.
func kinds(opt Options) []kind {
	list := []kind{}
	if m := opt.Mapping; m != nil {
		return append(list, kind{
			format: record.FormatMapped, stamp: m.stamp(), is: m.is, skip: m.CSV(),
			new: func(text []byte) dialect { return m.dialect(text, opt.TrustedProxies) },
		})
	}
	return append(list,
		kind{format: record.FormatCloudFront, stamp: record.StampFinished, is: isCloudFront, skip: true, new: func(text []byte) dialect { return newCloudFront(text) }},
		kind{format: record.FormatCaddy, stamp: record.StampFinished, is: isCaddy, new: func([]byte) dialect { return &caddy{} }},
		kind{format: record.FormatTraefik, stamp: record.StampReceived, is: isTraefik, new: func([]byte) dialect { return &traefik{} }},
		kind{format: record.FormatNginxJSON, stamp: record.StampFinished, is: isNginxJSON, new: func([]byte) dialect { return &nginxJSON{trusted: opt.TrustedProxies} }},
		kind{format: record.FormatALB, stamp: record.StampReceived, is: isALB, new: func([]byte) dialect { return alb{} }},
		kind{format: record.FormatEnvoy, stamp: record.StampReceived, is: isEnvoy, new: func([]byte) dialect { return envoy{trusted: opt.TrustedProxies} }},
		kind{format: record.FormatCommon, stamp: record.StampUnknown, is: func(text []byte) bool { return stampAt(text) > 0 }, new: func([]byte) dialect {
			return &clf{trusted: opt.TrustedProxies, trailing: opt.Trailing}
		}},
	)
}

// accepted names every format.
const accepted = "Common or Combined format, nginx, Caddy or Traefik in JSON, Envoy, AWS ALB, CloudFront, brimline's API log, anything else by --mapping"

// entry is what is kept of a line.
type entry struct {
	at      int64
	hold    int64
	pool    []byte
	status  uint16
	fate    timeline.Fate
	outside bool // of the scope
}

// clerk reads pieces of a log. It counts what it sees; whoever has several adds
// them up.
type clerk struct {
	dialect  dialect
	scope    string // with no slash at its end
	scoped   bool
	finished bool // a stamp is the end of a request
	tally    tally
	hash     hasher
	zone     int32
	sameZone int64           // entries of that zone that zones does not have yet
	zones    map[int32]int64 // entries by zone
	line     line
}

// zoned adds the latest run of entries of one zone to the others.
func (c *clerk) zoned() {
	if c.sameZone > 0 {
		c.zones[c.zone] += c.sameZone
		c.sameZone = 0
	}
}

// read reads every line of a piece.
func (c *clerk) read(p *piece) {
	n := p.first - 1
	if p.long {
		c.tally.lines++
		c.drop(tooLong, p.first, nil)
		return
	}
	lines(p.text, func(text []byte) {
		n++
		c.tally.lines++
		p.sums.add(c.hash.of(text), n)
		switch {
		case len(text) >= maxLine:
			c.drop(tooLong, n, nil)
		case blankLine(text):
			c.drop(blank, n, nil)
		default:
			c.keep(p, text, n)
		}
	})
	c.zoned()
}

// drop counts a line that is no entry.
func (c *clerk) drop(why reason, n int64, text []byte) {
	t := &c.tally
	if t.dropped[why]++; t.dropped[why] == 1 && why != blank && why != comment {
		t.examples[why] = example{line: n, looks: masked(text)}
	}
}

func (c *clerk) keep(p *piece, text []byte, n int64) {
	l := &c.line
	*l = line{hold: timeline.NoHold}
	if why := c.dialect.read(text, l); why != kept {
		c.drop(why, n, text)
		return
	}
	if len(l.client) == 0 {
		c.drop(noClient, n, text)
		return
	}
	t := &c.tally
	t.entries++
	t.shapes[l.shape]++
	t.minutes[l.minute]++
	t.seconds[l.second]++
	t.statuses[l.status]++
	t.methods[methodPlace(l.method)]++
	if l.list {
		t.lists++
	}
	if l.named {
		t.named++
	}
	if l.method == nil {
		t.malformed++
	}
	if l.stamp%1e3 != 0 {
		t.finest = 1
	} else if l.stamp%1e6 != 0 && t.finest != 1 {
		t.finest = 1e3
	}
	if l.zone != c.zone {
		c.zoned()
		c.zone = l.zone
	}
	c.sameZone++
	e := entry{at: l.stamp, hold: l.hold, pool: l.client, status: uint16(l.status), fate: fateOf(l)}
	if l.hold >= 0 {
		t.held++
		if c.finished {
			e.at -= l.hold
		}
	}
	if e.outside = c.scoped && (l.method == nil || !inScope(l.target, c.scope)); e.outside {
		t.not[outOfScope]++
	}
	p.entries = append(p.entries, e)
}

// fateOf is what a limiter did, as far as a log tells.
func fateOf(l *line) timeline.Fate {
	switch {
	case l.limited:
		return timeline.RefusedRate
	case l.status == 429 && l.passed:
		return timeline.Passed
	case l.status == 429:
		switch string(l.code) {
		case "RATE_LIMIT_EXCEEDED":
			return timeline.RefusedRate
		case "CONCURRENCY_LIMIT_EXCEEDED":
			return timeline.RefusedConcurrency
		}
		return timeline.RefusedSomehow
	case l.status == 402:
		return timeline.OutOfOperations
	case l.status == 503:
		return timeline.Overloaded
	}
	return timeline.Passed
}

// masked is what a line looks like: its first characters, every letter an a, every
// digit a 0.
func masked(text []byte) string {
	const most = 80
	b := make([]byte, 0, most)
	for _, c := range text[:min(len(text), most)] {
		switch {
		case c >= '0' && c <= '9':
			c = '0'
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			c = 'a'
		case c < ' ' || c > '~':
			c = '?'
		}
		b = append(b, c)
	}
	if len(text) > most {
		b = append(b, "..."...)
	}
	return string(b)
}

// clientName is the client that an address, or a list of them and the peer, names.
func clientName(list string, peer string, trusted []netip.Prefix) (client []byte, isList bool) {
	if len(trusted) > 0 && list != "" && list != "-" {
		return fromList([]byte(list+" "+peer), trusted), true
	}
	return canonical([]byte(peer)), false
}

// requestLine splits "GET /x HTTP/1.1".
func (l *line) requestLine(text []byte) {
	l.method, l.target = splitRequest(text)
}

// request takes a method and a target that stand apart; either may be missing.
func (l *line) request(method, target string) {
	if method == "" || target == "" {
		return
	}
	for _, c := range []byte(method) {
		if (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return
		}
	}
	l.method, l.target = []byte(method), []byte(target)
}

// methods that are counted by name; whatever clients send, there are no more.
func methodNames() []string {
	return []string{"malformed", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "other"}
}

const methodCount = 11

func methodPlace(b []byte) int {
	switch string(b) {
	case "":
		return 0
	case "GET":
		return 1
	case "HEAD":
		return 2
	case "POST":
		return 3
	case "PUT":
		return 4
	case "PATCH":
		return 5
	case "DELETE":
		return 6
	case "OPTIONS":
		return 7
	case "CONNECT":
		return 8
	case "TRACE":
		return 9
	}
	return methodCount - 1
}

// zoneName writes an offset as stamps do.
func zoneName(seconds int32) string {
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	return fmt.Sprintf("%c%02d%02d", sign, seconds/3600, seconds/60%60)
}

// unquoted is a field without the quotes around it; "-" is none.
func unquoted(b []byte) string {
	b = bytes.TrimSuffix(bytes.TrimPrefix(b, []byte{'"'}), []byte{'"'})
	if string(b) == "-" {
		return ""
	}
	return string(b)
}
