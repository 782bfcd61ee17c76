package timeline

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func collect(t require.TestingT, line *Timeline) (all []Attempt) {
	for batch, err := range line.Batches(context.Background()) {
		require.NoError(t, err)
		all = append(all, batch...)
	}
	return all
}

// TestBuilderIsAStableSort: whatever the order and however little fits into
// memory, a timeline is what a stable sort of everything is.
func TestBuilderIsAStableSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Builder{most: rapid.IntRange(1, 40).Draw(t, "most")}
		n := rapid.IntRange(0, 200).Draw(t, "n")
		spread := rapid.Int64Range(0, 50).Draw(t, "spread")
		var want []Attempt
		for i := range n {
			a := Attempt{
				At: int64(i) + rapid.Int64Range(-spread, spread).Draw(t, "at"), Hold: rapid.Int64Range(NoHold, 1e6).Draw(t, "hold"),
				Pool: uint32(i), Status: uint16(rapid.IntRange(0, 999).Draw(t, "status")), Fate: Fate(rapid.IntRange(0, int(Overloaded)).Draw(t, "fate")),
			}
			want = append(want, a)
			require.NoError(t, b.Add(a))
		}
		line, err := b.Timeline()
		require.NoError(t, err)
		defer func() { require.NoError(t, line.Close()) }()
		slices.SortStableFunc(want, func(a, o Attempt) int { return cmp.Compare(a.At, o.At) })
		require.Equal(t, want, collect(t, line))
		require.Equal(t, want, collect(t, line), "a second reading is the same")
		require.EqualValues(t, n, line.Len())
		if n > 0 {
			require.Equal(t, [2]int64{want[0].At, want[n-1].At}, [2]int64{line.First(), line.Last()})
		}
	})
}

func TestNothingStaysOnDisk(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	left := func() int {
		list, err := os.ReadDir(os.TempDir())
		require.NoError(t, err)
		return len(list)
	}
	for _, end := range []func(*Builder) error{
		(*Builder).Close,
		func(b *Builder) error {
			line, err := b.Timeline()
			require.NoError(t, err)
			require.Len(t, collect(t, line), 5)
			return line.Close()
		},
	} {
		b := &Builder{most: 2}
		for i := range 5 {
			require.NoError(t, b.Add(Attempt{At: int64(i)}))
		}
		require.NotNil(t, b.file)
		if runtime.GOOS != "windows" {
			require.Zero(t, left(), "not even of a process that is killed")
		}
		require.NoError(t, end(b))
		require.Zero(t, left())
	}
}

// TestOrderedRunsAreOneStretch: a log in order is read from disk straight through.
func TestOrderedRunsAreOneStretch(t *testing.T) {
	b := &Builder{most: 3}
	for i := range 100 {
		require.NoError(t, b.Add(Attempt{At: int64(i / 2)}))
	}
	line, err := b.Timeline()
	require.NoError(t, err)
	defer line.Close()
	require.Len(t, line.runs, 1)
}

func TestReadingEndsWithItsContext(t *testing.T) {
	b := &Builder{most: 3}
	for i := range 10 {
		require.NoError(t, b.Add(Attempt{At: int64(i)}))
	}
	line, err := b.Timeline()
	require.NoError(t, err)
	defer line.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for batch, err := range line.Batches(ctx) {
		require.Empty(t, batch)
		require.ErrorIs(t, err, context.Canceled)
	}
}
