package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
)

// ending ends a request of u and says what the client saw of it. An error is
// something that may not happen.
type ending func(r *rand.Rand, u wire.User) (saw string, err error)

func named(line string) string {
	return strings.Replace(goodInvoice, `"description":"x"`, fmt.Sprintf("%q:%q", "description", line), 1)
}

// endings are all the ways, by name.
func (s *soak) endings() map[string]ending {
	ways := map[string]ending{
		"1: success":            s.answered(s.whole("x"), "200"),
		"1: validation failure": s.answered(s.text(func(u wire.User) string { return head(u.Keys[0], 2) + "{}" }), "422"),
		"1: oversize body":      s.answered(s.text(func(u wire.User) string { return head(u.Keys[0], 6<<10) + strings.Repeat(" ", 6<<10) }), "422"),
		"1: not found":          s.answered(s.text(func(u wire.User) string { return at("GET /v1/invoice/x", u.Keys[1], "") }), "404"),
		"1: wrong method":       s.answered(s.text(func(u wire.User) string { return at("PUT /v1/invoice/calculate", u.Keys[1], "Content-Length: 0\r\n") }), "405"),
		"1: no operation left":  s.answered(s.text(func(wire.User) string { return head(s.poor.Keys[0], len(goodInvoice)) + goodInvoice }), "402"),
		"1: rate rejection":     s.answered(s.text(func(wire.User) string { return head(s.slow.Keys[0], 1000) + "{" }), "429"),
		"1: engine failure":     s.answered(s.whole("fail"), "500"),
		"1: engine panic":       s.answered(s.whole("panic"), "500"),
		"1: engine Goexit":      s.answered(s.whole("goexit"), "500"),
		"1: timeout, obeyed":    s.answered(s.whole("obey"), "504"),
		"1: timeout, ignored":   s.answered(s.whole("stubborn"), "200"),
		"1: slow work":          s.answered(s.whole("slow"), "200", "504"),
		"1: stalled upload":     s.answered(s.text(func(u wire.User) string { return head(u.Keys[0], 1000) + "{" }), "422"),
		"1: stalled chunks": s.answered(s.text(func(u wire.User) string {
			return at("POST /v1/invoice/calculate", u.Keys[0], "Transfer-Encoding: chunked\r\n") + "5\r\nhel"
		}), "422"),
		"1: panic in a link":       s.answered(s.text(func(u wire.User) string { return at("GET /v1/invoice/x", u.Keys[0], "X-Panic: x\r\n") }), "EOF"),
		"1: abort in a link":       s.answered(s.text(func(u wire.User) string { return at("GET /v1/invoice/x", u.Keys[0], "X-Panic: abort\r\n") }), "EOF"),
		"1: three in one write":    s.pipelined,
		"1: half-close in body":    s.left(s.part, func(_ *rand.Rand, c *net.TCPConn) { c.CloseWrite(); io.Copy(io.Discard, c) }),
		"1: half-close at work":    s.left(s.whole("slow"), func(_ *rand.Rand, c *net.TCPConn) { c.CloseWrite(); io.Copy(io.Discard, c) }),
		"1: gone before the body":  s.left(s.text(func(u wire.User) string { return head(u.Keys[0], 1000) }), gone),
		"1: gone in the body":      s.left(s.part, gone),
		"1: gone at work":          s.left(s.whole("slow"), gone),
		"1: gone at long work":     s.left(s.whole("obey"), gone),
		"1: gone after a timeout":  s.left(s.whole("stubborn"), func(_ *rand.Rand, c *net.TCPConn) { io.CopyN(io.Discard, c, 1); reset(c) }),
		"1: gone in the response":  s.left(s.whole("x"), func(_ *rand.Rand, c *net.TCPConn) { io.CopyN(io.Discard, c, 1); reset(c) }),
		"1: gone with the request": s.left(s.whole("x"), func(_ *rand.Rand, c *net.TCPConn) { reset(c) }),
		"2: success":               s.over2("x", 0, "200"),
		"2: validation failure":    s.over2("", 0, "422"),
		"2: engine failure":        s.over2("fail", 0, "500"),
		"2: engine panic":          s.over2("panic", 0, "500"),
		"2: timeout, obeyed":       s.over2("obey", 0, "504"),
		"2: timeout, ignored":      s.over2("stubborn", 0, "200"),
		"2: reset at once":         s.over2("x", time.Microsecond, "200", "reset"),
		"2: reset at work":         s.over2("slow", 3*time.Millisecond, "200", "504", "reset"),
		"2: reset at long work":    s.over2("obey", 10*time.Millisecond, "reset"),
		"2: reset in the body":     s.halfSent2,
		"2: panic in a link":       s.over2("link", 0, "torn by the server"),
		"2: unread response":       s.unread2,
		"2: connection cut":        s.cut2,
	}
	return ways
}

// at is a request without a body.
func at(line, key, more string) string {
	return line + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key + "\r\n" + more + "\r\n"
}

func (s *soak) text(f func(wire.User) string) func(wire.User) string { return f }

func (s *soak) whole(line string) func(wire.User) string {
	body := named(line)
	return func(u wire.User) string { return head(u.Keys[0], len(body)) + body }
}

func (s *soak) part(u wire.User) string { return head(u.Keys[0], len(goodInvoice)) + goodInvoice[:20] }

