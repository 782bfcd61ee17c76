package oracle_test

import (
	"fmt"
	"math/big"
	"net/http"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// server is a limiter with a bucket of exact fractions of a token. With a fault
// it is wrong in one way.
type server struct {
	oracle.Allowance
	fault string
	level *big.Rat // tokens; nil: never asked
	at    int64
	was   oracle.Allowance
}

// ask is what becomes of a request: its status when nothing stops it, and
// whether the cap is full.
type ask struct {
	status  int // 200, 404, 422, 500; 401 and 503 are decided before the bucket
	capFull bool
}

func tokens(n int64) *big.Rat { return big.NewRat(n, 1) }

// settle brings the bucket to an instant and under the allowance of now.
func (s *server) settle(at int64) {
	if s.level == nil {
		s.level, s.at, s.was = tokens(s.Burst), at, s.Allowance
		if s.fault == "starts-one-short" {
			s.level = tokens(s.Burst - 1)
		}
		if s.fault == "burst-is-rpm" {
			s.level = tokens(s.RequestsPerMinute)
		}
		return
	}
	refill := big.NewRat(s.was.RequestsPerMinute, 60_000_000)
	refill.Mul(refill, big.NewRat(at-s.at, 1))
	switch s.fault {
	case "refill-double":
		refill.Mul(refill, tokens(2))
	case "refill-half":
		refill.Mul(refill, big.NewRat(1, 2))
	case "refill-never":
		refill = tokens(0)
	}
	s.level.Add(s.level, refill)
	if most := tokens(s.was.Burst); s.level.Cmp(most) > 0 && s.fault != "overfill" && s.fault != "burst-is-rpm" {
		s.level = most
	}
	s.at = at
	if s.was.Burst != s.Burst {
		s.scale()
	}
	s.was = s.Allowance
}

func (s *server) scale() {
	from, to := s.was.Burst, s.Burst
	switch s.fault {
	case "plan-change-full":
		s.level = tokens(to)
	case "plan-change-absolute":
		s.level = least(s.level, tokens(to))
	case "plan-change-deficit":
		s.level.Add(tokens(to-from), s.level)
		s.level = most(s.level, tokens(0))
	case "plan-change-empty":
		s.level = tokens(0)
	default:
		s.level.Mul(s.level, big.NewRat(to, from))
		units := new(big.Rat).Mul(s.level, tokens(60_000_000))
		s.level = big.NewRat(0, 1).SetFrac(floor(units), big.NewInt(60_000_000))
	}
}

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return new(big.Rat).Set(a)
	}
	return new(big.Rat).Set(b)
}

func most(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) > 0 {
		return new(big.Rat).Set(a)
	}
	return new(big.Rat).Set(b)
}

func floor(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) }

func ceil(r *big.Rat) int64 {
	n := new(big.Rat).Neg(r)
	return -floor(n).Int64()
}

// seconds is the exact time until the bucket holds want tokens.
func (s *server) seconds(want *big.Rat) *big.Rat {
	missing := new(big.Rat).Sub(want, s.level)
	return missing.Mul(missing, big.NewRat(60, s.RequestsPerMinute))
}

// answer decides one request at an instant.
func (s *server) answer(at int64, q ask) contract.Answer {
	switch q.status {
	case http.StatusUnauthorized:
		h := map[string]string{}
		if s.fault == "401-leaks-headers" {
			h[contract.HeaderLimit] = fmt.Sprint(s.Burst)
		}
		return render(401, contract.CodeUnauthenticated, h)
	case http.StatusServiceUnavailable:
		h := map[string]string{}
		if s.fault == "503-leaks-headers" {
			h[contract.HeaderRemaining] = "0"
		}
		return render(503, contract.CodeConfigUnavailable, h)
	}
	if s.fault == "plan-change-ignored" && s.level != nil {
		s.Allowance = s.was
	}
	s.settle(at)

	if s.fault == "concurrency-before-token" && q.capFull {
		return s.withHeaders(429, contract.CodeConcurrencyLimited)
	}
	if s.fault == "validation-before-token" && q.status == 422 || s.fault == "404-free" && q.status == 404 {
		return s.withHeaders(q.status, "")
	}
	if s.level.Cmp(tokens(1)) < 0 {
		if s.fault == "reject-penalises" {
			s.level.Sub(s.level, tokens(1))
		}
		code := contract.CodeRateLimited
		if s.fault == "rate-wrong-code" {
			code = "SLOW_DOWN"
		}
		status := 429
		if s.fault == "rate-503" {
			status = 503
		}
		return s.withHeaders(status, code)
	}
	cost := tokens(1)
	if s.fault == "cost-two" {
		cost = tokens(2)
	}
	s.level.Sub(s.level, cost)
	a := s.withHeaders(q.status, "")
	refund := false
	if q.capFull {
		code := contract.CodeConcurrencyLimited
		if s.fault == "conc-wrong-code" {
			code = contract.CodeRateLimited
		}
		a = s.withHeaders(429, code)
		refund = s.fault == "token-refund-on-conc"
	}
	refund = refund || s.fault == "refund-on-validation" && q.status == 422 || s.fault == "refund-on-engine-failure" && q.status == 500
	if refund {
		s.level.Add(s.level, tokens(1))
	}
	return a
}

