package spool_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/loadgen/spool"
	"github.com/invoicespec/brimline/reports/record"
)

// endless is a variable that makes this program write rows into a file until it
// is killed.
const endless = "BRIMLINE_TEST_ENDLESS_ROWS"

func TestMain(m *testing.M) {
	if path := os.Getenv(endless); path != "" {
		encode, err := spool.Rows(who, started)
		if err != nil {
			panic(err)
		}
		s, err := spool.Create(path, encode)
		for i := 0; err == nil; i++ {
			s.Add(answer(i))
			time.Sleep(10 * time.Microsecond)
		}
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func who(user int) (name, plan string) { return fmt.Sprintf("free-%03d", user), "free" }

func started() time.Time { return time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC) }

// answer is the i-th of a run.
func answer(i int) measure.Answer {
	at := time.Duration(i) * time.Millisecond
	return measure.Answer{
		User: i % 7, Operation: "valid", Due: at, Sent: at + time.Millisecond, First: at + 2*time.Millisecond, Done: at + 3*time.Millisecond,
		Attempts: 1, Status: 200, Outcome: record.OutcomeAdmitted,
	}
}

func row(i int) record.Row {
	us := int64(i) * 1000
	return record.Row{
		User: fmt.Sprintf("free-%03d", i%7), Plan: "free", Operation: "valid", DueUS: us, SentUS: us + 1000, FirstUS: us + 2000, DoneUS: us + 3000,
		Attempts: 1, Status: 200, Outcome: record.OutcomeAdmitted,
	}
}

func rows(t *testing.T) spool.Encode {
	t.Helper()
	e, err := spool.Rows(who, started)
	require.NoError(t, err)
	return e
}

// readRows are the rows of a file, which must be those from the first on.
func readRows(t *testing.T, text []byte) (n int, err error) {
	t.Helper()
	head, err := record.ReadRows(bytes.NewReader(text), func(r record.Row) error {
		require.Equal(t, row(n), r)
		n++
		return nil
	})
	if n > 0 {
		require.Equal(t, record.RowsHead{Schema: record.RowsSchema, Started: started()}, head)
	}
	return n, err
}

// disk is a file that a test is told of.
type disk struct {
	bytes.Buffer
	full  int           // bytes that fit; 0: all do
	gate  chan struct{} // a write waits until it is closed; nil: none does
	ended bool
}

func (d *disk) Write(p []byte) (int, error) {
	if d.gate != nil {
		<-d.gate
	}
	if room := d.full - d.Len(); d.full > 0 && len(p) > room {
		n, _ := d.Buffer.Write(p[:room])
		return n, &os.PathError{Op: "write", Path: "/secret/place", Err: syscall.ENOSPC}
	}
	return d.Buffer.Write(p)
}

func (d *disk) Truncate(size int64) error { d.Buffer.Truncate(int(size)); return nil }
func (d *disk) Name() string              { return "/some/folder/rows.jsonl.zst" }
func (d *disk) Close() error              { d.ended = true; return nil }

func TestRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), record.RowsFile)
	s, err := spool.Create(path, rows(t))
	require.NoError(t, err)
	const n = 2*spool.Batch + 5
	for i := range n {
		s.Add(answer(i))
	}
	require.Equal(t, record.RunExport{File: record.RowsFile, Rows: n}, s.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	got, err := readRows(t, text)
	require.NoError(t, err)
	require.Equal(t, n, got)

	_, err = spool.Create(path, rows(t))
	require.EqualError(t, err, "rows.jsonl.zst of an earlier run is there")
}

// A disk that stands still costs rows, and nobody waits for it.
func TestSlowDisk(t *testing.T) {
	d := &disk{gate: make(chan struct{})}
	s := spool.New(d, rows(t))
	const n = (spool.Queue + 10) * spool.Batch
	for i := range n {
		s.Add(answer(i))
	}
	close(d.gate)
	e := s.Close()
	require.EqualValues(t, n, e.Rows+e.Lost)
	require.GreaterOrEqual(t, e.Lost, int64(8*spool.Batch), "no more than the queue, what is being written and what is collected")
	require.GreaterOrEqual(t, e.Rows, int64(spool.Queue*spool.Batch))
	require.Empty(t, e.Error)
	require.True(t, d.ended)
	got, err := readRows(t, d.Bytes())
	require.NoError(t, err)
	require.EqualValues(t, e.Rows, got)
}

