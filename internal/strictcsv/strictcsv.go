// Package strictcsv reads a table with a header line and takes nothing on faith:
// an unknown, doubled or missing column, a row of another length, a stray quote,
// or text that is not UTF-8 are refused with one line that names file, line,
// column and what is accepted. A byte order mark, CRLF and blank lines are taken.
//
// Most callers want [Read]. An error never repeats a value, since tables hold
// users and addresses; a caller that may say it does so itself, by [Row.Refuse].
package strictcsv

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a table.
const (
	MaxSize  = 256 << 20 // bytes
	MaxRows  = 5_000_000
	maxField = 4 << 10 // bytes
)

// Columns are those that a table has to have and those that it may have, in any
// order.
type Columns struct {
	Required []string
	Optional []string
}

func (c Columns) accepted() string {
	text := "a header line of " + strings.Join(c.Required, ",")
	if len(c.Optional) > 0 {
		text += ", and perhaps " + strings.Join(c.Optional, ",")
	}
	return text
}

// Row is one row.
type Row struct {
	file   string
	line   int
	at     map[string]int // column to place
	fields []string
}

// Get is the field of a column without the blanks around it; empty where the
// table has no such column.
func (r Row) Get(column string) string {
	if i, ok := r.at[column]; ok {
		return strings.TrimSpace(r.fields[i])
	}
	return ""
}

// Has reports whether the column is there and the field is not empty.
func (r Row) Has(column string) bool { return r.Get(column) != "" }

// Line is where the row begins.
func (r Row) Line() int { return r.line }

// Refuse is the error for a field that makes no sense.
func (r Row) Refuse(column, problem, accepted string) error {
	return refusal(r.file, r.line, column, problem, accepted)
}

func refusal(file string, line int, column, problem, accepted string) error {
	text := file
	if line > 0 {
		text += fmt.Sprintf(":%d", line)
	}
	for _, part := range []string{column, problem} {
		if part != "" {
			text += ": " + part
		}
	}
	if accepted != "" {
		text += "; accepted: " + accepted
	}
	return errors.New(text)
}

// Read yields the rows of the table at path; what each returns ends the reading.
func Read(path string, columns Columns, each func(Row) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		return refusal(path, 0, "", "a folder, a pipe or a device", "a file")
	}
	f, err := os.Open(path)
	if err != nil {
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
			err = pe.Err // the path comes first anyway
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	return From(path, f, columns, each)
}

// From is [Read] of a stream; file is what errors call it.
func From(file string, r io.Reader, columns Columns, each func(Row) error) error {
	limited := &io.LimitedReader{R: r, N: MaxSize + 1}
	in := bufio.NewReader(limited)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
		_, _ = in.Discard(3)
	}
	table := csv.NewReader(in)
	table.ReuseRecord = true
	header, err := table.Read()
	if err == io.EOF {
		return refusal(file, 0, "", "the file is empty", columns.accepted())
	}
	if err != nil {
		return broken(file, err)
	}
	at, err := places(file, header, columns)
	if err != nil {
		return err
	}
	for rows := 1; ; rows++ {
		fields, err := table.Read()
		switch {
		case limited.N <= 0:
			return refusal(file, 0, "", "too large", fmt.Sprintf("at most %d bytes", MaxSize))
		case err == io.EOF:
			return nil
		case err != nil:
			return broken(file, err)
		}
		line, _ := table.FieldPos(0)
		if rows > MaxRows {
			return refusal(file, line, "", "too many rows", fmt.Sprintf("at most %d", MaxRows))
		}
		row := Row{file: file, line: line, at: at, fields: fields}
		for column, i := range at {
			switch {
			case len(fields[i]) > maxField:
				return row.Refuse(column, "too long", fmt.Sprintf("at most %d bytes", maxField))
			case !utf8.ValidString(fields[i]) || strings.ContainsRune(fields[i], 0):
				return row.Refuse(column, "not UTF-8 text", "")
			}
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

func places(file string, header []string, columns Columns) (map[string]int, error) {
	at := map[string]int{}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if !slices.Contains(columns.Required, name) && !slices.Contains(columns.Optional, name) {
			return nil, refusal(file, 1, "", fmt.Sprintf("column %d of the header is none that is known", i+1), columns.accepted())
		}
		if _, doubled := at[name]; doubled {
			return nil, refusal(file, 1, name, "the column is there twice", columns.accepted())
		}
		at[name] = i
	}
	for _, name := range columns.Required {
		if _, ok := at[name]; !ok {
			return nil, refusal(file, 1, name, "the column is missing", columns.accepted())
		}
	}
	return at, nil
}

// broken says what the parser found wrong, without what it found.
func broken(file string, err error) error {
	pe := (*csv.ParseError)(nil)
	if !errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", file, err)
	}
	switch {
	case errors.Is(err, csv.ErrFieldCount):
		return refusal(file, pe.StartLine, "", "another number of fields than the header has", "as many as there are columns")
	case errors.Is(err, csv.ErrQuote), errors.Is(err, csv.ErrBareQuote):
		return refusal(file, pe.Line, "", "a stray quotation mark", `fields in quotation marks as a whole, a mark inside as ""`)
	}
	return fmt.Errorf("%s:%d: %w", file, pe.Line, pe.Err)
}

// Instant reads a day, which is its midnight in UTC, or a time with its offset
// from UTC. Whole says that it is a day.
func Instant(text string) (at time.Time, whole bool, err error) {
	if at, err = time.Parse(time.DateOnly, text); err == nil {
		whole = true
	} else {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		return time.Time{}, false, errors.New(Instants)
	}
	return at.UTC(), whole, nil
}

// Instants is what [Instant] accepts.
const Instants = "a day such as 2026-11-30, or a time such as 2026-11-30T14:05:00Z"
