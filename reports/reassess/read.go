package reassess

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
}

type namedRun struct {
	name string
	run  record.Run
}

// Read reads run folders, access logs and API logs, each recognised by what it
// holds. Several files of one kind of log make one log, in the order given. An
// error names the input; a run that says nothing of its target is refused with
// [ErrNoEvidence].
func Read(ctx context.Context, paths []string, opt accesslog.Options) (Evidence, error) {
	var e Evidence
	var access, api logFiles
	e.inputs = make([]record.ReportInput, len(paths))
	for i, path := range paths {
		if err := given(paths[:i], path); err != nil {
			return e, err
		}
		run, err := runPath(path)
		if err != nil {
			return e, err
		}
		if run != "" {
			if err := e.readRun(path, run, &e.inputs[i]); err != nil {
				return e, fmt.Errorf("%s: %w", run, err)
			}
			if err := e.given(i); err != nil {
				return e, err
			}
			continue
		}
		format, err := accesslog.Recognise(ctx, accesslog.File(path))
		if err != nil {
			return e, err
		}
		if format == record.FormatAPI {
			api.add(path, record.InputAPILog, &e.inputs[i])
		} else {
			access.add(path, record.InputAccessLog, &e.inputs[i])
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
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%s: %w; accepted: a folder that brimline load left, access logs, API logs", path, bare(err))
	}
	for _, b := range before {
		if other, err := os.Stat(b); err == nil && os.SameFile(info, other) {
			return fmt.Errorf("%s: given twice, first as %s", path, b)
		}
	}
	return nil
}

// bare is err without the path that it names.
func bare(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// maxHead is how much of a file tells whether it is a run.
const maxHead = 64 << 10

// runPath is the file that holds a run, if path is one or a folder with one.
func runPath(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		file := filepath.Join(path, record.RunFile)
		if _, err := os.Stat(file); err != nil {
			return "", fmt.Errorf("%s: a folder without %s; accepted: a folder that brimline load left, access logs, API logs", path, record.RunFile)
		}
		return file, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, maxHead))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	switch schema := documentSchema(head); {
	case strings.HasPrefix(schema, "brimline.run/"):
		return path, nil
	case strings.HasPrefix(schema, "brimline."):
		return "", fmt.Errorf("%s: %q is no record of traffic; accepted: a folder that brimline load left, access logs, API logs", path, schema)
	}
	return "", nil
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

func (e *Evidence) readRun(name, file string, in *record.ReportInput) error {
	f := &digest{path: file, hash: sha256.New()}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, record.MaxRunSize+1))
	if err != nil {
		return err
	}
	if len(data) > record.MaxRunSize {
		return fmt.Errorf("more than %d bytes", record.MaxRunSize)
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
	*in = f.input(name, record.InputRun)
	e.runs = append(e.runs, namedRun{name: name, run: run})
	return nil
}

// logFiles are the files of one log.
type logFiles struct {
	files []*digest
	kind  record.InputKind
	to    []*record.ReportInput
}

func (l *logFiles) add(path string, kind record.InputKind, to *record.ReportInput) {
	l.kind = kind
	l.files = append(l.files, &digest{path: path, hash: sha256.New()})
	l.to = append(l.to, to)
}

func (l *logFiles) names() (names []string) {
	for _, f := range l.files {
		names = append(names, f.path)
	}
	return names
}

// read reads the files as one log, and nothing of them twice: what is hashed is
// what was read, also while the log is still being written.
func (l *logFiles) read(ctx context.Context, opt accesslog.Options) (*accesslog.Log, error) {
	if len(l.files) == 0 {
		return nil, nil
	}
	var sources []accesslog.Source
	for _, f := range l.files {
		defer f.Close()
		sources = append(sources, accesslog.Stream(f.path, f))
	}
	log, err := accesslog.Read(ctx, sources, opt)
	if err != nil {
		return nil, err
	}
	for i, f := range l.files {
		if _, err := io.Copy(io.Discard, f); err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		*l.to[i] = f.input(f.path, l.kind)
	}
	return log, nil
}

// digest reads a file, opened when its turn comes, and sums up what was read.
type digest struct {
	path  string
	file  *os.File
	hash  hash.Hash
	bytes int64
	err   error // of opening
}

func (d *digest) Read(p []byte) (int, error) {
	if d.file == nil && d.err == nil {
		d.file, d.err = os.Open(d.path)
	}
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.file.Read(p)
	d.hash.Write(p[:n])
	d.bytes += int64(n)
	return n, err
}

func (d *digest) Close() error {
	if d.file == nil {
		return nil
	}
	err := d.file.Close()
	d.file, d.err = nil, errors.Join(d.err, os.ErrClosed)
	return err
}

func (d *digest) input(name string, kind record.InputKind) record.ReportInput {
	return record.ReportInput{Name: name, Kind: kind, Bytes: d.bytes, SHA256: hex.EncodeToString(d.hash.Sum(nil))}
}
