package lean

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
)

// smallBody is how long a body may be that leaves with its head, in one write.
const smallBody = 16 << 10

// mostKept bounds the buffer for heads that a connection keeps.
const mostKept = 64 << 10

// errBody says that a body is not what the request says of it.
var errBody = errors.New("the request's body")

// send writes a request. A body that is not small is written while the answer is
// waited for, since a server may answer before it has read everything.
func (c *conn) send(r *http.Request) error {
	c.heard, c.rest, c.broke = false, nil, nil
	c.out = appendHead(c.out[:0], r)
	defer func() {
		if cap(c.out) > mostKept {
			c.out = nil
		}
	}()
	if r.Body == nil || r.Body == http.NoBody {
		_, err := c.Write(c.out)
		return err
	}
	if r.ContentLength <= smallBody {
		head, whole := len(c.out), len(c.out)+int(r.ContentLength)
		c.out = slices.Grow(c.out, int(r.ContentLength))[:whole]
		err := fill(r.Body, c.out[head:])
		if closed := r.Body.Close(); err == nil && closed != nil {
			err = fmt.Errorf("%w: %w", errBody, closed)
		}
		if err != nil {
			return err
		}
		_, err = c.Write(c.out)
		return err
	}
	if _, err := c.Write(c.out); err != nil {
		_ = r.Body.Close()
		return err
	}
	rest := make(chan error, 1)
	c.rest = rest
	go func() {
		err := c.stream(r.Body, r.ContentLength)
		if closed := r.Body.Close(); err == nil && closed != nil {
			err = fmt.Errorf("%w: %w", errBody, closed)
		}
		rest <- err
		if errors.Is(err, errBody) {
			_ = c.Conn.Close() // nobody is going to answer
		}
	}()
	return nil
}

// fill reads a body of exactly so many bytes.
func fill(body io.Reader, to []byte) error {
	if n, err := io.ReadFull(body, to); err != nil {
		return fmt.Errorf("%w: %d bytes of %d: %w", errBody, n, len(to), err)
	}
	return ended(body)
}

// ended refuses a body that goes on.
func ended(body io.Reader) error {
	var one [1]byte
	switch n, err := io.ReadFull(body, one[:]); {
	case n > 0:
		return fmt.Errorf("%w: longer than its length", errBody)
	case err != io.EOF:
		return fmt.Errorf("%w: %w", errBody, err)
	}
	return nil
}

// stream writes a body of exactly so many bytes.
func (c *conn) stream(body io.Reader, n int64) error {
	buffer := make([]byte, 32<<10)
	for n > 0 {
		part := buffer[:min(n, int64(len(buffer)))]
		if _, err := io.ReadFull(body, part); err != nil {
			return fmt.Errorf("%w: %d bytes are missing: %w", errBody, n, err)
		}
		if n -= int64(len(part)); n == 0 {
			if err := ended(body); err != nil {
				return err
			}
		}
		if _, err := c.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// appendHead writes a head. Headers go out as they are spelled, in order.
func appendHead(b []byte, r *http.Request) []byte {
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	b = append(append(b, method...), ' ')
	b = append(append(b, r.URL.RequestURI()...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, host(r)...), "\r\n"...)
	var few [16]string
	names := few[:0]
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer": // said by the request itself
			continue
		}
		for _, v := range r.Header[name] {
			b = append(append(b, name...), ": "...)
			b = append(append(b, v...), "\r\n"...)
		}
	}
	if r.ContentLength > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		b = strconv.AppendInt(append(b, "Content-Length: "...), r.ContentLength, 10)
		b = append(b, "\r\n"...)
	}
	if r.Close && !closes(r.Header) {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}
