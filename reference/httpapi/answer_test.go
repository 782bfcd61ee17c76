package httpapi

import (
	"encoding/json"
	"math/big"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

func TestSeconds(t *testing.T) {
	for _, c := range []struct{ us, want int64 }{
		{0, 0}, {1, 1}, {999_999, 1}, {1_000_000, 1}, {1_000_001, 2}, {1_999_999, 2}, {2_000_000, 2},
		{59_999_999, 60}, {60_000_000, 60}, {1<<63 - 1, 9_223_372_036_855},
	} {
		require.Equal(t, c.want, seconds(c.us), "%d µs", c.us)
	}
}

// TestSecondsOfExactTime: the bucket rounds the exact time up to microseconds
// and the header rounds those up to seconds; that is the exact time in seconds,
// rounded up once. So whoever waits that long finds the token, and a second less
// would not do.
func TestSecondsOfExactTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1, 1_000_000).Draw(t, "rate")
		burst := rapid.Int64Range(1, 1_000_000).Draw(t, "burst")
		missing := rapid.Int64Range(1, burst*bucket.Token).Draw(t, "missing units")
		s := bucket.State{Level: burst*bucket.Token - missing, Rate: rate, Burst: burst}

		exact := big.NewRat(missing, rate) // microseconds
		exact.Quo(exact, big.NewRat(1_000_000, 1))
		want := new(big.Int).Add(exact.Num(), new(big.Int).Sub(exact.Denom(), big.NewInt(1)))
		want.Div(want, exact.Denom())
		got := seconds(s.ToFull(0))
		require.Equal(t, want.Int64(), got)

		a, err := policy.NewAllowance(rate, burst, 1)
		require.NoError(t, err)
		require.Equal(t, burst*bucket.Token, s.Settled(a, bucket.Instant(got)*1_000_000).Level, "waiting is enough")
		require.Less(t, s.Settled(a, bucket.Instant(got-1)*1_000_000).Level, burst*bucket.Token, "waiting less is not")
	})
}

func decided(t *testing.T, level, toFull int64) *limiter.Decision {
	t.Helper()
	a, err := policy.NewAllowance(10, 20, 3)
	require.NoError(t, err)
	return &limiter.Decision{Decision: admission.Decision{Outcome: admission.Admitted, Allowance: a, Level: level, ToFull: toFull}}
}

func TestComposeAnError(t *testing.T) {
	x := &Exchange{ID: "req_1", Decision: decided(t, 7*bucket.Token+bucket.Token-1, 77_000_001)}
	a := Compose(x, Reply{Status: 404, Code: "NOT_FOUND", Message: "there is \"nothing\"", Header: http.Header{"Allow": {"POST"}}})
	require.Equal(t, 404, a.Status)
	require.Equal(t, http.Header{
		"Content-Type":        {"application/json"},
		"X-Request-Id":        {"req_1"},
		"Allow":               {"POST"},
		"Ratelimit-Limit":     {"20"},
		"Ratelimit-Remaining": {"7"},
		"Ratelimit-Reset":     {"78"},
	}, a.Header)
	var body map[string]string
	require.NoError(t, json.Unmarshal(a.Body, &body))
	require.Equal(t, map[string]string{"requestId": "req_1", "errorCode": "NOT_FOUND", "message": "there is \"nothing\""}, body)
}

func TestComposeWithoutADecision(t *testing.T) {
	a := Compose(&Exchange{ID: "req_2"}, Reply{Status: 200, Body: []byte(`{}`)})
	require.Equal(t, http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req_2"}}, a.Header)
	require.Equal(t, `{}`, string(a.Body))
}

func TestCut(t *testing.T) {
	require.Equal(t, "abc", cut("abc", 3))
	require.Equal(t, "ab", cut("abc", 2))
	require.Equal(t, "ä", cut("äö", 3), "no half characters")
	require.Equal(t, "ab", cut("a\xffb", 9))
}
