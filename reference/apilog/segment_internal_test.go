package apilog

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
)

func line(t testing.TB, id string) string {
	t.Helper()
	l, err := Encode(contract.LogEntry{Schema: 1, RequestID: id})
	require.NoError(t, err)
	return string(l)
}

func ids(entries []contract.LogEntry) []string {
	all := []string{}
	for _, e := range entries {
		all = append(all, e.RequestID)
	}
	return all
}

func TestReadLines(t *testing.T) {
	a, b, long := line(t, "a"), line(t, "b"), strings.Repeat("x", 3*maxLine)+"\n"
	for name, c := range map[string]struct {
		text       string
		most       int
		ended      bool
		want       []string
		size, torn int
	}{
		"nothing":                           {"", 9, true, []string{}, 0, 0},
		"whole lines":                       {a + b, 9, false, []string{"a", "b"}, len(a + b), 0},
		"no more than asked for":            {a + b, 1, true, []string{"a"}, len(a), 0},
		"unfinished, may grow":              {a + b[:9], 9, false, []string{"a"}, len(a), 0},
		"unfinished for good":               {a + b[:9], 9, true, []string{"a"}, len(a) + 9, 1},
		"whole but for its newline":         {a + b[:len(b)-1], 9, true, []string{"a"}, len(a+b) - 1, 1},
		"torn in the middle":                {a[:9] + "\n" + b, 9, true, []string{"b"}, 10 + len(b), 1},
		"two in one line":                   {a[:len(a)-1] + b + a, 9, true, []string{"a"}, len(a+a+b) - 1, 1},
		"no request id":                     {"{}\nnull\n" + b, 9, true, []string{"b"}, 8 + len(b), 2},
		"empty lines":                       {"\n \r\n" + b, 9, true, []string{"b"}, 4 + len(b), 0},
		"longer than any written":           {long + b, 9, true, []string{"b"}, len(long + b), 1},
		"an entry at the end of such a one": {long[:maxLine] + a + b, 9, true, []string{"b"}, maxLine + len(a+b), 1},
		"longer than any written, no end":   {a + long[:len(long)-1], 9, true, []string{"a"}, len(a+long) - 1, 1},
		"longer than any written, may grow": {a + long[:len(long)-1], 9, false, []string{"a"}, len(a), 0},
		"as long as one may be":             {longest(t) + b, 9, true, []string{"a", "b"}, maxLine + len(b), 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readLines(strings.NewReader(c.text), c.most, c.ended)
			require.NoError(t, err)
			require.Equal(t, c.want, ids(got.entries))
			require.EqualValues(t, c.size, got.size)
			require.EqualValues(t, c.torn, got.torn)
		})
	}
}

// longest is an entry's line of exactly the greatest length.
func longest(t *testing.T) string {
	e := contract.LogEntry{RequestID: "a"}
	l, err := Encode(e)
	require.NoError(t, err)
	e.Path = strings.Repeat("p", maxLine-len(l))
	l, err = Encode(e)
	require.NoError(t, err)
	require.Len(t, l, maxLine)
	return string(l)
}

// FuzzReadLines puts anything between two entries: neither is spoiled, each byte
// is read once, however small the batches.
func FuzzReadLines(f *testing.F) {
	for _, seed := range []string{"", "\n", "{", `{"request_id":"x"}`, "null", "\x00\xff\r"} {
		f.Add([]byte(seed), 1, true)
	}
	f.Fuzz(func(t *testing.T, between []byte, most int, ended bool) {
		if len(between) > 1<<12 {
			t.Skip("long lines have cases of their own")
		}
		most = 1 + max(most, -most-1, 0)%500
		text := fmt.Appendf(nil, "%s%s\n%s%s", line(t, "first"), between, line(t, "last"), between)
		var got []string
		var torn int64
		for rest := text; ; {
			read, err := readLines(bytes.NewReader(rest), most, ended)
			require.NoError(t, err)
			require.LessOrEqual(t, len(read.entries), most)
			got = append(got, ids(read.entries)...)
			torn += read.torn
			rest = rest[read.size:]
			if len(read.entries) < most {
				require.Equal(t, ended, ended && len(rest) == 0, "all of an ended segment is read")
				require.NotContains(t, string(rest), "\n", "only an unfinished line is left")
				break
			}
		}
		require.Equal(t, "first", got[0])
		require.Contains(t, got, "last")
		require.LessOrEqual(t, int(torn)+len(got), bytes.Count(text, []byte("\n"))+1)
	})
}

func TestPosition(t *testing.T) {
	dir := t.TempDir()
	f, p, err := openPosition(dir)
	require.NoError(t, err)
	require.Zero(t, p)
	for _, p := range []position{{7, 123456}, {8, 0}} { // a shorter number leaves nothing of a longer one
		require.NoError(t, savePosition(f, p))
		again, got, err := openPosition(dir)
		require.NoError(t, err)
		require.Equal(t, p, got)
		require.NoError(t, again.Close())
	}
	for name, text := range map[string]string{"torn": "0000000", "words": "here and there\n", "negative": "1 -5\n"} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, f.Truncate(0))
			_, err := f.WriteAt([]byte(text), 0)
			require.NoError(t, err)
			again, got, err := openPosition(dir)
			require.NoError(t, err)
			require.Zero(t, got)
			require.NoError(t, again.Close())
		})
	}
	require.NoError(t, f.Close())
}
