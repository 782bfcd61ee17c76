package conformance

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/features"
	"github.com/invoicespec/brimline/internal/strictyaml"
)

// Own is the contract's features and somebody's own beside them, with clauses of
// their own. It is what [Options.Features] and [NewPlan] take. Make one with
// [ReadOwn].
type Own struct {
	label   string       // of the folder, in reports
	files   fstest.MapFS // below that label
	clauses []contract.Clause
}

// Bounds of a folder of features.
const (
	maxFeature  = 256 << 10
	maxFeatures = 200
	maxClauses  = 1000
)

// clausesFile declares the clauses of a folder's features.
const clausesFile = "clauses.yaml"

// ReadOwn reads a folder of features and the clauses.yaml in it, and checks them
// as strictly as the contract's own are: every sentence is known, every scenario
// carries a clause that is declared there, every clause is carried. Its errors are
// one line, which names file, line and what is accepted.
func ReadOwn(dir string) (*Own, error) {
	o := &Own{label: label(dir), files: fstest.MapFS{}}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, pathError(dir, err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, pathError(dir, err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
			continue
		case e.IsDir():
			return nil, fmt.Errorf("%s: a folder; accepted: .feature files and %s side by side", path, clausesFile)
		case filepath.Ext(e.Name()) != ".feature":
			continue
		case len(o.files) == maxFeatures:
			return nil, fmt.Errorf("%s: too many features; accepted: at most %d files", dir, maxFeatures)
		}
		data, err := readIn(root, e.Name(), maxFeature)
		if err != nil {
			return nil, pathError(path, err)
		}
		o.files[o.label+"/"+e.Name()] = &fstest.MapFile{Data: data, Mode: 0o444}
	}
	if len(o.files) == 0 {
		return nil, fmt.Errorf("%s: no features; accepted: .feature files and %s", dir, clausesFile)
	}
	if err := o.readClauses(root, filepath.Join(dir, clausesFile)); err != nil {
		return nil, err
	}
	if err := o.check(dir); err != nil {
		return nil, err
	}
	return o, nil
}

// label is what reports call a folder. "features" is the contract's own.
func label(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	base := filepath.Base(dir)
	if base == "features" || !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`).MatchString(base) {
		return "own"
	}
	return base
}

// readIn reads a file that lies in a folder, whatever links lead out of it.
func readIn(root *os.Root, name string, most int64) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("no file; accepted: a file")
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("too large; accepted: at most %d bytes", most)
	}
	return data, err
}

func pathError(path string, err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err // the path comes first anyway
	}
	return fmt.Errorf("%s: %w", path, err)
}

// declared is a clauses.yaml.
type declared struct {
	Group   string           `yaml:"group"`
	Clauses []declaredClause `yaml:"clauses"`
}

type declaredClause struct {
	ID       string `yaml:"id"`
	Level    string `yaml:"level"`
	Sentence string `yaml:"sentence"`
}

var ownID = regexp.MustCompile(`^[A-Z][A-Z0-9]{1,15}-[1-9][0-9]{0,3}$`)

func (o *Own) readClauses(root *os.Root, path string) error {
	data, err := readIn(root, clausesFile, strictyaml.MaxSize)
	if err != nil {
		return pathError(path, err)
	}
	var d declared
	doc, err := strictyaml.Parse(path, data, &d)
	if err != nil {
		return err
	}
	group := strings.TrimSpace(d.Group)
	switch {
	case !oneLine(group, 60):
		return doc.Refuse("group", fmt.Sprintf("%q is no heading", d.Group), "one line of up to 60 characters")
	case slices.ContainsFunc(contract.Groups(), func(g contract.Group) bool { return strings.EqualFold(g.Name, group) }):
		return doc.Refuse("group", fmt.Sprintf("%q is a group of the contract", group), "a heading of your own")
	case len(d.Clauses) == 0 || len(d.Clauses) > maxClauses:
		return doc.Refuse("clauses", fmt.Sprintf("%d clauses", len(d.Clauses)), fmt.Sprintf("1 to %d", maxClauses))
	}
	for i, c := range d.Clauses {
		key := fmt.Sprintf("clauses[%d]", i)
		family, _, _ := strings.Cut(c.ID, "-")
		level := contract.Level(c.Level)
		switch _, twice := find(o.clauses, c.ID); {
		case !ownID.MatchString(c.ID):
			return doc.Refuse(key+".id", fmt.Sprintf("%q is no clause id", c.ID), "capitals, a dash and a number, such as TEAM-1")
		case slices.ContainsFunc(contract.Clauses(), func(x contract.Clause) bool { return strings.HasPrefix(x.ID, family+"-") }):
			return doc.Refuse(key+".id", fmt.Sprintf("%s: clauses named %s-… are the contract's", c.ID, family), "a name of your own, such as TEAM-1")
		case twice:
			return doc.Refuse(key+".id", c.ID+" again", "each id once")
		case level != contract.Must && level != contract.Decided:
			return doc.Refuse(key+".level", fmt.Sprintf("%q is no level", c.Level), "MUST (not kept: fails) or DECIDED (not kept: differs)")
		case !oneLine(c.Sentence, 500):
			return doc.Refuse(key+".sentence", fmt.Sprintf("%q is no sentence", c.Sentence), "one line of up to 500 characters")
		}
		o.clauses = append(o.clauses, contract.Clause{ID: c.ID, Level: level, Needs: []contract.Need{}, Group: group, Sentence: c.Sentence})
	}
	return nil
}

func oneLine(s string, most int) bool {
	return s != "" && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Open opens a feature, the contract's or somebody's own.
func (o *Own) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, o.label+"/") {
		return o.files.Open(name)
	}
	return features.FS.Open(name)
}

// Clauses lists the contract's clauses, then the own ones.
func (o *Own) Clauses() []contract.Clause { return slices.Concat(contract.Clauses(), o.clauses) }

// paths lists the own features, sorted.
func (o *Own) paths() []string {
	var all []string
	for path := range o.files {
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}

// ownOf is the own features among some; nil: there are none.
func ownOf(features fs.FS) *Own {
	o, _ := features.(*Own)
	return o
}

// Clauses lists the clauses that features are about: the contract's and, with
// [Own], somebody's own.
func Clauses(features fs.FS) []contract.Clause {
	if o := ownOf(features); o != nil {
		return o.Clauses()
	}
	return contract.Clauses()
}

func find(all []contract.Clause, id string) (contract.Clause, bool) {
	i := slices.IndexFunc(all, func(c contract.Clause) bool { return c.ID == id })
	if i < 0 {
		return contract.Clause{}, false
	}
	return all[i], true
}
