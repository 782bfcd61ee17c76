package target

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// http1 is a conversation in HTTP/1.1.
type http1 struct {
	*line
	br    *bufio.Reader
	asked message
	sent  int // of its body
}

func newHTTP1(l *line) *http1 {
	c := &http1{line: l, br: bufio.NewReader(io.LimitReader(l.Conn, maxAnswer))}
	return c
}

// spell writes a message's head out.
//
// A request that is sent whole asks for the connection to be closed: a server
// does so when it is done with the request, permit and all. One whose body is
// held back does not ask, since a server that knows of the close answers early
// rejections sooner than it otherwise would.
func (m message) spell() []byte {
	if m.spelled != nil {
		return m.spelled
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", m.method, m.path, m.host)
	for _, l := range m.lines {
		fmt.Fprintf(&b, "%s: %s\r\n", l[0], l[1])
	}
	if !m.names("Connection") && !m.names("Expect") {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

func (c *http1) ask(m message, body int) {
	c.asked, c.sent = m, body
	_, _ = c.Write(append(m.spell(), m.body[:body]...))
}

func (c *http1) more(body int) {
	_, _ = c.Write(c.asked.body[c.sent:body])
	c.sent = body
}

func (c *http1) read(now func() int64, interim func(status int)) (answer, error) {
	for range maxInterim {
		resp, err := http.ReadResponse(c.br, &http.Request{Method: c.asked.method})
		if err != nil {
			return answer{}, err
		}
		if resp.StatusCode < http.StatusOK {
			interim(resp.StatusCode)
			continue
		}
		a := answer{status: resp.StatusCode, header: resp.Header, headAt: now()}
		a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
		if err == nil && len(a.body) > maxBody {
			a.body, err = a.body[:maxBody], errTooLarge
		}
		a.closes = err == nil && resp.Close
		return a, err
	}
	return answer{}, errOnlyInterim
}

// What is wrong with answers in any protocol.
var (
	errTooLarge    = fmt.Errorf("the answer's body is larger than %d bytes", maxBody)
	errOnlyInterim = errors.New("only interim answers came")
)

// awaitClose waits for the close that an answer announced. A server that still
// expects a body does not close before it has given that up.
func (c *http1) awaitClose() {
	c.SetReadDeadline(time.Now().Add(c.patience.farewell()))
	c.br.Peek(1)
}

func (c *http1) drop() { c.Close() }