// withHeaders renders the bucket as it is now.
func (s *server) withHeaders(status int, code string) contract.Answer {
	rejected, conc := code == contract.CodeRateLimited || code == "SLOW_DOWN", code == contract.CodeConcurrencyLimited
	limit, remaining := s.Burst, floor(s.level).Int64()
	reset, retry := ceil(s.seconds(tokens(s.Burst))), max(1, ceil(s.seconds(tokens(1))))
	if rejected {
		remaining = max(remaining, 0)
	}
	set := map[string]string{}
	text := func(n int64) string { return fmt.Sprint(n) }
	conv := map[string]func(int64) string{contract.HeaderLimit: text, contract.HeaderRemaining: text, contract.HeaderReset: text, contract.HeaderRetryAfter: text}
	withRetry := rejected || conc
	if conc {
		retry = 1
	}
	twice, without := "", false
	switch s.fault {
	case "remaining-plus-one":
		remaining++
	case "remaining-minus-one":
		remaining = max(0, remaining-1)
	case "remaining-ceil":
		remaining = ceil(s.level)
	case "remaining-negative-429":
		if rejected {
			remaining = -1
		}
	case "remaining-nonzero-429":
		if rejected {
			remaining = 1
		}
	case "reset-one-token":
		reset = max(0, ceil(s.seconds(tokens(1))))
	case "reset-floor":
		reset = floor(s.seconds(tokens(s.Burst))).Int64()
	case "reset-epoch":
		reset += 1_800_000_000
	case "reset-fixed-60":
		reset = 60
	case "limit-is-rpm":
		limit = s.RequestsPerMinute
	case "limit-policy-suffix":
		conv[contract.HeaderLimit] = func(n int64) string { return fmt.Sprintf("%d, 10;w=60", n) }
	case "fractional":
		conv[contract.HeaderReset] = func(n int64) string { return fmt.Sprintf("%d.0", n) }
	case "duplicate-headers":
		twice = contract.HeaderRemaining
	case "retry-after-floor":
		if rejected {
			retry = floor(s.seconds(tokens(1))).Int64()
		}
	case "retry-after-zero":
		if rejected {
			retry = 0
		}
	case "retry-after-const-1":
		if rejected {
			retry = 1
		}
	case "retry-after-60":
		if rejected {
			retry = 60
		}
	case "retry-after-plus-one":
		if rejected {
			retry++
		}
	case "retry-after-is-reset":
		if rejected {
			retry = reset
		}
	case "retry-after-date":
		if conc {
			break
		}
		conv[contract.HeaderRetryAfter] = func(int64) string { return "Mon, 30 Nov 2026 12:00:00 GMT" }
	case "no-retry-after":
		withRetry = withRetry && !rejected
	case "conc-retry-after-0":
		if conc {
			retry = 0
		}
	case "conc-retry-after-5":
		if conc {
			retry = 5
		}
	case "conc-no-retry-after":
		withRetry = withRetry && !conc
	case "conc-remaining-is-permits":
		if conc {
			remaining = 0
		}
	case "no-headers-200", "no-headers-404", "no-headers-400", "no-headers-5xx":
		without = map[string]int{"no-headers-200": 200, "no-headers-404": 404, "no-headers-400": 422, "no-headers-5xx": 500}[s.fault] == status
	case "no-headers-rate-429":
		without = rejected
	case "no-headers-conc-429":
		without = conc
	}
	if !without {
		set[contract.HeaderLimit] = conv[contract.HeaderLimit](limit)
		set[contract.HeaderRemaining] = conv[contract.HeaderRemaining](remaining)
		set[contract.HeaderReset] = conv[contract.HeaderReset](reset)
	}
	if withRetry {
		set[contract.HeaderRetryAfter] = conv[contract.HeaderRetryAfter](retry)
	}
	return render(status, code, set, twice)
}

func render(status int, code string, set map[string]string, twice ...string) contract.Answer {
	h := http.Header{"X-Request-Id": {"r1"}}
	for name, v := range set {
		h.Add(name, v)
		if strings.Join(twice, "") == name {
			h.Add(name, v)
		}
	}
	var body string
	if status >= 400 {
		if code == "" {
			code = "SOMETHING_ELSE"
		}
		h.Set("Content-Type", "application/json")
		body = fmt.Sprintf(`{"requestId":"r1","errorCode":%q,"message":"no"}`, code)
	}
	return contract.ParseAnswer(status, h, []byte(body))
}
