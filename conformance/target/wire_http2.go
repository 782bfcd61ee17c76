package target

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	theStream = 1       // of each connection, and the only one
	maxHead   = 1 << 20 // of an answer
)

// http2Conn is a conversation in HTTP/2: one stream on a connection of its own.
// Frames are written here and not by net/http's transport for the same reasons
// that HTTP/1.1 is spelled out: a field goes out as it was asked for, nothing is
// sent twice, and it is known when the head of the answer was there.
type http2Conn struct {
	*line
	scheme string
	framer *http2.Framer // one goroutine reads from it

	mu       sync.Mutex // of all that writes
	out      *bufio.Writer
	asked    message
	sent, to int   // of its body: so much is, up to there it may be
	window   int64 // what the connection may still send
	stream   int64 // what the stream may
	initial  int64 // what a stream may at first
	frame    int   // the most in one frame
}

func newHTTP2(l *line, scheme string) *http2Conn {
	c := &http2Conn{line: l, scheme: scheme, out: bufio.NewWriter(l.Conn), window: 65535, stream: 65535, initial: 65535, frame: 16 << 10}
	c.framer = http2.NewFramer(c.out, io.LimitReader(l.Conn, maxAnswer))
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.framer.MaxHeaderListSize = maxHead
	return c
}

// greet exchanges settings with whoever is there. The windows are as wide as all
// that is ever read, so that they never have to be widened.
func (c *http2Conn) greet(ctx context.Context) error {
	c.follow(ctx)
	c.write(func() {
		_, _ = c.out.WriteString(http2.ClientPreface)
		_ = c.framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxAnswer},
			http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxHead})
		_ = c.framer.WriteWindowUpdate(0, maxAnswer)
	})
	f, err := c.framer.ReadFrame()
	if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
		return fmt.Errorf("no settings of HTTP/2 came: %w", err)
	}
	if settings, ok := f.(*http2.SettingsFrame); err != nil || !ok || settings.IsAck() {
		return errNotSpoken
	}
	return c.heed(f)
}

// write lets one goroutine at a time write frames. What cannot be written shows
// when the answer is read.
func (c *http2Conn) write(frames func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	frames()
	_ = c.out.Flush()
}

func (c *http2Conn) ask(m message, body int) {
	c.write(func() {
		c.asked, c.to = m, body
		block := c.fields(m)
		first := block[:min(len(block), c.frame)]
		rest := block[len(first):]
		_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: theStream, BlockFragment: first, EndHeaders: len(rest) == 0, EndStream: len(m.body) == 0})
		for len(rest) > 0 {
			n := min(len(rest), c.frame)
			_ = c.framer.WriteContinuation(theStream, n == len(rest), rest[:n])
			rest = rest[n:]
		}
		c.push()
	})
}

// fields is a message's head. No field is indexed, so that a key is in no table
// of anybody's. The host of an absolute target has a field of its own here.
func (c *http2Conn) fields(m message) []byte {
	authority, path := m.host, m.path
	if !strings.HasPrefix(path, "/") {
		if _, rest, absolute := strings.Cut(path, "://"); absolute {
			authority, path, _ = strings.Cut(rest, "/")
			path = "/" + path
		}
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, l := range append([][2]string{{":method", m.method}, {":scheme", c.scheme}, {":authority", authority}, {":path", path}}, m.lines...) {
		_ = encoder.WriteField(hpack.HeaderField{Name: strings.ToLower(l[0]), Value: l[1], Sensitive: true}) // a buffer takes everything
	}
	return block.Bytes()
}

func (c *http2Conn) more(body int) {
	c.write(func() {
		c.to = body
		c.push()
	})
}

// push sends what may be sent of the body, as far as the windows are open.
func (c *http2Conn) push() {
	for c.sent < c.to {
		n := int(min(int64(c.to-c.sent), int64(c.frame), c.window, c.stream))
		if n <= 0 {
			return
		}
		if c.framer.WriteData(theStream, c.sent+n == len(c.asked.body), c.asked.body[c.sent:c.sent+n]) != nil {
			return
		}
		c.sent, c.window, c.stream = c.sent+n, c.window-int64(n), c.stream-int64(n)
	}
}

// What ends a stream before its answer is whole.
var (
	errDropped  = errors.New("the stream was reset by this side")
	errNoStatus = errors.New("an answer without a status")
)

// heed does what a frame asks for that is no part of an answer. Its errors say
// that no answer is to come any more.
func (c *http2Conn) heed(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			return nil
		}
		c.write(func() {
			_ = f.ForeachSetting(c.set)
			_ = c.framer.WriteSettingsAck()
			c.push()
		})
	case *http2.WindowUpdateFrame:
		c.write(func() {
			switch f.StreamID {
			case 0:
				c.window += int64(f.Increment)
			case theStream:
				c.stream += int64(f.Increment)
			}
			c.push()
		})
	case *http2.PingFrame:
		if f.IsAck() {
			return errDropped
		}
		c.write(func() { _ = c.framer.WritePing(true, f.Data) })
	case *http2.RSTStreamFrame:
		if f.StreamID == theStream {
			return fmt.Errorf("the stream was reset: %s", f.ErrCode)
		}
	case *http2.GoAwayFrame:
		if f.LastStreamID < theStream {
			return fmt.Errorf("the connection was given up: %s", f.ErrCode)
		}
	}
	return nil
}

