package target_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

// framed is a server that speaks HTTP/2 frame by frame: peer is told of each
// request once its head is there.
func framed(t *testing.T, f func(p *peer)) string {
	t.Helper()
	return raw(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		if _, err := br.Discard(len(http2.ClientPreface)); err != nil {
			return
		}
		p := &peer{Framer: http2.NewFramer(c, br)}
		p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		p.SetMaxReadFrameSize(1 << 14)
		p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000}, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 14})
		for {
			frame, err := p.ReadFrame()
			if err != nil {
				return
			}
			if head, ok := frame.(*http2.MetaHeadersFrame); ok {
				p.head, p.ended = head.Fields, head.StreamEnded()
				f(p)
			}
		}
	})
}

// peer is the other side of one connection.
type peer struct {
	*http2.Framer
	head  []hpack.HeaderField
	ended bool
}

func (p *peer) field(name string) (values []string) {
	for _, f := range p.head {
		if f.Name == name {
			values = append(values, f.Value)
		}
	}
	return values
}

// body reads to the end of the request, and opens the windows as it goes.
func (p *peer) body() string {
	var b strings.Builder
	for !p.ended {
		frame, err := p.ReadFrame()
		if err != nil {
			return b.String()
		}
		if data, ok := frame.(*http2.DataFrame); ok {
			b.Write(data.Data())
			p.ended = data.StreamEnded()
			if n := uint32(len(data.Data())); n > 0 {
				p.WriteWindowUpdate(0, n)
				p.WriteWindowUpdate(1, n)
			}
		}
	}
	return b.String()
}

// says sends a head; fields are names and values in turn.
func (p *peer) says(last bool, fields ...string) {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	rest := block.Bytes()
	first := rest[:min(len(rest), 1<<14)]
	rest = rest[len(first):]
	p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: first, EndHeaders: len(rest) == 0, EndStream: last})
	for len(rest) > 0 {
		n := min(len(rest), 1<<14)
		p.WriteContinuation(1, n == len(rest), rest[:n])
		rest = rest[n:]
	}
}

// overHTTP2 is fileFor a server that is asked in HTTP/2.
func overHTTP2(url string) target.File {
	f := fileFor(url)
	f.Protocol, f.OutsideQuotas = target.HTTP2, nil
	return f
}

// TestFieldsGoOutAsTheyAreMeant: names in lower case, each line for itself, the
// body as far as the windows are open, and no key in anybody's table.
func TestFieldsGoOutAsTheyAreMeant(t *testing.T) {
	type request struct {
		p    peer
		body string
	}
	got := make(chan request, 1)
	url := framed(t, func(p *peer) {
		got <- request{*p, p.body()}
		p.says(false, ":status", "103")
		p.says(true, ":status", "204", "x-request-id", "r1", "x-twice", "a", "x-twice", "b")
	})
	tg := open(t, overHTTP2(url))
	u := lease(t, tg, "free", 1)
	large := tg.Valid()
	large.Body = bytes.Repeat([]byte("0123456789"), 20_000) // far beyond what a connection may send at first
	e := tg.Send(t.Context(), u, large)
	require.NoError(t, e.Err)
	require.Equal(t, 204, e.Status)
	require.Equal(t, "r1", e.Answer.RequestID.Value)
	require.Equal(t, []string{"a", "b"}, e.Header.Values("X-Twice"))
	require.Contains(t, e.Curl, "curl -i --http2-prior-knowledge -X POST ")
	r := <-got
	require.Equal(t, string(large.Body), r.body)
	for name, want := range map[string]string{":method": "POST", ":scheme": "http", ":authority": strings.TrimPrefix(url, "http://"), ":path": "/v1/invoice/calculate",
		"authorization": "Bearer " + theKey, "content-type": "application/json", "content-length": "200000", "x-kind": "it's valid"} {
		require.Equal(t, []string{want}, r.p.field(name), name)
	}
	require.Regexp(t, `^brimline/`, r.p.field("user-agent")[0])
	for _, f := range r.p.head {
		require.True(t, f.Sensitive, f.Name)
		require.NotContains(t, []string{"connection", "host", "expect", "transfer-encoding"}, f.Name)
	}

	twice := target.Request{Method: "OPTIONS", Path: "http://elsewhere.example/v1//x", Authorization: []string{tg.Credential("a"), "Basic b"}, Header: http.Header{"X-Long": {strings.Repeat("x", 40_000)}}}
	require.NoError(t, tg.SendApart(t.Context(), nil, twice).Err)
	r = <-got
	require.Equal(t, []string{"elsewhere.example", "/v1//x"}, append(r.p.field(":authority"), r.p.field(":path")...), "an absolute target has a field for its host")
	require.Equal(t, []string{"Bearer a", "Basic b"}, r.p.field("authorization"))
	require.Len(t, r.p.field("x-long")[0], 40_000)

	twice.Header = http.Header{"Connection": {"close"}}
	require.ErrorContains(t, tg.SendApart(t.Context(), nil, twice).Err, `header "Connection" cannot be sent over HTTP/2`)
}

