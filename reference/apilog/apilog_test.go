package apilog_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/apilog"
)

func entry(id string) contract.LogEntry {
	return contract.LogEntry{Schema: 1, RequestID: id, Received: time.Date(2026, 11, 30, 1, 2, 3, 4, time.UTC), Status: 200, Outcome: contract.LogAdmitted}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func TestEncodeIsOneLine(t *testing.T) {
	e := entry("r")
	e.Path = "/v1/invoice/\n\"\u2028"
	line, err := apilog.Encode(e)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(line), "\n"))
	var back contract.LogEntry
	require.NoError(t, json.Unmarshal(line, &back))
	require.Equal(t, e, back)
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.jsonl")
	for run := range 2 { // a second run appends
		l, err := apilog.OpenFile(path)
		require.NoError(t, err)
		for i := range 2 {
			require.NoError(t, l.Write(t.Context(), entry(fmt.Sprintf("r%d-%d", run, i))))
		}
		require.Len(t, lines(t, path), 2*(run+1), "an entry is in the file when Write returns")
		require.NoError(t, l.Close())
		require.Error(t, l.Write(t.Context(), entry("late")))
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestFileClosesALineThatWasCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"schema":1}`+"\n"+`{"sche`), 0o600))
	l, err := apilog.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, l.Write(t.Context(), entry("a")))
	require.NoError(t, l.Write(t.Context(), entry("b")))
	require.NoError(t, l.Close())
	got := lines(t, path)
	require.Len(t, got, 4)
	require.Contains(t, got[2], `"a"`)
	require.Contains(t, got[3], `"b"`)
}

func TestOpenFileRefuses(t *testing.T) {
	_, err := apilog.OpenFile(t.TempDir())
	require.ErrorContains(t, err, "open the API log")
	_, err = apilog.OpenFile(filepath.Join(t.TempDir(), "missing", "api.jsonl"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestFileInParallel writes from many sides: every line is whole.
func TestFileInParallel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.jsonl")
	l, err := apilog.OpenFile(path)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for j := range 50 {
				if err := l.Write(t.Context(), entry(fmt.Sprintf("%d-%d", i, j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, l.Close())
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	seen := map[string]bool{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var e contract.LogEntry
		require.NoError(t, json.Unmarshal(sc.Bytes(), &e))
		seen[e.RequestID] = true
	}
	require.Len(t, seen, 1000)
}

// Find sees what every process has written, and what is there twice; a line that
// is no entry of the request is passed over, and so is one without an end.
func TestFind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.jsonl")
	for range 2 {
		l, err := apilog.OpenFile(path)
		require.NoError(t, err)
		for _, id := range []string{"r1", "r10", "twice"} {
			e := entry(id)
			if id == "r10" {
				e.Path = "/v1/invoice/once" // another's id, within
			}
			require.NoError(t, l.Write(t.Context(), e))
		}
		require.NoError(t, l.Close())
	}
	l, err := apilog.OpenFile(path)
	require.NoError(t, err)
	require.NoError(t, l.Write(t.Context(), entry("once")))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = fmt.Fprintf(f, "no entry of once\n%s\n{\"request_id\":\"torn\"}", strings.Repeat("x", 1<<20))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for id, want := range map[string]int{"r1": 2, "twice": 2, "once": 1, "r": 0, "torn": 0, "": 0} {
		found, err := l.Find(id)
		require.NoError(t, err)
		require.Len(t, found, want, id)
		for _, e := range found {
			require.Equal(t, id, e.RequestID)
		}
	}
	require.NoError(t, l.Close())
	_, err = l.Find("r1")
	require.ErrorContains(t, err, `look for request "r1" in the API log: `)
}