func (c *http2Conn) set(s http2.Setting) error {
	switch s.ID {
	case http2.SettingInitialWindowSize:
		c.stream += int64(s.Val) - c.initial
		c.initial = int64(s.Val)
	case http2.SettingMaxFrameSize:
		c.frame = int(s.Val)
	}
	return nil
}

// next is the next frame of the answer, after heeding those that are none.
func (c *http2Conn) next() (http2.Frame, error) {
	for {
		f, err := c.framer.ReadFrame()
		switch {
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		}
		if f.Header().StreamID == theStream {
			switch f.(type) {
			case *http2.MetaHeadersFrame, *http2.DataFrame:
				return f, nil
			}
		}
		if err := c.heed(f); err != nil {
			return nil, err
		}
	}
}

func (c *http2Conn) read(now func() int64, interim func(status int)) (a answer, err error) {
	for said := 0; a.status == 0; said++ {
		f, err := c.next()
		if err != nil {
			return a, err
		}
		head, ok := f.(*http2.MetaHeadersFrame)
		if !ok {
			return a, errNoStatus
		}
		status, err := strconv.ParseUint(head.PseudoValue("status"), 10, 16)
		switch {
		case err != nil || status < 100 || status > 999:
			return a, errNoStatus
		case head.Truncated:
			return a, fmt.Errorf("the answer's head is larger than %d bytes", maxHead)
		case status >= http.StatusOK:
			a = answer{status: int(status), header: headerOf(head), headAt: now()}
			if head.StreamEnded() {
				return a, nil
			}
		case said == maxInterim || head.StreamEnded():
			return a, errOnlyInterim
		default:
			interim(int(status))
		}
	}
	return c.readBody(a)
}

func headerOf(f *http2.MetaHeadersFrame) http.Header {
	h := http.Header{}
	for _, field := range f.RegularFields() {
		h.Add(field.Name, field.Value)
	}
	return h
}

// readBody reads up to the end of the stream, or of the length that was said: a
// server may end the stream only when it is done with the request.
func (c *http2Conn) readBody(a answer) (answer, error) {
	length := int64(-1)
	if text := a.header.Get("Content-Length"); text != "" && c.asked.method != http.MethodHead {
		n, err := strconv.ParseUint(text, 10, 62)
		if err != nil {
			return a, fmt.Errorf("bad Content-Length %q", text)
		}
		length = int64(n)
	}
	for ended := false; ; {
		switch got := int64(len(a.body)); {
		case got > maxBody:
			a.body = a.body[:maxBody]
			return a, errTooLarge
		case length >= 0 && got > length:
			return a, fmt.Errorf("a body of more than the %d bytes that were said", length)
		case ended && got < length:
			return a, io.ErrUnexpectedEOF
		case got == length || ended:
			a.closes = !ended
			return a, nil
		}
		f, err := c.next()
		if err != nil {
			return a, err
		}
		switch f := f.(type) {
		case *http2.DataFrame:
			a.body, ended = append(a.body, f.Data()...), f.StreamEnded()
		case *http2.MetaHeadersFrame:
			ended = f.StreamEnded()
		}
	}
}

// awaitClose waits for the end of the stream.
func (c *http2Conn) awaitClose() {
	c.SetReadDeadline(time.Now().Add(c.patience.farewell()))
	for {
		f, err := c.next()
		if err != nil || f.Header().Flags.Has(http2.FlagDataEndStream) { // the same flag for a head
			return
		}
	}
}

// drop resets the stream and leaves its connection open until the other side has
// seen that.
func (c *http2Conn) drop() {
	c.SetDeadline(time.Now().Add(c.patience.farewell()))
	c.write(func() {
		_ = c.framer.WriteRSTStream(theStream, http2.ErrCodeCancel)
		_ = c.framer.WritePing(false, [8]byte{})
	})
}
