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

// Close gives back what the logs hold outside of memory.
func (e Evidence) Close() (err error) {
	for _, l := range []*accesslog.Log{e.access, e.api} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

type namedRun struct {
	name string
	run  record.Run
}

// Input is a file or a folder, or a stream with a name.
type Input struct {
	Name   string    // a path, unless there is a reader
	Reader io.Reader // nil: what is at the path
}

// Files are the inputs at paths.
func Files(paths ...string) []Input {
	list := make([]Input, len(paths))
	for i, path := range paths {
		list[i].Name = path
	}
	return list
}

// Read reads run folders, capacity searches, access logs and API logs, each
// recognised by what it holds; a stream is a log. Several files of one kind of log
// make one log, in the order given. An error names the input; a run that says
// nothing of its target is refused with [ErrNoEvidence].
func Read(ctx context.Context, inputs []Input, opt accesslog.Options) (Evidence, error) {
	var e Evidence
	var access, api logFiles
	e.inputs = make([]record.ReportInput, len(inputs))
	for i, in := range inputs {
		if err := given(inputs[:i], in); err != nil {
			return e, err
		}
		doc, err := in.document()
		if err != nil {
			return e, err
		}
		if doc.path != "" {
			if err := e.readDocument(in.Name, doc, &e.inputs[i]); err != nil {
				return e, fmt.Errorf("%s: %w", doc.path, err)
			}
			if err := e.given(i); err != nil {
				return e, err
			}
			continue
		}
		d := &digest{path: in.Name}
		if in.Reader != nil {
			d.from = newPeeked(in.Reader)
		}
		format, err := accesslog.Recognise(ctx, d.look(), opt)
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
func given(before []Input, in Input) error {
	if in.Reader != nil {
		for _, b := range before {
			if b.Reader != nil && b.Name == in.Name {
				return fmt.Errorf("%s: given twice", in.Name)
			}
		}
		return nil
	}
	info, err := os.Stat(in.Name)
	if err != nil {
		return fmt.Errorf("%s: %w; accepted: %s", in.Name, bare(err), accepted)
	}
	for _, b := range before {
		if other, err := os.Stat(b.Name); err == nil && b.Reader == nil && os.SameFile(info, other) {
			return fmt.Errorf("%s: given twice, first as %s", in.Name, b.Name)
		}
	}
	return nil
}
