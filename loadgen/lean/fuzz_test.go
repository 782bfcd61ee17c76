package lean_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/lean"
)

// script is a connection that says what it is told, in two parts, and then ends.
type script struct {
	net.Conn // nil: nothing else is called
	parts    [2][]byte
}

func (s *script) Read(p []byte) (int, error) {
	for i := range s.parts {
		if n := copy(p, s.parts[i]); n > 0 {
			s.parts[i] = s.parts[i][n:]
			return n, nil
		}
	}
	return 0, io.EOF
}
func (s *script) Write(p []byte) (int, error)      { return len(p), nil }
func (s *script) Close() error                     { return nil }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// model is what net/http's reader makes of bytes.
func model(text []byte, r *http.Request) (*http.Response, []byte, error) {
	in := bufio.NewReader(bytes.NewReader(text))
	for {
		resp, err := http.ReadResponse(in, r)
		switch {
		case err != nil:
			return nil, nil, err
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, nil, lean.ErrSwitched // deliberately: the one answer that one takes and the other refuses
		case resp.StatusCode/100 == 1:
			continue
		}
		body, err := io.ReadAll(resp.Body)
		return resp, body, err
	}
}

// FuzzResponse: whatever comes means what net/http's reader says it means, in
// one piece or in two.
func FuzzResponse(f *testing.F) {
	for _, o := range oddities() {
		f.Add([]byte(o.answer), uint16(0), o.method == http.MethodHead)
		f.Add([]byte(o.answer), uint16(len(o.answer)/2), o.method == http.MethodHead)
	}
	f.Fuzz(func(t *testing.T, text []byte, split uint16, head bool) {
		if len(text) >= lean.MaxHead {
			t.Skip("net/http's reader has no bound of its own")
		}
		at := min(int(split), len(text))
		transport := &lean.Transport{Dial: func(context.Context, netip.Addr, string) (net.Conn, error) {
			return &script{parts: [2][]byte{text[:at], text[at:]}}, nil
		}}
		r, err := http.NewRequest(http.MethodGet, "http://server/", nil)
		require.NoError(t, err)
		if head {
			r.Method = http.MethodHead
		}
		want, wantBody, wantErr := model(text, r)
		got, err := transport.RoundTrip(r)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(got.Body)
			require.NoError(t, got.Body.Close())
		}
		if got == nil || want == nil {
			require.True(t, got == nil && want == nil, "one was refused: %v, %v", err, wantErr)
			if len(text) > 0 { // else: EOF in other words
				require.Equal(t, wantErr.Error(), err.Error())
			}
			return
		}
		require.Equal(t, kind(wantErr), kind(err), "%v, %v", wantErr, err)
		require.Equal(t, wantBody, body)
		want.Body, got.Body = nil, nil
		require.Equal(t, want, got)
	})
}

// kind sorts errors as a load run does, and a little finer.
func kind(err error) string {
	var network net.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	case isReset(err):
		return "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed"
	case strings.Contains(err.Error(), "malformed"):
		return "malformed"
	}
	return "other"
}
