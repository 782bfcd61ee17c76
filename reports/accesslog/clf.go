package accesslog

import (
	"bytes"
	"net/netip"
)

// shape is what follows the status.
type shape uint8

const (
	common   shape = iota // nothing quoted
	combined              // a referer and a user agent
	extra                 // anything more, or less
)

// clf reads Common and Combined format and what servers append to them.
type clf struct {
	stamps   stamps
	trusted  []netip.Prefix
	trailing Unit
}

// read reads one line. The request line may hold anything at all: raw spaces,
// quotes, another protocol's bytes, nothing.
func (c *clf) read(b []byte, l *line) reason {
	open := stampAt(b)
	if open <= 0 || b[0] == ' ' || b[0] == '"' {
		return fragment
	}
	head := bytes.TrimRight(b[:open], " ")
	b = b[open+1:]
	end := bytes.IndexByte(b, ']')
	if end < 0 {
		return badTime
	}
	if !c.stamps.read(b[:end]) {
		return badTime
	}
	l.stamp, l.minute, l.second, l.zone = c.stamps.seconds*1e6, c.stamps.minute, c.stamps.second, c.stamps.offset
	b = bytes.TrimLeft(b[end+1:], " ")
	if len(b) == 0 || b[0] != '"' {
		return truncated
	}
	request, rest, ok := cutRequest(b[1:])
	if !ok {
		return truncated
	}
	l.requestLine(request)
	l.status = statusOf(rest)
	var tail []byte
	l.shape, tail = shapeOf(rest)
	if l.shape != common && len(tail) > 0 {
		l.hold = c.trailing.last(tail)
	}
	l.client, l.list = clientOf(head, c.trusted)
	l.named = !bytes.HasSuffix(head, []byte(" -"))
	return kept
}

// stampAt is the place of the bracket that opens the time stamp, or -1. An
// address can stand in brackets as well.
func stampAt(b []byte) int {
	for off := 0; ; {
		i := bytes.IndexByte(b[off:], '[')
		if i < 0 {
			return -1
		}
		off += i + 1
		if looksLikeStamp(b[off:]) {
			return off - 1
		}
	}
}

// cutRequest ends the request line at the first quote that is not escaped and
// that a status follows; failing that, at the first quote that a status follows.
func cutRequest(b []byte) (request, rest []byte, ok bool) {
	fallback := -1
	for off := 0; ; {
		i := bytes.IndexByte(b[off:], '"')
		if i < 0 {
			break
		}
		i += off
		off = i + 1
		if statusOf(b[off:]) < 0 {
			continue
		}
		if !escaped(b, i) {
			return b[:i], b[off:], true
		}
		if fallback < 0 {
			fallback = i
		}
	}
	if fallback < 0 {
		return nil, nil, false
	}
	return b[:fallback], b[fallback+1:], true
}

// escaped reports whether an odd number of backslashes stands before b[i].
func escaped(b []byte, i int) bool {
	n := 0
	for n < i && b[i-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// statusOf reads a space and three digits, or a space and "-" for none, at the
// beginning of b. It returns -1 where there is neither.
func statusOf(b []byte) int {
	if len(b) >= 2 && b[0] == ' ' && b[1] == '-' && (len(b) == 2 || b[2] == ' ') {
		return 0
	}
	if len(b) < 4 || b[0] != ' ' || (len(b) > 4 && b[4] != ' ') {
		return -1
	}
	h, t, o := b[1]-'0', b[2]-'0', b[3]-'0'
	if h > 9 || t > 9 || o > 9 {
		return -1
	}
	return int(h)*100 + int(t)*10 + int(o)
}

// splitRequest takes the first word for the method and the last for the
// protocol, so that a target may hold raw spaces. Nil: no request line.
func splitRequest(b []byte) (method, target []byte) {
	first, last := bytes.IndexByte(b, ' '), bytes.LastIndexByte(b, ' ')
	if first <= 0 || last <= first+1 || !bytes.HasPrefix(b[last+1:], []byte("HTTP/")) {
		return nil, nil
	}
	for _, c := range b[:first] {
		if (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return nil, nil
		}
	}
	return b[:first], b[first+1 : last]
}

// shapeOf counts the quoted fields that follow the status, and returns what
// follows the last of them.
func shapeOf(b []byte) (s shape, tail []byte) {
	quoted := 0
	for off := 0; ; quoted++ {
		i := bytes.IndexByte(b[off:], '"')
		if i < 0 {
			tail = b[off:]
			break
		}
		off += i + 1
		end := closing(b[off:])
		if end < 0 {
			return extra, nil
		}
		off += end + 1
		if off < len(b) && b[off] != ' ' {
			return extra, nil
		}
	}
	switch quoted {
	case 0:
		return common, nil
	case 2:
		return combined, tail
	}
	return extra, tail
}

// closing is the place of the next quote that is not escaped, or -1.
func closing(b []byte) int {
	for off := 0; ; {
		i := bytes.IndexByte(b[off:], '"')
		if i < 0 {
			return -1
		}
		i += off
		if !escaped(b, i) {
			return i
		}
		off = i + 1
	}
}

// inScope reports whether a request target lies at or below prefix, which has no
// slash at its end. Scheme and host of an absolute target are passed over.
func inScope(target []byte, prefix string) bool {
	if i := bytes.Index(target, []byte("://")); i >= 0 && target[0] != '/' {
		target = target[i+3:]
		slash := bytes.IndexByte(target, '/')
		if slash < 0 {
			return prefix == ""
		}
		target = target[slash:]
	}
	if len(target) < len(prefix) || string(target[:len(prefix)]) != prefix {
		return false
	}
	return len(target) == len(prefix) || bytes.IndexByte([]byte("/?#"), target[len(prefix)]) >= 0
}
