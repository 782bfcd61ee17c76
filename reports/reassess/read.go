package reassess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

// ErrNoEvidence says that a run measured the machine it was run on, or nothing.
var ErrNoEvidence = errors.New("the run says nothing of its target")

// Evidence is what was read.
type Evidence struct {
	inputs      []record.ReportInput
	access, api *accesslog.Log // nil: none was given
	accessNames []string
	apiNames    []string
	runs        []namedRun
	engine      engine
}

type namedRun struct {
	name string
	run  record.Run
}

// StandardInput is the path that stands for a log on standard input.
const StandardInput = "-"

// Read reads run folders, capacity searches, access logs and API logs, each
// recognised by what it holds; stdin is what [StandardInput] stands for. Several
// files of one kind of log make one log, in the order given. An error names the
// input; a run that says nothing of its target is refused with [ErrNoEvidence].
func Read(ctx context.Context, paths []string, stdin io.Reader, opt accesslog.Options) (Evidence, error) {
	var e Evidence
	var access, api logFiles
	e.inputs = make([]record.ReportInput, len(paths))
	for i, path := range paths {
		if err := given(paths[:i], path); err != nil {
			return e, err
		}
		doc, err := documentAt(path)
		if err != nil {
			return e, err
		}
		if doc.path != "" {
			if err := e.readDocument(path, doc, &e.inputs[i]); err != nil {
				return e, fmt.Errorf("%s: %w", doc.path, err)
			}
			if err := e.given(i); err != nil {
				return e, err
			}
			continue
		}
		d := &digest{path: path}
		if path == StandardInput {
			d = &digest{path: "standard input", from: newPeeked(stdin)}
		}
		format, err := accesslog.Recognise(ctx, d.look())
		if err != nil {
			return e, err
		}
		if format == record.FormatAPI {
			api.add(d, record.InputAPILog, &e.inputs[i])
		} else {
			access.add(d, record.InputAccessLog, &e.inputs[i])
		}
	}
	var err error
	if e.access, err = access.read(ctx, opt); err != nil {
		return e, err
	}
	if e.api, err = api.read(ctx, opt); err != nil {
		return e, err
	}
	e.accessNames, e.apiNames = access.names(), api.names()
	return e, nil
}

// given refuses a run that is there already under another name.
func (e *Evidence) given(i int) error {
	for _, earlier := range e.inputs[:i] {
		if e.inputs[i].SHA256 == earlier.SHA256 {
			return fmt.Errorf("%s: holds the same as %s, which would count twice", e.inputs[i].Name, earlier.Name)
		}
	}
	return nil
}

// given refuses an input that is there already: what it tells would count twice.
func given(before []string, path string) error {
	if path == StandardInput {
		for _, b := range before {
			if b == path {
				return errors.New("standard input: given twice")
			}
		}
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%s: %w; accepted: %s", path, bare(err), accepted)
	}
	for _, b := range before {
		if other, err := os.Stat(b); err == nil && os.SameFile(info, other) {
			return fmt.Errorf("%s: given twice, first as %s", path, b)
		}
	}
	return nil
}
