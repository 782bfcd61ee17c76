package apilog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/invoicespec/brimline/conformance/contract"
)

// maxFound bounds how far back a file is searched, in bytes.
const maxFound = 64 << 20

// Find returns the entries of a request, whichever process wrote them, in the
// order in which they stand in the last 64 MiB of the file. Without any it
// returns none.
func (l *File) Find(requestID string) ([]contract.LogEntry, error) {
	found, err := l.find(requestID)
	if err != nil {
		return nil, fmt.Errorf("look for request %q in the API log: %w", requestID, err)
	}
	return found, nil
}

func (l *File) find(requestID string) (found []contract.LogEntry, err error) {
	info, err := l.lines.file.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-maxFound)
	b := bufio.NewReaderSize(io.NewSectionReader(l.lines.file, from, info.Size()-from), maxLine)
	for {
		line, _, err := nextLine(b)
		switch {
		case errors.Is(err, io.EOF): // what has no end yet is no entry
			return found, nil
		case err != nil:
			return found, err
		}
		var e contract.LogEntry
		if bytes.Contains(line, []byte(requestID)) && json.Unmarshal(line, &e) == nil && e.RequestID == requestID {
			found = append(found, e)
		}
	}
}
