package server_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/server"
)

// advance moves the frozen clock.
func (f *fixture) advance(us int64) {
	f.Helper()
	f.control(http.MethodPost, "/clock/advance", wire.Advance{Microseconds: us}, nil)
}

// TestWaitingAsLongAsTold obeys the server's own answers, to the microsecond: at
// Retry-After the next request is admitted and at RateLimit-Reset the burst is
// there; the token itself is there when it is due and not before (HDR-4 to HDR-7,
// RATE-8, RATE-10). The rates have token times of a whole number of seconds, of
// a fraction, and of no whole number of microseconds.
func TestWaitingAsLongAsTold(t *testing.T) {
	f := start(t, server.Config{Clock: wire.ClockFrozen})
	for _, c := range []struct {
		rate, burst int64
		token       int64 // microseconds for one token, rounded up
		retry       string
	}{
		{10, 10, 6_000_000, "6"},
		{60, 3, 1_000_000, "1"},
		{7, 2, 8_571_429, "9"},
		{301, 5, 199_336, "1"},
		{1, 1, 60_000_000, "60"},
	} {
		t.Run(strconv.FormatInt(c.rate, 10), func(t *testing.T) {
			f := f.in(t)
			u := f.newUser("pro") // a cap that sequential requests never meet
			f.control(http.MethodPut, "/users/"+u.ID+"/overrides/requests-per-minute", wire.Override{Value: c.rate}, nil)
			f.control(http.MethodPut, "/users/"+u.ID+"/overrides/burst", wire.Override{Value: c.burst}, nil)
			for range c.burst {
				require.Equal(t, http.StatusOK, f.calculate(u.Keys[0]).StatusCode)
			}
			rejected := func(retry string) answer {
				a := f.calculate(u.Keys[0])
				require.Equal(t, contract.CodeRateLimited, a.code(t))
				require.Equal(t, "0", a.Header.Get("RateLimit-Remaining"))
				require.Equal(t, retry, a.Header.Get("Retry-After"))
				return a
			}
			rejected(c.retry)
			rejected(c.retry) // a rejection moves nothing
			f.advance(c.token - 1)
			rejected("1")
			f.advance(1)
			require.Equal(t, http.StatusOK, f.calculate(u.Keys[0]).StatusCode, "the token is due")
			a := rejected(c.retry)

			retry, err := strconv.ParseInt(a.Header.Get("Retry-After"), 10, 64)
			require.NoError(t, err)
			f.advance(retry * 1_000_000)
			last := f.calculate(u.Keys[0])
			require.Equal(t, http.StatusOK, last.StatusCode, "waiting Retry-After is enough")

			reset, err := strconv.ParseInt(last.Header.Get("RateLimit-Reset"), 10, 64)
			require.NoError(t, err)
			f.advance(reset * 1_000_000)
			for range c.burst {
				require.Equal(t, http.StatusOK, f.calculate(u.Keys[0]).StatusCode, "waiting RateLimit-Reset is enough")
			}
			rejected(c.retry)
		})
	}
}
