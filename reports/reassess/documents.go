package reassess

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/invoicespec/brimline/internal/files"
	"github.com/invoicespec/brimline/reports/record"
)

// accepted is what an input may be.
const accepted = "a folder that brimline load left, access logs, API logs"

// document is an input of our own: a load run or a capacity search.
type document struct {
	path     string // of the file; empty: the input is none
	capacity bool
}

// bare is err without the path that it names.
func bare(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// maxHead is how much of a file tells whether it is a document.
const maxHead = 64 << 10

// document is what the input is, or what is in the folder there.
func (in Input) document() (document, error) {
	if in.Reader != nil {
		return document{}, nil
	}
	path := in.Name
	info, err := os.Stat(path)
	if err != nil {
		return document{}, err
	}
	if info.IsDir() {
		for _, d := range []document{{filepath.Join(path, record.RunFile), false}, {filepath.Join(path, record.CapacityFile), true}} {
			if _, err := os.Stat(d.path); err == nil {
				return d, nil
			}
		}
		return document{}, fmt.Errorf("%s: a folder without %s or %s; accepted: %s", path, record.RunFile, record.CapacityFile, accepted)
	}
	f, err := files.Open(path)
	if err != nil {
		return document{}, fmt.Errorf("%s: %w", path, bare(err))
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, maxHead))
	if err != nil {
		return document{}, fmt.Errorf("%s: %w", path, err)
	}
	switch schema := documentSchema(head); {
	case strings.HasPrefix(schema, "brimline.run/"):
		return document{path: path}, nil
	case strings.HasPrefix(schema, "brimline.capacity/"):
		return document{path, true}, nil
	case strings.HasPrefix(schema, "brimline.report/"):
		return document{}, fmt.Errorf("%s: %q is no record of traffic: an earlier report is given with --against; accepted: %s", path, schema, accepted)
	case strings.HasPrefix(schema, "brimline."):
		return document{}, fmt.Errorf("%s: %q is no record of traffic; accepted: %s", path, schema, accepted)
	}
	return document{}, nil
}

// documentSchema is the member "schema" of a JSON object that begins with head,
// if it is a text and stands near the beginning.
func documentSchema(head []byte) string {
	d := json.NewDecoder(bytes.NewReader(head))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return ""
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return ""
		}
		if key == "schema" {
			var text string
			if json.Unmarshal(value, &text) != nil {
				return ""
			}
			return text
		}
	}
	return ""
}

// readDocument reads a run or a capacity search.
func (e *Evidence) readDocument(name string, doc document, in *record.ReportInput) error {
	d := &digest{path: doc.path}
	defer d.Close()
	data, err := io.ReadAll(io.LimitReader(d, record.MaxRunSize+1))
	if err != nil {
		return err
	}
	if len(data) > record.MaxRunSize {
		return fmt.Errorf("more than %d bytes", record.MaxRunSize)
	}
	if doc.capacity {
		c, err := record.ParseCapacity(data)
		if err != nil {
			return err
		}
		if e.engine.found != nil {
			return fmt.Errorf("a second capacity search beside %s; accepted: one", e.engine.name)
		}
		e.engine = engine{name: name, found: &c}
		*in = d.input(name, record.InputCapacity)
		return nil
	}
	run, err := record.ParseRun(data)
	if err != nil {
		return err
	}
	for _, d := range append(run.Untold, run.Doubts()...) {
		if d.Plan == "" {
			return fmt.Errorf("%w: %s; accepted: a run that is valid", ErrNoEvidence, d.Why)
		}
	}
	*in = d.input(name, record.InputRun)
	e.runs = append(e.runs, namedRun{name: name, run: run})
	return nil
}
