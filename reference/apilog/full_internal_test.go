package apilog

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
)

// taken is a sink that remembers what it has taken.
type taken struct {
	mu  sync.Mutex
	ids []string
}

func (s *taken) Insert(_ context.Context, entries []contract.LogEntry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		s.ids = append(s.ids, e.RequestID)
	}
	return nil
}

func (s *taken) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.ids, id)
}

// TestADiskThatWasFullTakesEntriesAgain: once all is delivered the spool gives its
// room back, the half of a line that did not fit as well, and goes on.
func TestADiskThatWasFullTakesEntriesAgain(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatalf("this test needs a device that is always full: %v", err)
	}
	defer full.Close()
	sink := &taken{}
	s, err := OpenSpool(SpoolConfig{Dir: t.TempDir(), Sink: sink, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer s.Close(t.Context())
	write := func(id string) { require.NoError(t, s.Write(t.Context(), contract.LogEntry{RequestID: id})) }
	eventually := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
			require.True(t, time.Now().Before(end), what)
		}
	}
	write("before")
	eventually("the first is delivered", func() bool { return sink.has("before") })

	s.mu.Lock()
	disk := s.lines.file
	n, err := disk.WriteString(`{"request_id":"half a`)
	require.NoError(t, err)
	last := &s.segments[len(s.segments)-1]
	last.size, s.used, s.lines.torn = last.size+int64(n), s.used+int64(n), true
	s.lines.file = full
	s.mu.Unlock()
	write("dropped")
	require.Equal(t, int64(1), s.Stats().Dropped.Failed)

	s.mu.Lock()
	s.lines.file = disk
	s.mu.Unlock()
	eventually("the room is given back", func() bool { return s.Stats().Waiting == 0 })
	info, err := disk.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size())
	write("after")
	eventually("it goes on", func() bool { return sink.has("after") })
	require.False(t, sink.has("dropped"))
	require.Zero(t, s.Stats().Torn)
}
