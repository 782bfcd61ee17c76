package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
)

// RowsFile is the name of a run's rows in its folder.
const RowsFile = "rows.jsonl.zst"

// RowsSchema names the layout of rows: their first line is a [RowsHead], every
// other a [Row]. It changes as [RunSchema] does.
const RowsSchema = "brimline.rows/1"

// RowsHead is the first line.
type RowsHead struct {
	Schema  string    `json:"schema"`
	Started time.Time `json:"started"` // what the times count from
}

// Row is one request that was sent. Rows are in the order in which answers came,
// or nearly.
type Row struct {
	User      string  `json:"user"` // a name of ours
	Plan      string  `json:"plan"`
	Operation string  `json:"operation"` // valid, invalid, slow or unauthenticated
	DueUS     int64   `json:"due_us"`
	SentUS    int64   `json:"sent_us"`
	FirstUS   int64   `json:"first_us,omitempty"` // the first byte of the answer; absent: none came
	DoneUS    int64   `json:"done_us"`
	Attempts  int     `json:"attempts"`         // 0: there was no connection
	Status    int     `json:"status,omitempty"` // absent: none came
	Outcome   Outcome `json:"outcome"`
	Error     string  `json:"error,omitempty"`   // the kind of a transport error
	Verdict   string  `json:"verdict,omitempty"` // due, undue or undecided of a 429, missing of an admission; absent: not known when the answer came, or nothing to say
}

// RunExport is a file beside the record with a line for each request.
type RunExport struct {
	File  string `json:"file"`
	Rows  int64  `json:"rows"`            // that are in it
	Lost  int64  `json:"lost"`            // that are not
	Error string `json:"error,omitempty"` // why it ends early
}

// ErrRowsCut says that rows end in the middle of a frame: whoever wrote them was
// killed. What was read before is whole.
var ErrRowsCut = errors.New("the rows are cut off")

// Bounds of rows that are read.
const (
	maxRow    = 64 << 10
	maxWindow = 8 << 20
)

// ReadRows reads rows and calls each for every one of them, until it has an
// error. Rows that are cut off end with [ErrRowsCut].
func ReadRows(from io.Reader, each func(Row) error) (RowsHead, error) {
	d, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return RowsHead{}, err
	}
	defer d.Close()
	in := bufio.NewReaderSize(d, maxRow)
	var head RowsHead
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0 && n > 1:
			return head, nil
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return head, fmt.Errorf("line %d: %w", n, ErrRowsCut)
		case err != nil:
			return head, fmt.Errorf("line %d: %w", n, err)
		case n == 1:
			if err := json.Unmarshal(line, &head); err != nil || head.Schema != RowsSchema {
				return head, fmt.Errorf("line 1: no rows of a load run: schema is %.40q, want %q", head.Schema, RowsSchema)
			}
			continue
		}
		var row Row
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&row); err != nil {
			return head, fmt.Errorf("line %d: %w", n, err)
		}
		if err := each(row); err != nil {
			return head, err
		}
	}
}