// A full disk ends the file after the last whole batch.
func TestFullDisk(t *testing.T) {
	whole := &disk{}
	s := spool.New(whole, rows(t))
	for i := range spool.Batch {
		s.Add(answer(i))
	}
	require.EqualValues(t, spool.Batch, s.Close().Rows)

	d := &disk{full: whole.Len() + 100}
	s = spool.New(d, rows(t))
	const n = 5*spool.Batch + 3
	for i := range n {
		s.Add(answer(i))
	}
	require.Equal(t, record.RunExport{File: "rows.jsonl.zst", Rows: spool.Batch, Lost: n - spool.Batch, Error: "no space left on device"}, s.Close())
	got, err := readRows(t, d.Bytes())
	require.NoError(t, err, "not cut")
	require.Equal(t, spool.Batch, got)
}

func TestWhatCannotBeEncoded(t *testing.T) {
	d := &disk{}
	s := spool.New(d, func([]measure.Answer) ([]byte, error) { return nil, errors.New("broken") })
	s.Add(answer(0))
	require.Equal(t, record.RunExport{File: "rows.jsonl.zst", Lost: 1, Error: "broken"}, s.Close())
	require.Zero(t, d.Len())
}

// TestRowsThatAreCut: wherever a file ends, what is whole is read and the rest is
// said to be missing.
func TestRowsThatAreCut(t *testing.T) {
	d := &disk{}
	s := spool.New(d, rows(t))
	const n = 2*spool.Batch + 1
	for i := range n {
		s.Add(answer(i))
	}
	s.Close()
	before := 0
	for _, size := range []int{0, 1, 100, d.Len() / 3, d.Len() / 2, 2 * d.Len() / 3, d.Len() - 1} {
		got, err := readRows(t, d.Bytes()[:size])
		require.Less(t, got, n, size)
		require.GreaterOrEqual(t, got, before, size)
		if err == nil {
			require.Zero(t, got%spool.Batch, "only between frames")
		} else {
			require.ErrorIs(t, err, record.ErrRowsCut, size)
		}
		before = got
	}
}

// TestRowsOfAKilledProcess: what was written stays.
func TestRowsOfAKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), record.RowsFile)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), endless+"="+path)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > 20_000
	}, time.Minute, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.ErrorContains(t, cmd.Wait(), "killed")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	n, err := readRows(t, text)
	require.GreaterOrEqual(t, n, spool.Batch)
	if err != nil {
		require.ErrorIs(t, err, record.ErrRowsCut)
	}
}

func TestVegetaReadsItsResults(t *testing.T) {
	d := &disk{}
	asked := map[string]spool.Asked{"valid": {Method: "POST", URL: "http://127.0.0.1:1/v1/invoice/calculate"}}
	s := spool.New(d, spool.Vegeta(who, asked, started))
	const n = 100
	for i := range n {
		a := answer(i)
		switch i % 4 {
		case 1:
			a.Status, a.Outcome = 429, record.OutcomeRejectedRate
		case 2:
			a.Outcome, a.Error = record.OutcomeTransportError, "timeout" // after the status came
		}
		s.Add(a)
	}
	require.EqualValues(t, n, s.Close().Rows)
	require.NotContains(t, d.String(), "free-0", "no user")

	decode := vegeta.DecoderFor(bytes.NewReader(d.Bytes()))
	require.NotNil(t, decode, "vegeta knows the form by itself")
	var m vegeta.Metrics
	for i := range n {
		var r vegeta.Result
		require.NoError(t, decode(&r))
		require.EqualValues(t, i, r.Seq)
		require.Equal(t, "free", r.Attack)
		require.Equal(t, "POST http://127.0.0.1:1/v1/invoice/calculate", r.Method+" "+r.URL)
		require.True(t, started().Add(time.Duration(i)*time.Millisecond).Equal(r.Timestamp), "when it was due")
		require.Equal(t, 3*time.Millisecond, r.Latency)
		m.Add(&r)
	}
	m.Close()
	require.Equal(t, map[string]int{"200": 50, "429": 25, "0": 25}, m.StatusCodes)
	require.ElementsMatch(t, []string{"Too Many Requests", "timeout"}, m.Errors)
	require.ErrorContains(t, decode(&vegeta.Result{}), "EOF")
}
