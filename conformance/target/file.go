package target

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/internal/strictyaml"
)

// File is a target file. Paths in it are relative to the folder it lies in.
type File struct {
	BaseURLs       []string             `yaml:"base-urls"`          // several: replicas on one pool, asked in turn
	Protocol       Protocol             `yaml:"protocol,omitempty"` // that requests are sent in; empty: [HTTP1]
	Credential     Credential           `yaml:"credential"`
	TLS            *TLS                 `yaml:"tls,omitempty"`
	KeysFile       string               `yaml:"keys-file,omitempty"` // see [ReadKeys]
	Users          []UserOf             `yaml:"users,omitempty"`     // instead of a keys file
	Operations     Operations           `yaml:"operations"`
	Limited        string               `yaml:"limited,omitempty"`         // the path that is limited with everything below it; empty: see [Scope]
	Headers        map[string]string    `yaml:"headers,omitempty"`         // what the deployment calls the contract's headers
	ResetIs        string               `yaml:"reset-is,omitempty"`        // what its RateLimit-Reset counts; empty: seconds
	ErrorBody      map[string]string    `yaml:"error-body,omitempty"`      // what it calls the members of an error body
	Answers        map[string]Reply     `yaml:"answers,omitempty"`         // what it answers where the contract leaves that open, by the contract's error code
	OutsideQuotas  []string             `yaml:"outside-quotas,omitempty"`  // paths
	InternalRoutes []Route              `yaml:"internal-routes,omitempty"` // for operators and the service itself, never for a user's key
	Allowances     map[string]Allowance `yaml:"allowances"`                // by plan
	Anonymous      *Anonymous           `yaml:"anonymous,omitempty"`       // nil: the contract's own
	Can            Can                  `yaml:"can,omitempty"`
	Limits         Limits               `yaml:"limits,omitempty"`

	folder string
	doc    *strictyaml.Document // nil: it was not read from a file
}

// Credential says how a key goes into a request.
type Credential struct {
	Header   string `yaml:"header"`
	Template string `yaml:"template"` // holds {key} once
}

// Operations are requests that are known to end in a known way.
type Operations struct {
	Valid   Operation  `yaml:"valid"`
	Invalid *Operation `yaml:"invalid,omitempty"` // fails validation
	Failing *Operation `yaml:"failing,omitempty"` // valid, and the engine fails it
	Slow    *Slow      `yaml:"slow,omitempty"`    // succeeds, after a while
}

// Slow is an operation that takes its time. Where nothing else can hold a request,
// it is in flight for that long.
type Slow struct {
	Operation
	Takes time.Duration `yaml:"takes"` // at least, from when it is let in
}

// Operation is one request. Body and BodyFile exclude each other.
type Operation struct {
	Method   string            `yaml:"method"`
	Path     string            `yaml:"path"`
	Headers  map[string]string `yaml:"headers,omitempty"`
	Body     string            `yaml:"body,omitempty"`
	BodyFile string            `yaml:"body-file,omitempty"`
	Expect   int64             `yaml:"expect,omitempty"` // the status it ends with; 0: not given, so 200 for valid and slow, 422 for invalid, any of 500 and above for failing
}

// Route is a request that no user's key may carry out. {user} and {dimension} in
// it stand for a user's id and for the dimension of an override.
type Route struct {
	Method string `yaml:"method"`
	Path   string `yaml:"path"`
	Body   string `yaml:"body,omitempty"`
}

// Allowance is what a plan allows.
type Allowance struct {
	RequestsPerMinute int64 `yaml:"requests-per-minute"`
	Burst             int64 `yaml:"burst"`
	Concurrency       int64 `yaml:"concurrency"`
}

// Can is what the target offers beyond plain HTTP.
type Can struct {
	HTTP2         bool               `yaml:"http2,omitempty"`          // over TLS, or to clients that begin with it
	StalledUpload bool               `yaml:"stalled-upload,omitempty"` // a half-sent body of the valid operation stays in flight, and 100 Continue is answered once it is
	Control       *ControlAddress    `yaml:"control,omitempty"`
	Commands      map[string]Command `yaml:"commands,omitempty"` // by action, in place of the control protocol's
	SQL           *SQL               `yaml:"sql,omitempty"`
	Addresses     []string           `yaml:"addresses,omitempty"` // addresses and prefixes that requests can be sent from, and that the deployment takes for the client's
	Proxy         *Proxy             `yaml:"proxy,omitempty"`     // we are taken for a trusted proxy
	Page          *Page              `yaml:"page,omitempty"`
	Metrics       *MetricsAddress    `yaml:"metrics,omitempty"` // asked of the process that answers at base-urls
	Process       *Process           `yaml:"process,omitempty"`
}

// Page is the billing page and how to sign in to it: a form with the key in one
// field, and a cookie that comes back.
type Page struct {
	Path       string `yaml:"path"`
	SignIn     string `yaml:"sign-in"`    // path that the form is posted to
	Field      string `yaml:"field"`      // of the form, for the key
	Negotiated string `yaml:"negotiated"` // what the page says beside a negotiated value and nowhere else
}

// ControlAddress is where the control protocol is spoken.
type ControlAddress struct {
	URL       string `yaml:"url"`
	TokenFile string `yaml:"token-file"` // holds the token alone; nobody but its owner may read it
}

// Limits bound what a run may cost.
type Limits struct {
	MaxOperations int64 `yaml:"max-operations,omitempty"` // 0: not given, so [DefaultMaxOperations]
	Patience      int64 `yaml:"patience,omitempty"`       // how many times longer than usual things may take; 0: not given, so 1
}

