package bucket_test

import (
	"bufio"
	"compress/gzip"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/bucket/buckettest"
)

// The vectors are what Bucket4j, another exact token bucket, decided. Their
// times are nanoseconds, always whole microseconds, and their waits are rounded
// down to the nanosecond where ours are rounded up to the microsecond.

const nanosPerMicro = 1_000

func TestVectorsTakes(t *testing.T) {
	var b both
	eachVector(t, "takes.txt.gz", map[string]func(*testing.T, []int64){
		"N": func(_ *testing.T, v []int64) { b = newBoth(v) },
		"T": func(t *testing.T, v []int64) { b.take(t, v) },
	})
}

// Their proportional step goes through doubles and may be one unit off, so ours
// is compared within one unit, and theirs taken over for the takes that follow.
func TestVectorsChanges(t *testing.T) {
	var b both
	eachVector(t, "changes.txt.gz", map[string]func(*testing.T, []int64){
		"N": func(_ *testing.T, v []int64) { b = newBoth(v) },
		"T": func(t *testing.T, v []int64) { b.take(t, v) },
		"R": func(t *testing.T, v []int64) { b.change(t, v) },
	})
}

// both is our bucket beside the model, in step with the vectors.
type both struct {
	rpm, burst int64
	ours       bucket.State
	model      *buckettest.Model
}

func newBoth(v []int64) both {
	b := both{rpm: v[1], burst: v[2], model: &buckettest.Model{}}
	at := v[0] / nanosPerMicro
	b.ours = bucket.State{Level: b.burst * bucket.Token, At: bucket.Instant(at), Rate: b.rpm, Burst: b.burst}
	b.model.Settle(b.rpm, b.burst, at)
	return b
}

func (b *both) take(t *testing.T, v []int64) {
	at, admitted, remaining, toToken, toFull := v[0]/nanosPerMicro, v[1] == 1, v[2], v[3], v[4]
	now := bucket.Instant(at)
	next, ok := b.ours.Take(plan{b.rpm, b.burst}.allowance(), now)
	b.ours = next
	require.Equal(t, admitted, ok, "admitted")
	require.Equal(t, remaining, next.Remaining(), "remaining")

	require.Equal(t, admitted, b.model.Take(b.rpm, b.burst, at), "the model: admitted")
	if !admitted {
		sameWait(t, "to one token", toToken, b.model.ToToken(at), next.ToToken(now))
	}
	sameWait(t, "to full", toFull, b.model.ToFull(at), next.ToFull(now))
}

// sameWait ties their wait and ours to one exact number: theirs is that number
// rounded down to the nanosecond, ours is it rounded up to the microsecond. Ours
// can not be told from theirs alone: 2,000 of theirs may be anything below 2,001.
func sameWait(t *testing.T, what string, theirs int64, exact *big.Rat, ours int64) {
	t.Helper()
	nanos := new(big.Rat).Mul(exact, big.NewRat(nanosPerMicro, 1))
	require.Equal(t, theirs, buckettest.Floor(nanos).Int64(), "%s: theirs is %v rounded down", what, nanos)
	require.Equal(t, buckettest.Ceil(exact).Int64(), ours, "%s: ours is %v rounded up", what, exact)
	if theirs%nanosPerMicro != 0 {
		require.Equal(t, theirs/nanosPerMicro+1, ours, "%s: theirs, rounded up", what)
	}
}

func (b *both) change(t *testing.T, v []int64) {
	at, tokens, part, before := v[0]/nanosPerMicro, v[3], v[4], b.burst
	b.rpm, b.burst = v[1], v[2]
	b.ours = b.ours.Settled(plan{b.rpm, b.burst}.allowance(), bucket.Instant(at))
	b.model.Settle(b.rpm, b.burst, at)

	// A thousand of their units are one of ours. What of them is no whole unit
	// never decides a take, since every refill is whole units; but a change that
	// raises the burst scales it along, and ours had dropped it.
	theirs := tokens*bucket.Token + part/nanosPerMicro
	model := new(big.Rat).Mul(b.model.Tokens(), big.NewRat(bucket.Token, 1))
	require.InDelta(t, theirs, buckettest.Floor(model).Int64(), 1, "units after the change, from all they held before")
	require.InDelta(t, theirs, b.ours.Level, float64(1+b.burst/before), "units after the change")

	b.ours.Level = theirs
	b.model.SetTokens(new(big.Rat).Add(big.NewRat(tokens, 1), big.NewRat(part, nanosPerMicro*bucket.Token)))
}

// eachVector hands the numbers of each line to the function of its letter.
func eachVector(t *testing.T, name string, each map[string]func(*testing.T, []int64)) {
	t.Helper()
	data := os.Getenv("BRIMLINE_DATA")
	if data == "" {
		t.Skip("BRIMLINE_DATA is not set: the folder that holds bucket4j/" + name)
	}
	file, err := os.Open(filepath.Join(data, "bucket4j", name))
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)

	lines, n, counts := bufio.NewScanner(unzipped), 0, map[string]int{}
	defer func() {
		if t.Failed() {
			t.Logf("%s:%d: %s", name, n, lines.Text())
		}
	}()
	for lines.Scan() {
		n++
		fields := strings.Fields(lines.Text())
		require.NotEmpty(t, fields)
		decide, ok := each[fields[0]]
		require.True(t, ok, "unknown kind of line")
		numbers := make([]int64, len(fields)-1)
		for i, f := range fields[1:] {
			var err error
			numbers[i], err = strconv.ParseInt(f, 10, 64)
			require.NoError(t, err)
		}
		counts[fields[0]]++
		decide(t, numbers)
	}
	require.NoError(t, lines.Err())
	for letter := range each {
		require.NotZero(t, counts[letter], "%s has no line %s", name, letter)
	}
	t.Logf("%s: %v lines agree", name, counts)
}