// TestAnswersOverHTTP2: they are bounded, and what is no whole answer says why.
func TestAnswersOverHTTP2(t *testing.T) {
	ok := func(p *peer, fields ...string) { p.says(false, append([]string{":status", "200"}, fields...)...) }
	for name, c := range map[string]struct {
		answer func(p *peer)
		body   string // of a whole answer, or a part of what is wrong
		whole  bool
	}{
		"a large body": {func(p *peer) {
			ok(p)
			for range 65 {
				p.WriteData(1, false, make([]byte, 1<<14))
			}
		}, "larger than 1048576 bytes", false},
		"a large head":       {func(p *peer) { p.says(true, ":status", "200", "x", strings.Repeat("\x01x", 1<<20)) }, "no whole answer", false},
		"a cut body":         {func(p *peer) { ok(p, "content-length", "10"); p.WriteData(1, true, []byte("short")) }, "unexpected EOF", false},
		"a reset":            {func(p *peer) { ok(p); p.WriteRSTStream(1, http2.ErrCodeInternal) }, "the stream was reset: INTERNAL_ERROR", false},
		"a refusal":          {func(p *peer) { p.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil) }, "the connection was given up: ENHANCE_YOUR_CALM", false},
		"no status":          {func(p *peer) { p.says(true, "x", "y") }, "an answer without a status", false},
		"a body alone":       {func(p *peer) { p.WriteData(1, true, []byte("x")) }, "an answer without a status", false},
		"a name in capitals": {func(p *peer) { p.says(true, ":status", "200", "X-Loud", "y") }, "stream error", false},
		"a bad length":       {func(p *peer) { ok(p, "content-length", "-1"); p.WriteData(1, true, nil) }, "bad Content-Length", false},
		"more than was said": {func(p *peer) { ok(p, "content-length", "1"); p.WriteData(1, true, []byte("two")) }, "more than the 1 bytes", false},
		"only interim": {func(p *peer) {
			for range 100 {
				p.says(false, ":status", "102")
			}
		}, "only interim answers came", false},
		"in pieces, a question between": {func(p *peer) {
			ok(p)
			p.WriteData(1, false, []byte("hel"))
			p.WritePing(false, [8]byte{1})
			p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 9})
			p.WriteGoAway(1, http2.ErrCodeNo, nil)
			p.WriteDataPadded(1, false, []byte("lo"), make([]byte, 9))
			p.says(true, "a-trailer", "t")
		}, "hello", true},
		"whole before the stream ends": {func(p *peer) {
			ok(p, "content-length", "5")
			p.WriteData(1, false, []byte("hello"))
			p.WriteRSTStream(1, http2.ErrCodeNo)
		}, "hello", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := framed(t, func(p *peer) {
				if p.field("authorization") != nil {
					p.body()
					c.answer(p)
				}
			})
			tg := open(t, overHTTP2(url))
			e := tg.Send(t.Context(), lease(t, tg, "free", 1), tg.Valid())
			if c.whole {
				require.NoError(t, e.Err)
				require.Equal(t, c.body, string(e.Body))
				return
			}
			require.ErrorContains(t, e.Err, c.body)
			require.LessOrEqual(t, len(e.Body), 1<<20)
		})
	}
}