// DefaultMaxOperations is the most operations charged where a target file does
// not say.
const DefaultMaxOperations = 10_000

// ReadFile reads and checks a target file. Its errors are one line each, which
// names file, line, key and what is accepted.
func ReadFile(path string) (File, error) {
	var f File
	doc, err := strictyaml.Read(path, &f)
	if err == nil {
		f.folder, f.doc = filepath.Dir(path), doc
		err = f.makesSense(doc)
	}
	if err != nil {
		return File{}, unfilled(err)
	}
	return f, nil
}

// FillIn stands in a target file where somebody still has to say something: no key
// takes it for a value.
const FillIn = "FILL-IN"

// unfilled is what is wrong with a file, or that its line was never filled in.
func unfilled(err error) error {
	e := (*strictyaml.Error)(nil)
	if !errors.As(err, &e) || e.Line < 1 {
		return err
	}
	data, reading := os.ReadFile(e.File)
	if lines := strings.Split(string(data), "\n"); reading == nil && e.Line <= len(lines) && strings.Contains(lines[e.Line-1], FillIn) {
		told := *e
		told.Problem = FillIn + " is to be filled in"
		return &told
	}
	return err
}

func (f *File) makesSense(doc *strictyaml.Document) error {
	for _, key := range []string{"limits.max-operations", "limits.patience", "operations.valid.expect", "operations.invalid.expect", "operations.failing.expect", "operations.slow.expect"} {
		// Zero stands for "not given" in memory, and for nothing in a file.
		if doc.Has(key) && *f.number(key) == 0 {
			return doc.Refuse(key, "0 means nothing here", "a positive number, or leave it out")
		}
	}
	for _, code := range slices.Sorted(maps.Keys(f.Answers)) {
		if key := "answers." + code + ".status"; doc.Has(key) && f.Answers[code].Status == 0 {
			return doc.Refuse(key, "0 means nothing here", "a status, or leave it out")
		}
	}
	if p := f.check(); p != nil {
		return doc.Refuse(p.key, p.problem, p.accepted)
	}
	return nil
}

// at puts the place of a key before what is wrong with the file that it names.
func (f File) at(key string, err error) error {
	if err == nil || f.doc == nil {
		return err
	}
	return fmt.Errorf("%s: %w", f.doc.At(key), err)
}

// naming is at, and puts the key itself before it where there is no place.
func (f File) naming(key string, err error) error {
	if f.doc == nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return f.at(key, err)
}

func (f *File) number(key string) *int64 {
	switch key {
	case "operations.valid.expect":
		return &f.Operations.Valid.Expect
	case "operations.invalid.expect":
		return &f.Operations.Invalid.Expect
	case "operations.failing.expect":
		return &f.Operations.Failing.Expect
	case "operations.slow.expect":
		return &f.Operations.Slow.Expect
	case "limits.patience":
		return &f.Limits.Patience
	}
	return &f.Limits.MaxOperations
}

// Write writes a target file and, beside it and named in it, the keys and the
// control token, which nobody but the owner may read. Each file is replaced as a
// whole, the target file last, so that whoever waits for it finds all of them,
// and none before all are ready to be put in place.
func Write(path string, f File, keys []Key, token Secret) (err error) {
	stem := strings.TrimSuffix(path, filepath.Ext(path))
	var all []*draft
	defer func() {
		for _, d := range all {
			d.discard()
		}
	}()
	add := func(path string, data []byte, mode os.FileMode) {
		if err == nil {
			var d *draft
			d, err = prepare(path, data, mode)
			all = append(all, d)
		}
	}
	if len(keys) > 0 {
		f.KeysFile = filepath.Base(stem) + ".keys"
	}
	if f.Can.Control != nil {
		f.Can.Control = &ControlAddress{URL: f.Can.Control.URL, TokenFile: filepath.Base(stem) + ".token"}
	}
	data, encoding := strictyaml.Encode(f)
	if encoding != nil {
		return fmt.Errorf("write %s: %w", path, encoding)
	}
	add(path, data, 0o644) // first, so that what is wrong is said of the file that was asked for
	if len(keys) > 0 {
		add(stem+".keys", encodeKeys(keys), 0o600)
	}
	if f.Can.Control != nil {
		add(stem+".token", []byte(token.Reveal()+"\n"), 0o600)
	}
	for _, d := range slices.Backward(all) {
		if err == nil {
			err = d.put()
		}
	}
	return err
}

// draft is a file that is written and not yet in place.
type draft struct{ tmp, path string }

// prepare writes a file beside the place that it is to take. Its errors name
// that place.
func prepare(path string, data []byte, mode os.FileMode) (*draft, error) {
	d := &draft{path: path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return d, fmt.Errorf("write %s: a folder; accepted: a file to be written", path)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return d, d.wrap(err)
	}
	d.tmp = tmp.Name()
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	return d, d.wrap(err)
}

// put puts the file in place of whatever was there, so that a mode that was too
// wide does not survive.
func (d *draft) put() error {
	err := os.Rename(d.tmp, d.path)
	if le := (*os.LinkError)(nil); errors.As(err, &le) {
		err = le.Err
	}
	return d.wrap(err)
}

// discard removes what was not put in place; after that there is nothing.
func (d *draft) discard() {
	if d.tmp != "" {
		os.Remove(d.tmp)
	}
}

func (d *draft) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %w", fileError(d.path, err))
}

// in is the path of a file that the target file names.
func (f File) in(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(f.folder, name)
}
