package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/store/postgres"
)

// apiLogLines is the API log in a database, entries received from since on and
// before until, as lines of a file; a zero time is no bound. Done lets go of the
// database, and is to be called once they have been read.
func apiLogLines(ctx context.Context, url string, since, until time.Time) (name string, lines io.Reader, done func(), err error) {
	log, closed, err := postgres.OpenLog(ctx, url)
	if err != nil {
		return "", nil, nil, databaseError(err)
	}
	next, stop := iter.Pull2(log.Entries(ctx, since, until))
	name = "the database's API log"
	if !since.IsZero() {
		name += " from " + since.UTC().Format(time.RFC3339)
	}
	if !until.IsZero() {
		name += " until " + until.UTC().Format(time.RFC3339)
	}
	return name, &entryLines{next: next}, func() { stop(); closed() }, nil
}

// entryLines is log entries as lines of JSON, as the log in a file has them.
type entryLines struct {
	next  func() (contract.LogEntry, error, bool)
	line  bytes.Buffer
	ended error
}

func (l *entryLines) Read(p []byte) (int, error) {
	for l.line.Len() == 0 {
		if l.ended != nil {
			return 0, l.ended
		}
		e, err, more := l.next()
		switch {
		case !more:
			l.ended = io.EOF
		case err != nil:
			l.ended = databaseError(err)
		default:
			if err := json.NewEncoder(&l.line).Encode(e); err != nil {
				l.ended = fmt.Errorf("write a log entry: %w", err)
			}
		}
	}
	return l.line.Read(p)
}
