package apilog_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/apilog"
)

// fussy refuses every batch with an entry whose name begins with "bad", and is
// away at each third attempt.
func fussy() func(context.Context, []contract.LogEntry) error {
	asked := 0
	return func(_ context.Context, entries []contract.LogEntry) error {
		if asked++; asked%3 == 0 {
			return errAway
		}
		for _, e := range entries {
			if strings.HasPrefix(e.RequestID, "bad") {
				return fmt.Errorf("entry %s: %w", e.RequestID, apilog.ErrRefused)
			}
		}
		return nil
	}
}

func TestRefusedEntriesAreSetAside(t *testing.T) {
	dir, sink := t.TempDir(), &table{answer: fussy()}
	s := openSpool(t, dir, sink)
	var good []string
	for i := range 4 {
		write(t, s, fmt.Sprint("bad", i), 1)
		good = append(good, write(t, s, fmt.Sprint("good", i), 20)...)
	}
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, once(good...), sink.times)
	require.Equal(t, apilog.Stats{Written: 84, Delivered: 80, Refused: 4}, s.Stats())
	aside := lines(t, filepath.Join(dir, "refused.jsonl"))
	require.Len(t, aside, 4)
	require.Contains(t, aside[0], `"bad0-0"`)
}

func TestSetAsideIsBounded(t *testing.T) {
	dir := t.TempDir()
	s := openSpool(t, dir, &table{answer: func(context.Context, []contract.LogEntry) error { return apilog.ErrRefused }})
	write(t, s, "bad", 2000)
	require.NoError(t, s.Close(t.Context()))
	require.EqualValues(t, 2000, s.Stats().Refused)
	aside := len(strings.Join(lines(t, filepath.Join(dir, "refused.jsonl")), "\n"))
	require.InDelta(t, apilog.MinSpoolSize/8, aside, 1000)
}