// TestWhoSpeaksNoHTTP2IsRefused: in one line, before anything else.
func TestWhoSpeaksNoHTTP2IsRefused(t *testing.T) {
	quiet := func(s *httptest.Server) *httptest.Server {
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		return s
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	older := quiet(httptest.NewUnstartedServer(http.NotFoundHandler()))
	older.StartTLS() // and no HTTP/2
	defer older.Close()
	newer := quiet(httptest.NewUnstartedServer(http.NotFoundHandler()))
	newer.EnableHTTP2 = true
	newer.StartTLS()
	defer newer.Close()
	for url, says := range map[string]string{
		plain.URL:                 "protocol: declared, but untrue: " + plain.URL + ` does not speak HTTP/2; accepted: a server that does, or "http/1.1"`,
		older.URL:                 "protocol: declared, but untrue: " + older.URL + ` does not speak HTTP/2; accepted: a server that does, or "http/1.1"`,
		raw(t, func(net.Conn) {}): "does not speak HTTP/2",
		newer.URL:                 "",
	} {
		tg, err := target.Open(t.Context(), overHTTP2(url), target.Options{Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret(theKey)}}})
		if says == "" {
			require.NoError(t, err)
			require.Contains(t, tg.Describe(), "  HTTP/2  ")
			require.True(t, tg.Has(contract.NeedHTTP1), "it speaks that as well")
			require.NoError(t, tg.Close())
			continue
		}
		require.ErrorContains(t, err, says)
		require.NotErrorIs(t, err, target.ErrAway)
		require.ErrorIs(t, err, target.ErrUntrue)
		require.NotContains(t, err.Error(), "\n")
	}

	f := overHTTP2("http://127.0.0.1:1")
	_, err := target.Open(t.Context(), f, target.Options{})
	require.ErrorIs(t, err, target.ErrAway, "nobody is there")
	f.Protocol = "h3"
	_, err = target.Open(t.Context(), f, target.Options{})
	require.EqualError(t, err, `protocol: "h3"; accepted: "http/1.1", "h2"`)
}

// TestHTTP2EndsWithItsContext: also where the other side says nothing at all.
func TestHTTP2EndsWithItsContext(t *testing.T) {
	said := make(chan struct{}, 2)
	mute := raw(t, func(c net.Conn) {
		io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
		said <- struct{}{}
		io.Copy(io.Discard, c)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-said; cancel() }()
	_, err := target.Open(ctx, overHTTP2(mute), target.Options{})
	require.ErrorIs(t, err, context.Canceled)

	_, err = target.Open(t.Context(), overHTTP2(mute), target.Options{Patience: time.Millisecond})
	require.ErrorIs(t, err, target.ErrAway)
	require.ErrorContains(t, err, "does not answer within 1ms")

	ctx, cancel = context.WithCancel(t.Context())
	tg := open(t, overHTTP2(framed(t, func(p *peer) {
		if p.field("authorization") != nil {
			cancel()
		}
	})))
	require.Error(t, tg.Send(ctx, lease(t, tg, "free", 1), tg.Valid()).Err)
}

// TestInFlightOverHTTP2: a request can be held, let go and dropped, and a drop is
// seen while its connection stays open.
func TestInFlightOverHTTP2(t *testing.T) {
	s, f := reference(t, control.ClockFrozen, 0)
	f.Protocol, f.Can.HTTP2 = target.HTTP2, false
	tg, err := target.Open(t.Context(), f, target.Options{ControlToken: target.NewSecret(s.ControlToken())})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tg.Close()) })
	require.True(t, tg.Has(contract.NeedHTTP2), "it needs no word of it")
	for _, place := range []target.Place{target.PlaceUpload, target.PlaceAuthentication, target.PlaceEngine, target.PlaceResponse} {
		u := lease(t, tg, "free", 1)
		h, e := tg.Hold(t.Context(), u, tg.Valid(), place)
		require.NotNil(t, h, "%s: %v", place, e.Err)
		innocent(t, h.Finish(t.Context()), 200, "")
		for _, leave := range []func(*target.Held){(*target.Held).Drop, (*target.Held).Reset} {
			h, e = tg.Hold(t.Context(), u, tg.Valid(), place)
			require.NotNil(t, h, "%s: %v", place, e.Err)
			leave(h)
			require.Error(t, h.Await(t.Context()).Err)
		}
		require.NoError(t, tg.Return(t.Context(), u))
	}
}