// connect opens a connection from one of many addresses, so that ports suffice.
func (s *soak) connect(r *rand.Rand) (*net.TCPConn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(r.IntN(16)), byte(1+r.IntN(250)))}}
	c, err := d.Dial("tcp", s.Addr().String())
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn), nil
}

// expect is what a client saw, and an error if that may not be.
func expect(saw string, want []string) (string, error) {
	// The cap may be full at any time, and on a busy machine any work may run into
	// its timeout, and any body come too late.
	for _, w := range append(want, "429", "504", "422") {
		if saw == w {
			return saw, nil
		}
	}
	return saw, fmt.Errorf("got %s, want %v", saw, want)
}

// answered sends a text and waits for its answer.
func (s *soak) answered(text func(wire.User) string, want ...string) ending {
	return func(r *rand.Rand, u wire.User) (string, error) {
		c, err := s.connect(r)
		if err != nil {
			return "", err
		}
		defer c.Close()
		if _, err := io.WriteString(c, text(u)); err != nil {
			return "", err
		}
		return expect(read(bufio.NewReader(c)), want)
	}
}

func read(r *bufio.Reader) string {
	resp, err := http.ReadResponse(r, nil)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "EOF"
	}
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(resp.StatusCode)
}

func (s *soak) pipelined(r *rand.Rand, u wire.User) (string, error) {
	c, err := s.connect(r)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, strings.Repeat(at("GET /v1/invoice/x", u.Keys[0], ""), 3)); err != nil {
		return "", err
	}
	b := bufio.NewReader(c)
	for range 3 {
		if saw, err := expect(read(b), []string{"404"}); err != nil {
			return saw, err
		}
	}
	return "3 answers", nil
}

// left sends a text and goes away in some way.
func (s *soak) left(text func(wire.User) string, leave func(*rand.Rand, *net.TCPConn)) ending {
	return func(r *rand.Rand, u wire.User) (string, error) {
		c, err := s.connect(r)
		if err != nil {
			return "", err
		}
		defer c.Close()
		if _, err := io.WriteString(c, text(u)); err != nil {
			return "", err
		}
		leave(r, c)
		return "left", nil
	}
}

// gone is a client that goes away after a while, one way or the other.
func gone(r *rand.Rand, c *net.TCPConn) {
	time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
	if r.IntN(2) == 0 {
		reset(c)
		return
	}
	c.Close()
}

// over2 sends a request over one of the HTTP/2 connections and resets its stream
// within a time, unless that is 0.
func (s *soak) over2(line string, within time.Duration, want ...string) ending {
	return func(r *rand.Rand, u wire.User) (string, error) {
		body := named(line)
		if line == "" {
			body = "{}"
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if within > 0 {
			ctx, cancel = context.WithTimeoutCause(context.Background(), time.Duration(1+r.Int64N(int64(within))), errReset)
		}
		defer cancel()
		began := time.Now()
		saw, err := expect(s.roundTrip2(ctx, u, strings.NewReader(body), line == "link"), want)
		if err != nil {
			err = fmt.Errorf("%w, after %v", err, time.Since(began))
		}
		return saw, err
	}
}

// errReset is why a context ends whose request is to be reset.
var errReset = errors.New("it is time to go")

func (s *soak) roundTrip2(ctx context.Context, u wire.User, body io.Reader, inLink bool) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/invoice/calculate", body)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+u.Keys[0])
	if inLink {
		req.Header.Set("X-Panic", "x")
	}
	resp, err := s.http2.RoundTrip(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	switch {
	case err == nil:
		return fmt.Sprint(resp.StatusCode)
	case errors.Is(context.Cause(ctx), errReset):
		return "reset"
	case strings.Contains(err.Error(), "INTERNAL_ERROR"):
		return "torn by the server"
	}
	return err.Error()
}

// halfSent2 sends a part of a body and resets the stream.
func (s *soak) halfSent2(r *rand.Rand, u wire.User) (string, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Duration(1+r.IntN(3000))*time.Microsecond, errReset)
	defer cancel()
	in, out := io.Pipe()
	defer in.Close()
	go io.WriteString(out, goodInvoice[:20])
	return expect(s.roundTrip2(ctx, u, in, false), []string{"reset"})
}

// unread2 lets no byte of the answer's body through and goes away after a while,
// or never.
func (s *soak) unread2(r *rand.Rand, u wire.User) (string, error) {
	c, err := s.connect(r)
	if err != nil {
		return "", err
	}
	defer c.Close()
	h := newH2(s.T, c, 0)
	id := h.send(operation(u.Keys[0]), goodInvoice)
	if r.IntN(16) > 0 {
		gone(r, c)
		return "left", nil
	}
	return expect(h.answer(id).status, []string{"200 reset INTERNAL_ERROR", "429 reset INTERNAL_ERROR", "422 reset INTERNAL_ERROR", "504 reset INTERNAL_ERROR"})
}

// cut2 has several streams on one connection when that is cut.
func (s *soak) cut2(r *rand.Rand, u wire.User) (string, error) {
	c, err := s.connect(r)
	if err != nil {
		return "", err
	}
	defer c.Close()
	h := newH2(s.T, c, 1<<16)
	for range 1 + r.IntN(4) {
		h.send(operation(u.Keys[0]), named([]string{"x", "slow", "obey", "stubborn"}[r.IntN(4)]))
	}
	gone(r, c)
	return "left", nil
}
