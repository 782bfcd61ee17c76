package lean

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// whole is a response and its body in one piece of memory.
type whole struct {
	http.Response
	body body
}

// answer reads the head of an answer, past those that only say that one is to
// come. The body has its connection yet to be told.
func (c *conn) answer(r *http.Request, trace *httptrace.ClientTrace) (*http.Response, *body, error) {
	c.left = MaxHead
	if _, err := c.in.Peek(1); err != nil {
		return nil, nil, err
	}
	c.heard = true
	if trace != nil && trace.GotFirstResponseByte != nil {
		trace.GotFirstResponseByte()
	}
	for {
		a, body, err := c.head(r)
		switch {
		case err != nil && c.fault != nil:
			return nil, nil, c.fault // a line that was cut by it may have been found fault with
		case err != nil:
			return nil, nil, err
		case a.StatusCode == http.StatusSwitchingProtocols:
			return nil, nil, ErrSwitched
		case a.StatusCode/100 == 1:
			continue
		}
		c.left = math.MaxInt64
		return a, body, nil
	}
}

func closes(h http.Header) bool {
	list, ok := h["Connection"]
	return ok && httpguts.HeaderValuesContainsToken(list, "close")
}

// head reads one head: a plain one here, any other by net/http.
func (c *conn) head(r *http.Request) (*http.Response, *body, error) {
	if w := c.plain(r); w != nil {
		return &w.Response, &w.body, nil
	}
	a, err := http.ReadResponse(c.in, r)
	if err != nil {
		return nil, nil, err
	}
	return a, &body{src: a.Body}, nil
}

// plain reads a head of the usual form, if all of it has come: HTTP/1.1, a status
// with a body, every line a name and a value and ended by CR LF, one
// Content-Length, and no other header that says how to read on. Nil: it is not
// one, and nothing was taken off.
func (c *conn) plain(r *http.Request) *whole {
	come, _ := c.in.Peek(c.in.Buffered())
	end := bytes.Index(come, []byte("\r\n\r\n"))
	if end < 0 || r.Method == http.MethodHead {
		return nil
	}
	text := string(come[:end+2]) // every line with its end; names and values are parts of it
	line, rest, _ := strings.Cut(text, "\r\n")
	status, ok := statusOf(line)
	if !ok {
		return nil
	}
	w := &whole{Response: http.Response{
		Status: line[len("HTTP/1.1 "):], StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Request: r,
	}}
	a, n := &w.Response, strings.Count(rest, "\r\n")
	a.Header = make(http.Header, n)
	values := make([]string, 0, n)
	for rest != "" {
		line, rest, _ = strings.Cut(rest, "\r\n")
		name, value, ok := field(line)
		if !ok {
			return nil
		}
		name = c.canonical(name)
		switch name {
		case "Content-Length":
			if a.ContentLength >= 0 || !number(value) {
				return nil
			}
			for i := range len(value) {
				a.ContentLength = 10*max(a.ContentLength, 0) + int64(value[i]-'0')
			}
		case "Transfer-Encoding", "Trailer", "Pragma":
			return nil
		case "Connection":
			if value != "keep-alive" {
				return nil
			}
		}
		if before, ok := a.Header[name]; ok {
			a.Header[name] = append(before, value)
			continue
		}
		values = append(values, value)
		a.Header[name] = values[len(values)-1 : len(values) : len(values)]
	}
	if a.ContentLength < 0 {
		return nil
	}
	_, _ = c.in.Discard(end + 4) // it is in the buffer
	w.body.left = a.ContentLength
	if a.ContentLength == 0 {
		a.Body = http.NoBody
	}
	return w
}

// statusOf is the status in a line such as "HTTP/1.1 200 OK".
func statusOf(line string) (status int, ok bool) {
	if len(line) < len("HTTP/1.1 200 x") || !strings.HasPrefix(line, "HTTP/1.1 ") || line[12] != ' ' || line[13] == ' ' {
		return 0, false
	}
	for _, d := range []byte(line[9:12]) {
		if d < '0' || d > '9' {
			return 0, false
		}
		status = 10*status + int(d-'0')
	}
	bodiless := status == http.StatusNoContent || status == http.StatusNotModified
	return status, status >= 200 && !bodiless && !strings.ContainsAny(line, "\r\n")
}

// field is a header's line in two.
func field(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, ":")
	if !ok || !httpguts.ValidHeaderFieldName(name) {
		return "", "", false
	}
	value = strings.Trim(value, " \t")
	for i := range len(value) {
		if b := value[i]; b < ' ' && b != '\t' || b == 0x7f {
			return "", "", false
		}
	}
	return name, value, true
}

// number reports whether a length has a few digits and nothing else.
func number(value string) bool {
	if value == "" || len(value) > 15 {
		return false
	}
	for i := range len(value) {
		if value[i] < '0' || value[i] > '9' {
			return false
		}
	}
	return true
}

// mostNames bounds how many spellings a connection remembers.
const mostNames = 64

// canonical is the name as Go spells it.
func (c *conn) canonical(name string) string {
	first := true // of a word
	for i := range len(name) {
		b := name[i]
		if first && 'a' <= b && b <= 'z' || !first && 'A' <= b && b <= 'Z' {
			known, ok := c.names[name]
			if !ok {
				known = textproto.CanonicalMIMEHeaderKey(name)
				if len(c.names) < mostNames {
					c.names[strings.Clone(name)] = known
				}
			}
			return known
		}
		first = b == '-'
	}
	return name
}

// body is that of an answer.
type body struct {
	t    *Transport
	c    *conn // nil: it has been given back
	r    *http.Request
	src  io.Reader // nil: the next left bytes of the connection
	left int64
	keep bool  // the connection may be used again
	err  error // of every Read from now on
}

func (b *body) Read(p []byte) (n int, err error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if b.src != nil {
		n, err = b.src.Read(p)
	} else if n, err = b.c.in.Read(p[:min(int64(len(p)), b.left)]); true {
		b.left -= int64(n)
		switch {
		case b.left == 0:
			err = io.EOF
		case err == io.EOF:
			err = io.ErrUnexpectedEOF
		}
	}
	if err != nil {
		b.end(err)
	}
	return n, b.err
}

// Close gives the connection back: if the body was not read to its end, closed.
func (b *body) Close() error {
	if b.c != nil {
		b.keep = false
		b.end(http.ErrBodyReadAfterClose)
	}
	return nil
}

// end gives the connection back. Bytes that nobody asked for are never taken for
// the next answer. Err is nil where there is no body.
func (b *body) end(err error) {
	if err != nil && err != io.EOF {
		b.keep = false
		if b.c.fault != nil {
			err = b.c.fault
		}
		if gone := b.r.Context().Err(); gone != nil && err != http.ErrBodyReadAfterClose {
			err = gone
		}
	}
	c := b.c
	b.c, b.err = nil, err
	if b.keep && c.settled() && c.in.Buffered() == 0 {
		b.t.keep(c)
	} else {
		b.t.drop(c)
	}
}
