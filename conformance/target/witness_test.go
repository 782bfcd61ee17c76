package target_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

// openStalling is open for a server to which an upload can be stalled.
func openStalling(t *testing.T, url string) *target.Target {
	t.Helper()
	f := fileFor(url)
	f.Can.StalledUpload = true
	return open(t, f)
}

const refusal = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"

// stalling is a server that refuses bad keys at once and gives the connection of
// a good one to f, with what came first.
func stalling(t *testing.T, f func(c net.Conn, head string)) string {
	t.Helper()
	return raw(t, func(c net.Conn) {
		buf := make([]byte, 4096)
		n, _ := c.Read(buf)
		switch head := string(buf[:n]); {
		case n == 0:
		case !strings.Contains(head, theKey):
			io.WriteString(c, refusal)
		default:
			f(c, head)
		}
	})
}

func TestAnEarlyAnswerToAnUpload(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(429)
		io.WriteString(w, `{"requestId":"r","errorCode":"CONCURRENCY_LIMIT_EXCEEDED","message":"m"}`)
	}))
	defer s.Close()
	tg := openStalling(t, s.URL)
	u := lease(t, tg, "free", 1)
	h, e := tg.Hold(t.Context(), u, tg.Valid(), target.PlaceUpload)
	require.Nil(t, h)
	require.NoError(t, e.Err)
	require.Equal(t, 429, e.Status)
	require.Equal(t, "CONC-2", e.Findings[0].Clause, "it has no RateLimit headers")
}

func TestNoWitness(t *testing.T) {
	tg := openStalling(t, stalling(t, func(c net.Conn, _ string) { io.Copy(io.Discard, c) }))
	u := lease(t, tg, "free", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	h, e := tg.Hold(ctx, u, tg.Valid(), target.PlaceUpload)
	require.Nil(t, h)
	require.ErrorIs(t, e.Err, target.ErrNoWitness)

	short := tg.Valid()
	short.Body = []byte("x")
	h, e = tg.Hold(t.Context(), u, short, target.PlaceUpload)
	require.Nil(t, h)
	require.ErrorIs(t, e.Err, target.ErrUnsupported)
}

// A proxy or a framework that says 100 Continue to everybody is no witness: what
// its target file declares is not believed.
func TestContinueForEverybodyIsNoWitness(t *testing.T) {
	url := raw(t, func(c net.Conn) {
		head := make([]byte, 4096)
		switch n, _ := c.Read(head); {
		case strings.Contains(string(head[:n]), "100-continue"):
			io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
			io.Copy(io.Discard, c)
		case n > 0:
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	tg := openStalling(t, url)
	require.False(t, tg.CanHold(target.PlaceUpload))
	require.False(t, tg.Has(contract.NeedHold))
	require.Contains(t, tg.Describe(), "can: invalid (100 Continue comes to everybody, so a stalled upload shows nothing)")
	require.EqualValues(t, 1, tg.Charged(), "the one that asked whether what is left of a bucket could show it")
}

// One that says so to good keys alone, and decides later, cannot be told apart
// before it has decided. The rejection that follows must not turn the oracle
// against what comes then.
func TestAWitnessThatIsNone(t *testing.T) {
	rejection := "HTTP/1.1 429 Too Many\r\nContent-Type: application/json\r\nRateLimit-Limit: 10\r\nRateLimit-Remaining: 0\r\nRateLimit-Reset: 60\r\nRetry-After: 6\r\nContent-Length: 65\r\n\r\n" +
		`{"requestId":"r","errorCode":"RATE_LIMIT_EXCEEDED","message":"m"}`
	tg := openStalling(t, stalling(t, func(c net.Conn, head string) {
		if strings.Contains(head, "100-continue") {
			io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
			io.ReadFull(c, make([]byte, len(`{"a":1}`)))
		}
		io.WriteString(c, rejection)
	}))
	u := lease(t, tg, "free", 1)
	h, e := tg.Hold(t.Context(), u, tg.Valid(), target.PlaceUpload)
	require.NotNil(t, h, "%v", e.Err)
	e = h.Finish(t.Context())
	require.NoError(t, e.Err)
	require.Equal(t, 429, e.Status)
	e = tg.Send(t.Context(), u, tg.Valid())
	require.NoError(t, e.Err)
	require.Empty(t, e.Findings)
}
