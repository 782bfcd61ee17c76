package apilog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/apilog"
)

// table is a sink in memory. Asked before it takes anything, answer may refuse.
type table struct {
	answer func(context.Context, []contract.LogEntry) error

	mu    sync.Mutex
	times map[string]int
}

func (s *table) Insert(ctx context.Context, entries []contract.LogEntry) error {
	if s.answer != nil {
		if err := s.answer(ctx, entries); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times == nil {
		s.times = map[string]int{}
	}
	for _, e := range entries {
		s.times[e.RequestID]++
	}
	return nil
}

// once is what a table holds that was given each entry of the names once.
func once(names ...string) map[string]int {
	times := map[string]int{}
	for _, n := range names {
		times[n] = 1
	}
	return times
}

var errAway = errors.New("the sink is away")

func away(context.Context, []contract.LogEntry) error { return errAway }

func openSpool(t *testing.T, dir string, sink apilog.Sink) *apilog.Spool {
	t.Helper()
	s, err := apilog.OpenSpool(apilog.SpoolConfig{Dir: dir, Size: apilog.MinSpoolSize, Sink: sink, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { abandon(t, s) })
	return s
}

// write spools entries and tells their names.
func write(t *testing.T, s *apilog.Spool, prefix string, n int) []string {
	t.Helper()
	var names []string
	for i := range n {
		name := fmt.Sprintf("%s-%d", prefix, i)
		require.NoError(t, s.Write(t.Context(), entry(name)))
		names = append(names, name)
	}
	return names
}

// abandon closes a spool at once, whatever waits.
func abandon(t testing.TB, s *apilog.Spool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, s.Close(ctx))
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, f := range found {
		names = append(names, f.Name())
	}
	return names
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "0*.jsonl"))
	require.NoError(t, err)
	return found
}

func TestSpoolDelivers(t *testing.T) {
	dir, sink := filepath.Join(t.TempDir(), "made", "spool"), &table{}
	s := openSpool(t, dir, sink)
	names := write(t, s, "r", 3000) // some segments and some batches
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, once(names...), sink.times)
	require.Equal(t, apilog.Stats{Written: 3000, Delivered: 3000}, s.Stats())
	require.Equal(t, []string{"lock", "position"}, files(t, dir))
	require.NoError(t, s.Close(t.Context()), "once more does nothing")
	require.ErrorIs(t, s.Write(t.Context(), entry("late")), apilog.ErrClosed)
}

func TestEntriesAreDeliveredWithoutAClose(t *testing.T) {
	came := make(chan string)
	s := openSpool(t, t.TempDir(), &table{answer: func(ctx context.Context, entries []contract.LogEntry) error {
		for _, e := range entries {
			select {
			case came <- e.RequestID:
			case <-ctx.Done():
			}
		}
		return nil
	}})
	for _, name := range write(t, s, "r", 3) {
		require.Equal(t, name, <-came)
	}
	write(t, s, "again", 1)
	require.Equal(t, "again-0", <-came)
}

func TestEntryIsOnDiskWhenWriteReturns(t *testing.T) {
	dir := t.TempDir()
	s := openSpool(t, dir, &table{answer: away})
	for i := range 3 {
		write(t, s, fmt.Sprint("r", i), 1)
		require.Len(t, lines(t, segments(t, dir)[0]), i+1)
	}
	info, err := os.Stat(segments(t, dir)[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	abandon(t, s)
}

func TestNextToOpenDeliversTheRest(t *testing.T) {
	dir := t.TempDir()
	first := &table{}
	asked, gone := 0, make(chan struct{})
	first.answer = func(context.Context, []contract.LogEntry) error {
		if asked++; asked == 1 {
			return nil
		}
		if asked == 2 {
			close(gone)
		}
		return errAway
	}
	s := openSpool(t, dir, first)
	names := write(t, s, "r", 100)
	for more := true; more; {
		select {
		case <-gone:
			more = false
		default:
			names = append(names, write(t, s, fmt.Sprint("more-", len(names)), 1)...)
		}
	}
	abandon(t, s)
	require.Positive(t, s.Stats().Waiting)

	second := &table{}
	s = openSpool(t, dir, second)
	names = append(names, write(t, s, "second", 10)...)
	require.NoError(t, s.Close(t.Context()))
	require.NotEmpty(t, first.times)
	for name := range first.times {
		require.NotContains(t, second.times, name, "what was taken is not delivered again")
		second.times[name]++
	}
	require.Equal(t, once(names...), second.times)
	require.Zero(t, s.Stats().Waiting)
}

func TestWithoutItsPositionASpoolIsDeliveredAgain(t *testing.T) {
	dir := t.TempDir()
	s := openSpool(t, dir, &table{answer: away})
	names := write(t, s, "r", 20)
	abandon(t, s)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "position"), []byte("1 99999999"), 0o600))
	sink := &table{}
	require.NoError(t, openSpool(t, dir, sink).Close(t.Context()))
	require.Equal(t, once(names...), sink.times)
}

func TestDeliveryOutlastsAnOutage(t *testing.T) {
	asked := 0
	sink := &table{answer: func(context.Context, []contract.LogEntry) error {
		if asked++; asked < 4 {
			return errAway
		}
		return nil
	}}
	s := openSpool(t, t.TempDir(), sink)
	names := write(t, s, "r", 700)
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, once(names...), sink.times)
}

// TestSinkThatHangs never answers: neither Write nor a Close whose time is up
// waits for it.
func TestSinkThatHangs(t *testing.T) {
	hung := make(chan struct{})
	s := openSpool(t, t.TempDir(), &table{answer: func(ctx context.Context, _ []contract.LogEntry) error {
		hung <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}})
	write(t, s, "r", 1)
	<-hung
	write(t, s, "more", 1000)
	abandon(t, s)
}

