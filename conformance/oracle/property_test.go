package oracle_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// world is a server and a client whose clocks tick in whole microseconds, each
// with a phase of its own. Time itself is in nanoseconds.
type world struct {
	t      *rapid.T
	server *server
	phase  int64 // of the server's clock, below one microsecond
	now    int64 // nanoseconds
	frozen bool
	bucket *oracle.Bucket
	claims []func() []oracle.Finding // of the requests in flight
}

func drawAllowance(t *rapid.T, label string) oracle.Allowance {
	size := rapid.SampledFrom([]int64{1, 2, 7, 10, 13, 60, 299, 1_000_000})
	return oracle.Allowance{
		RequestsPerMinute: rapid.OneOf(size, rapid.Int64Range(1, 1_000_000)).Draw(t, label+" rpm"),
		Burst:             rapid.OneOf(size, rapid.Int64Range(1, 40)).Draw(t, label+" burst"),
		Concurrency:       2,
	}
}

func newWorld(t *rapid.T) *world {
	a := drawAllowance(t, "first")
	w := &world{t: t, server: &server{Allowance: a}, bucket: oracle.NewFull(a),
		phase: rapid.Int64Range(0, 999).Draw(t, "phase"), frozen: rapid.Bool().Draw(t, "frozen")}
	w.now = rapid.Int64Range(0, 1e15).Draw(t, "begin")
	if w.frozen {
		w.now -= w.now % 1000
		w.phase = 0
	}
	if rapid.Bool().Draw(t, "unknown start") {
		for range rapid.IntRange(0, 12).Draw(t, "requests before we came") {
			w.server.answer(w.serverTime(w.now), ok)
		}
		w.bucket = oracle.NewUnknown(a, (w.now+999)/1000)
	}
	return w
}

func (w *world) serverTime(ns int64) int64 { return (ns + w.phase) / 1000 }

// pass lets time pass: nothing, a moment, about a token, or an age.
func (w *world) pass(label string) {
	token := int64(60e9) / w.server.RequestsPerMinute
	d := rapid.OneOf(
		rapid.Just(int64(0)), rapid.Int64Range(0, 5_000), rapid.Int64Range(0, 50e6),
		rapid.Int64Range(max(0, token-2_000), token+2_000), rapid.Int64Range(0, 3*token),
		rapid.Int64Range(0, 2*token*w.server.Burst), rapid.Int64Range(0, 3_155_760_000e9),
	).Draw(w.t, label)
	if w.now > 4e18 {
		d = 0 // three centuries are enough
	}
	if w.frozen {
		d -= d % 1000
	}
	w.now += d
}

// trip is one round trip: when the decision fell, and what the client knows of it.
func (w *world) trip() (int64, oracle.Span) {
	if w.frozen {
		return w.now / 1000, oracle.Span{From: w.now / 1000, To: w.now / 1000}
	}
	from := w.now
	w.pass("there")
	at := w.now
	w.pass("back")
	return w.serverTime(at), oracle.Span{From: from / 1000, To: (w.now + 999) / 1000}
}

func (w *world) ask() ask {
	return rapid.SampledFrom([]ask{ok, ok, ok, ok, invalid, unknown, failing, overCap, nobody, badPolicy}).Draw(w.t, "ask")
}

func (w *world) innocent(what string, found []oracle.Finding) {
	if len(found) > 0 {
		w.t.Fatalf("%s of a correct server: %+v", what, found)
	}
	lo, hi := w.bucket.LevelAt(w.now/1000 + 1)
	if lo < 0 || lo > hi || hi > w.bucket.Allowance().Burst*oracle.Token {
		w.t.Fatalf("after %s the level is %d to %d", what, lo, hi)
	}
}

// TestACorrectServerIsNeverAccused lets a model that shares nothing with the
// oracle answer random schedules: the decision falls anywhere inside the round
// trip, plans change, time leaps, requests run side by side, hang or get lost.
func TestACorrectServerIsNeverAccused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		actions := map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				at, span := w.trip()
				w.innocent("an answer", w.bucket.Judge(w.server.answer(at, w.ask()), span))
			},
			"drain": func(t *rapid.T) {
				for range min(30, int(w.server.Burst)+2) {
					at, span := w.trip()
					w.innocent("a drain", w.bucket.Judge(w.server.answer(at, ok), span))
				}
			},
			"pass": func(t *rapid.T) { w.pass("idle") },
			"change": func(t *rapid.T) {
				w.server.Allowance = drawAllowance(t, "next")
				w.bucket.Change(w.server.Allowance)
			},
			"hold": func(t *rapid.T) {
				at, span := w.trip()
				if lo, _ := w.bucket.LevelAt(span.From); lo < oracle.Token {
					t.Skip("it might be rejected")
				}
				a := w.server.answer(at, ok)
				c, found := w.bucket.Spend(span)
				w.innocent("a hold", found)
				w.claims = append(w.claims, func() []oracle.Finding { return c.Judge(a) })
			},
			"finish": func(t *rapid.T) {
				if len(w.claims) == 0 {
					t.Skip("none in flight")
				}
				i := rapid.IntRange(0, len(w.claims)-1).Draw(t, "which")
				w.innocent("a held answer", w.claims[i]())
				w.claims = slices.Delete(w.claims, i, i+1)
			},
			"lose": func(t *rapid.T) {
				at, span := w.trip()
				if rapid.Bool().Draw(t, "arrived") {
					w.server.answer(at, ok)
				}
				w.bucket.Lose(span)
			},
			"together": func(t *rapid.T) { w.together() },
			"restful": func(t *rapid.T) {
				if w.bucket.Width() >= oracle.Token {
					at, span := w.trip()
					w.innocent("a probe", w.bucket.Judge(w.server.answer(at, ok), span))
				}
				n := rapid.Int64Range(1, w.bucket.Allowance().Burst).Draw(t, "tokens")
				w.now = (w.now+999)/1000*1000 + w.bucket.WaitFor(n)*1000
				at, span := w.trip()
				if lo, _ := w.bucket.LevelAt(span.From); lo < n*oracle.Token {
					t.Fatalf("waited for %d tokens, %d units are certain", n, lo)
				}
				w.innocent("an answer after a wait", w.bucket.Judge(w.server.answer(at, ok), span))
			},
		}
		t.Repeat(actions)
	})
}