func TestFullSpool(t *testing.T) {
	back := make(chan struct{})
	sink := &table{answer: func(ctx context.Context, _ []contract.LogEntry) error {
		select {
		case <-back:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	dir := t.TempDir()
	s := openSpool(t, dir, sink)
	sent := 0
	send := func(user string) apilog.Stats {
		e := entry(fmt.Sprint(sent))
		e.User, e.Outcome = user, contract.LogRejected
		require.NoError(t, s.Write(t.Context(), e))
		sent++
		return s.Stats()
	}
	for send("").Dropped.Anonymous == 0 {
		require.Zero(t, send("u").Dropped.Full)
	}
	nearlyFull := s.Stats()
	require.Zero(t, send("u").Dropped.Full, "a user's entry still finds room")
	require.EqualValues(t, 2, send("").Dropped.Anonymous)
	for send("u").Dropped.Full == 0 {
		require.EqualValues(t, 2, s.Stats().Dropped.Anonymous)
	}
	full := s.Stats()
	require.Greater(t, full.Written, nearlyFull.Written+100)
	require.EqualValues(t, sent, full.Written+full.Dropped.Anonymous+full.Dropped.Full)
	require.InDelta(t, apilog.MinSpoolSize, full.Waiting, 1000)

	var size int64
	for _, path := range segments(t, dir) {
		info, err := os.Stat(path)
		require.NoError(t, err)
		size += info.Size()
	}
	require.LessOrEqual(t, size, int64(apilog.MinSpoolSize))

	close(back)
	require.NoError(t, s.Close(t.Context()))
	require.Len(t, sink.times, int(full.Written))
	require.Equal(t, full.Written, s.Stats().Delivered)
}

func TestRoomComesBack(t *testing.T) {
	var mu sync.Mutex
	answer := errAway
	s := openSpool(t, t.TempDir(), &table{answer: func(context.Context, []contract.LogEntry) error {
		mu.Lock()
		defer mu.Unlock()
		return answer
	}})
	for s.Stats().Dropped.Full == 0 {
		write(t, s, "r", 100)
	}
	mu.Lock()
	answer = nil
	mu.Unlock()
	before := s.Stats()
	for s.Stats().Written < before.Written+1000 {
		write(t, s, "r", 100)
	}
	require.NoError(t, s.Close(t.Context()))
}

func TestSecondOpenerIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openSpool(t, dir, &table{})
	cfg := apilog.SpoolConfig{Dir: dir, Sink: &table{}, Logger: slog.New(slog.DiscardHandler)}
	_, err := apilog.OpenSpool(cfg)
	require.ErrorContains(t, err, dir+" is in use by another server")
	require.NoError(t, s.Close(t.Context()))
	again, err := apilog.OpenSpool(cfg)
	require.NoError(t, err)
	require.NoError(t, again.Close(t.Context()))
}

func TestTornLinesAreSkipped(t *testing.T) {
	dir := t.TempDir()
	s := openSpool(t, dir, &table{answer: away})
	names := write(t, s, "r", 3)
	abandon(t, s)
	old := segments(t, dir)[0]
	text := strings.Join(lines(t, old), "\n") + "\n"
	require.NoError(t, os.WriteFile(old, []byte("nonsense\n"+text+text[:40]), 0o600))

	sink := &table{}
	s = openSpool(t, dir, sink)
	names = append(names, write(t, s, "after", 2)...)
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, once(names...), sink.times)
	require.EqualValues(t, 2, s.Stats().Torn)
}

func TestOpenSpoolRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct {
		cfg  apilog.SpoolConfig
		want string
	}{
		"too small":       {apilog.SpoolConfig{Dir: t.TempDir(), Size: 1000}, "size 1000 of the API log spool: want at least 1048576 bytes"},
		"not a directory": {apilog.SpoolConfig{Dir: file}, "make the API log spool"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := apilog.OpenSpool(c.cfg)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestEntryThatIsTooLong(t *testing.T) {
	s := openSpool(t, t.TempDir(), &table{})
	e := entry("long")
	e.User = strings.Repeat("u", 1<<17)
	require.ErrorContains(t, s.Write(t.Context(), e), `request "long"`)
	require.Zero(t, s.Stats().Written)
}

// TestDirectoryThatIsTakenAway lets no request fail, and the log goes on once the
// directory is back.
func TestDirectoryThatIsTakenAway(t *testing.T) {
	dir, sink := filepath.Join(t.TempDir(), "spool"), &table{}
	s := openSpool(t, dir, sink)
	require.NoError(t, os.RemoveAll(dir))
	for s.Stats().Dropped.Failed == 0 {
		write(t, s, "lost", 100)
	}
	require.NoError(t, os.Mkdir(dir, 0o700))
	before := s.Stats().Dropped.Failed
	names := write(t, s, "kept", 10)
	require.Equal(t, before, s.Stats().Dropped.Failed)
	require.NoError(t, s.Close(t.Context()))
	for _, name := range names {
		require.Contains(t, sink.times, name)
	}
}

// TestPositionOfAnEarlierRun says nothing of the entries of a later one, though
// both are first in an empty directory.
func TestPositionOfAnEarlierRun(t *testing.T) {
	dir := t.TempDir()
	s := openSpool(t, dir, &table{})
	write(t, s, "r", 10)
	require.NoError(t, s.Close(t.Context()))
	s = openSpool(t, dir, &table{answer: away})
	names := write(t, s, "later", 20)
	abandon(t, s)
	sink := &table{}
	require.NoError(t, openSpool(t, dir, sink).Close(t.Context()))
	require.Equal(t, once(names...), sink.times)
}