// together sends several requests whose decisions fall anywhere in one window,
// in any order.
func (w *world) together() {
	n := rapid.IntRange(1, 14).Draw(w.t, "how many")
	type one struct {
		at   int64
		span oracle.Span
	}
	var all []one
	begin := w.now
	for range n {
		w.now = begin
		at, span := w.trip()
		all = append(all, one{at, span})
	}
	for _, o := range all { // the next request begins after the last answer
		w.now = max(w.now, o.span.To*1000)
	}
	slices.SortStableFunc(all, func(a, b one) int { return int(a.at - b.at) })
	samples := make([]oracle.Sample, n)
	var answers []contract.Answer // of those still in flight
	for i, o := range all {
		a := w.server.answer(o.at, w.ask())
		samples[i] = oracle.Sample{Answer: &a, Span: o.span}
		if a.Status == 200 && rapid.Bool().Draw(w.t, "still in flight") {
			samples[i].Answer = nil
			answers = append(answers, a)
		}
	}
	claims, found := w.bucket.JudgeParallel(samples)
	w.innocent("requests side by side", found)
	if len(claims) != len(answers) {
		w.t.Fatalf("%d claims for %d requests in flight", len(claims), len(answers))
	}
	for i, c := range claims {
		w.claims = append(w.claims, func() []oracle.Finding { return c.Judge(answers[i]) })
	}
}

// TestAWrongServerIsAccusedAtOnce runs a wrong server beside a correct one on a
// clock that stands still between requests. Up to their first difference nothing
// is found; at it, something is.
func TestAWrongServerIsAccusedAtOnce(t *testing.T) {
	names := slices.Sorted(maps.Keys(faults))
	rapid.Check(t, func(t *rapid.T) {
		a := drawAllowance(t, "the")
		wrong := &server{Allowance: a, fault: rapid.SampledFrom(names).Draw(t, "fault")}
		right := &server{Allowance: a}
		b := oracle.NewFull(a)
		token := 60 * second / a.RequestsPerMinute
		var now int64
		for range 60 {
			if rapid.IntRange(0, 3).Draw(t, "wait?") == 0 {
				now += rapid.OneOf(rapid.Int64Range(0, 3*token+second), rapid.Int64Range(0, 4*token*a.Burst)).Draw(t, "wait")
			}
			q := rapid.SampledFrom([]ask{ok, ok, ok, invalid, unknown, failing, overCap, nobody, badPolicy}).Draw(t, "ask")
			got, want := wrong.answer(now, q), right.answer(now, q)
			found := b.Judge(got, oracle.Span{From: now, To: now})
			if reflect.DeepEqual(got, want) {
				if len(found) > 0 {
					t.Fatalf("nothing is wrong yet: %+v", found)
				}
				continue
			}
			if len(found) == 0 {
				t.Fatalf("%+v instead of %+v was not found", got, want)
			}
			return
		}
	})
}

// FuzzJudge looks for answers that crash the oracle or leave it with a level
// that no bucket can have.
func FuzzJudge(f *testing.F) {
	f.Add(int64(10), int64(10), 200, "10", "9", "6", "", "", int64(0), int64(5))
	f.Add(int64(1), int64(1), 429, "1", "0", "60", "60", contract.CodeRateLimited, int64(0), int64(5))
	f.Add(int64(60), int64(20), 429, "-1", "999999999999999999", "9223372036854775807", "1", contract.CodeConcurrencyLimited, int64(5), int64(1<<62))
	f.Fuzz(func(t *testing.T, rpm, burst int64, status int, limit, remaining, reset, retry, code string, from, to int64) {
		a := oracle.Allowance{RequestsPerMinute: 1 + abs(rpm)%1_000_000, Burst: 1 + abs(burst)%1_000_000, Concurrency: 1}
		s := oracle.Span{From: min(abs(from), abs(to)), To: max(abs(from), abs(to))}
		h := map[string]string{contract.HeaderLimit: limit, contract.HeaderRemaining: remaining, contract.HeaderReset: reset, contract.HeaderRetryAfter: retry}
		answer := render(100+int(abs(int64(status))%500), code, h)
		b := oracle.NewUnknown(a, s.From)
		for range 3 {
			for _, found := range b.Judge(answer, s) {
				requireWellFormed(t, found)
			}
			_, _ = b.JudgeParallel([]oracle.Sample{{Answer: &answer, Span: s}, {Span: s}})
			b.Change(oracle.Allowance{RequestsPerMinute: a.Burst, Burst: a.RequestsPerMinute, Concurrency: 1})
			b.Lose(s)
			lo, hi := b.LevelAt(s.To)
			if lo < 0 || lo > hi || hi > b.Allowance().Burst*oracle.Token {
				t.Fatalf("level %d to %d", lo, hi)
			}
			if b.WaitFor(1) < 0 {
				t.Fatal("a wait below zero")
			}
		}
	})
}

func abs(n int64) int64 {
	if n < 0 {
		return max(-n, 0) // the least number has no opposite
	}
	return n
}
