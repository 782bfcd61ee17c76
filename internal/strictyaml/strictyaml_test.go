package strictyaml_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/strictyaml"
)

type colour string

func (c *colour) UnmarshalText(text []byte) error {
	if s := string(text); s != "red" && s != "1.2x" && s != "5" {
		return fmt.Errorf("%q is no colour; accepted: red, 1.2x, 5", s)
	}
	*c = colour(text)
	return nil
}

// pace is a word, or spelled out.
type pace struct {
	Word  string
	Every time.Duration `yaml:"every"`
}

func (p *pace) UnmarshalText(text []byte) error {
	p.Word = string(text)
	return nil
}

func (p pace) MarshalText() ([]byte, error) { return []byte(p.Word), nil }

type inner struct {
	Path string            `yaml:"path"`
	Head map[string]string `yaml:"head,omitempty"`
	Size int64             `yaml:"size,omitempty"`
}

// wrapped is an inner and more, side by side.
type wrapped struct {
	inner
	Depth int64 `yaml:"depth"`
}

type outer struct {
	Name   string           `yaml:"name"`
	Count  int64            `yaml:"count,omitempty"`
	On     bool             `yaml:"on,omitempty"`
	Wait   time.Duration    `yaml:"wait,omitempty"`
	Colour colour           `yaml:"colour,omitempty"`
	Pace   *pace            `yaml:"pace,omitempty"`
	List   []string         `yaml:"list,omitempty"`
	Sizes  []int64          `yaml:"sizes,omitempty"`
	Inner  *inner           `yaml:"inner,omitempty"`
	Many   []inner          `yaml:"many,omitempty"`
	Named  map[string]inner `yaml:"named,omitempty"`
	Wrap   *wrapped         `yaml:"wrap,omitempty"`
	hidden int64
}

func TestParseTakes(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want outer
	}{
		"the least":                   {"name: x\n", outer{Name: "x"}},
		"an embedded struct":          {"name: x\nwrap: { path: /a, depth: 2 }", outer{Name: "x", Wrap: &wrapped{inner{Path: "/a"}, 2}}},
		"flow style":                  {`{name: x, count: 3, inner: {path: /a, size: 1}}`, outer{Name: "x", Count: 3, Inner: &inner{Path: "/a", Size: 1}}},
		"quoted keys":                 {"\"name\": 'x: y'\n", outer{Name: "x: y"}},
		"a document marker":           {"---\nname: x\n...\n", outer{Name: "x"}},
		"byte order mark":             {"\ufeffname: x\r\ncount: 2\r\n", outer{Name: "x", Count: 2}},
		"comments":                    {"# a\nname: x # b\n# c\n", outer{Name: "x"}},
		"negative":                    {"name: x\ncount: -3\n", outer{Name: "x", Count: -3}},
		"the largest number":          {"name: x\ncount: 9223372036854775807\n", outer{Name: "x", Count: 9223372036854775807}},
		"a block of text":             {"name: |\n  a\n   b\n", outer{Name: "a\n b\n"}},
		"quoted digits":               {"name: \"12\"\n", outer{Name: "12"}},
		"duration":                    {"name: x\nwait: 1m30s\n", outer{Name: "x", Wait: 90 * time.Second}},
		"own text type":               {"name: x\ncolour: 1.2x\n", outer{Name: "x", Colour: "1.2x"}},
		"own text type, bare number":  {"name: x\ncolour: 5\n", outer{Name: "x", Colour: "5"}},
		"a word or a mapping, a word": {"name: x\npace: even\n", outer{Name: "x", Pace: &pace{Word: "even"}}},
		"a word or a mapping, both":   {"name: x\npace: { every: 1s }\n", outer{Name: "x", Pace: &pace{Every: time.Second}}},
		"lists":                       {"name: x\nlist: [a, b]\nsizes:\n  - 1\n  - 2\n", outer{Name: "x", List: []string{"a", "b"}, Sizes: []int64{1, 2}}},
		"list of mappings":            {"name: x\nmany:\n  - path: /a\n    size: 1\n  - { path: /b }\n", outer{Name: "x", Many: []inner{{Path: "/a", Size: 1}, {Path: "/b"}}}},
		"mapping of mappings, a dot in a name": {
			"name: x\nnamed:\n  a.b: { path: /1 }\n  a: { path: /2, head: { b: c } }\n",
			outer{Name: "x", Named: map[string]inner{"a.b": {Path: "/1"}, "a": {Path: "/2", Head: map[string]string{"b": "c"}}}},
		},
		"empty mapping": {"name: x\nnamed: {}\n", outer{Name: "x", Named: map[string]inner{}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got outer
			_, err := strictyaml.Parse("f.yaml", []byte(c.in), &got)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Zero(t, got.hidden)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"unknown key":                   {"name: x\nnmae: y\n", "f.yaml:2: nmae: unknown key; accepted: name, count, on, wait, colour, pace, list, sizes, inner, many, named"},
		"unknown key below":             {"name: x\ninner:\n  path: /a\n  sise: 1\n", "f.yaml:4: inner.sise: unknown key; accepted: path, head, size"},
		"a key in another case":         {"Name: x\n", "f.yaml:1: Name: unknown key"},
		"doubled key":                   {"name: x\ncount: 1\nname: y\n", "f.yaml:3: name: given twice, first in line 1; accepted: each key once"},
		"doubled key, quoted":           {"name: x\n'name': y\n", "f.yaml:2: name: given twice"},
		"doubled name of a map":         {"name: x\nnamed:\n  a: {path: /}\n  a: {path: /}\n", "f.yaml:4: named.a: given twice, first in line 3"},
		"doubled key in flow":           {"{name: x, name: y}", "f.yaml:1: name: given twice"},
		"missing key":                   {"count: 1\n", "f.yaml:1: name: missing; accepted: text"},
		"missing key below":             {"name: x\nmany:\n  - path: /a\n  - size: 1\n", "f.yaml:4: many[1].path: missing; accepted: text"},
		"second document":               {"name: x\n---\nname: y\n", "f.yaml:2: a second document begins; accepted: one document"},
		"second document, empty":        {"name: x\n---\n", "f.yaml:2: a second document begins"},
		"fraction":                      {"name: x\ncount: 1.5\n", "f.yaml:2: count: got 1.5; accepted: a whole number"},
		"whole fraction":                {"name: x\ncount: 2.0\n", "f.yaml:2: count: got 2.0; accepted: a whole number"},
		"null":                          {"name: x\ncount: null\n", "f.yaml:2: count: null is no value; accepted: a whole number"},
		"tilde":                         {"name: x\ncount: ~\n", "f.yaml:2: count: null is no value"},
		"nothing":                       {"name: x\ncount:\non: true\n", "f.yaml:2: count: null is no value"},
		"null text":                     {"name:\n", "f.yaml:1: name: null is no value; accepted: text"},
		"null for a part":               {"name: x\ninner:\n", "f.yaml:2: inner: null is no value; accepted: a mapping"},
		"null in a list":                {"name: x\nlist:\n  - a\n  -\n", "f.yaml:4: list[1]: null is no value; accepted: text"},
		"quoted number":                 {"name: x\ncount: \"1\"\n", "f.yaml:2: count: got the text \"1\"; accepted: a whole number"},
		"word":                          {"name: x\ncount: many\n", "f.yaml:2: count: got the text \"many\"; accepted: a whole number"},
		"hexadecimal":                   {"name: x\ncount: 0x10\n", "f.yaml:2: count: got 0x10; accepted: a whole number"},
		"octal":                         {"name: x\ncount: 010\n", "f.yaml:2: count: got 010"},
		"underscore":                    {"name: x\ncount: 1_000\n", "f.yaml:2: count: got 1_000"},
		"plus":                          {"name: x\ncount: +5\n", "f.yaml:2: count: got +5"},
		"exponent":                      {"name: x\ncount: 1e3\n", "f.yaml:2: count: got 1e3; accepted: a whole number"},
		"too large a number":            {"name: x\ncount: 9223372036854775808\n", "f.yaml:2: count: got 9223372036854775808"},
		"far too large a number":        {"name: x\ncount: 99999999999999999999999\n", "f.yaml:2: count: got 99999999999999999999999, which is out of range; accepted: a whole number"},
		"infinity":                      {"name: x\ncount: .inf\n", "f.yaml:2: count: got .inf"},
		"boolean for a number":          {"name: x\ncount: true\n", "f.yaml:2: count: got true; accepted: a whole number"},
		"number for text":               {"name: 5\n", "f.yaml:1: name: got 5; accepted: text"},
		"yes for true":                  {"name: x\non: yes\n", "f.yaml:2: on: got the text \"yes\"; accepted: true or false"},
		"list for a mapping":            {"name: x\ninner: [1]\n", "f.yaml:2: inner: got a list; accepted: a mapping of path, head, size"},
		"text for a list":               {"name: x\nlist: a\n", "f.yaml:2: list: got the text \"a\"; accepted: a list of texts"},
		"number in a list of texts":     {"name: x\nlist: [a, 1]\n", "f.yaml:2: list[1]: got 1; accepted: text"},
		"mapping for text":              {"name: {a: b}\n", "f.yaml:1: name: got a mapping; accepted: text"},
		"list for a map":                {"name: x\nnamed: []\n", "f.yaml:2: named: got a list; accepted: a mapping of names to mappings"},
		"duration without unit":         {"name: x\nwait: 5\n", "f.yaml:2: wait: got 5; accepted: a duration such as 90s or 1m30s"},
		"own text type":                 {"name: x\ncolour: blue\n", "f.yaml:2: colour: \"blue\" is no colour; accepted: red, 1.2x, 5"},
		"own text type, a list":         {"name: x\ncolour: [red]\n", "f.yaml:2: colour: got a list; accepted: a word or number"},
		"a word or a mapping, a list":   {"name: x\npace: [a]\n", "f.yaml:2: pace: got a list; accepted: a word or number"},
		"a word or a mapping, key":      {"name: x\npace: { evry: 1s }\n", "f.yaml:2: pace.evry: unknown key; accepted: every"},
		"own text type, null":           {"name: x\ncolour:\n", "f.yaml:2: colour: null is no value"},
		"number as a key":               {"name: x\nnamed: {1: {path: /}}\n", "f.yaml:2: named: 1 as a key; accepted: a word"},
		"null as a key":                 {"name: x\nnull: y\n", "f.yaml:2: null as a key; accepted: a word"},
		"empty":                         {"", "f.yaml: the file is empty; accepted: a mapping"},
		"only comments":                 {"# nothing\n", "f.yaml: the file is empty"},
		"only a marker":                 {"---\n", "f.yaml: the file is empty"},
		"a list":                        {"- a\n", "f.yaml:1: got a list; accepted: a mapping of name"},
		"a word":                        {"a\n", "f.yaml:1: got the text \"a\"; accepted: a mapping of name"},
		"anchor":                        {"name: &a x\n", "f.yaml:1: an anchor (&) is not taken; accepted: plain mappings, lists and values"},
		"alias":                         {"name: x\nlist: [*a]\n", "f.yaml:2: an alias (*) is not taken"},
		"merge key":                     {"name: x\n<<: {count: 1}\n", "f.yaml:2: a merge key (<<) is not taken"},
		"tag":                           {"name: !!str 5\n", "f.yaml:1: a tag (!) is not taken"},
		"directive":                     {"%YAML 1.2\n---\nname: x\n", "f.yaml:1: a directive (%) is not taken"},
		"explicit key":                  {"? name\n: x\n", "f.yaml:1: an explicit key (?) is not taken"},
		"deep lists":                    {"name: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "f.yaml:1: nesting this deep is not taken"},
		"deep dashes":                   {"list: \n" + strings.Repeat("- ", 400) + "a\n", "f.yaml:2: nesting this deep is not taken"},
		"broken":                        {"name: [a\n", "f.yaml:1: sequence end token ']' not found"},
		"tab":                           {"name: x\n\tcount: 1\n", "f.yaml:2: a tab to indent with; accepted: spaces"},
		"an item where a key belongs":   {"name: x\n- a\n", "f.yaml:2: a value, or an item of a list, where a key belongs; accepted: key: value, indented"},
		"a list where a key belongs":    {"- a\nname: x\n", "f.yaml:2: a value, or an item of a list, where a key belongs; accepted: key: value, indented"},
		"not UTF-8":                     {"name: \xff\n", "f.yaml: not UTF-8 text"},
		"too large":                     {"name: x\n#" + strings.Repeat("x", strictyaml.MaxSize), "f.yaml: too large; accepted: at most 65536 bytes"},
		"control characters are quoted": {"name: x\n\"a\\nb\\u001b\": 1\n", `f.yaml:2: "a\nb\x1b": unknown key`},
	} {
		t.Run(name, func(t *testing.T) {
			var got outer
			_, err := strictyaml.Parse("f.yaml", []byte(c.in), &got)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestRefuseNamesTheNearestLine(t *testing.T) {
	var v outer
	d, err := strictyaml.Parse("f.yaml", []byte("name: x\n\ninner:\n  path: /a\nmany:\n  - path: /b\n  - path: /c\n"), &v)
	require.NoError(t, err)
	require.True(t, d.Has("many[1].path"))
	require.False(t, d.Has("inner.size"))
	for key, line := range map[string]int{"name": 1, "inner.path": 4, "inner.size": 4, "many[1].path": 7, "many[1].head.x": 7, "gone": 1} {
		err := d.Refuse(key, "makes no sense", "something else")
		require.EqualError(t, err, fmt.Sprintf("f.yaml:%d: %s: makes no sense; accepted: something else", line, key))
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.yaml")
	require.NoError(t, os.WriteFile(path, []byte("name: x\n"), 0o600))
	var v outer
	_, err := strictyaml.Read(path, &v)
	require.NoError(t, err)
	require.Equal(t, "x", v.Name)

	_, err = strictyaml.Read(filepath.Join(dir, "gone.yaml"), &v)
	require.EqualError(t, err, filepath.Join(dir, "gone.yaml")+": no such file or directory")
	require.ErrorIs(t, err, os.ErrNotExist)

	_, err = strictyaml.Read(dir, &v)
	require.EqualError(t, err, dir+": a folder, a pipe or a device; accepted: a file")

	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("#", strictyaml.MaxSize+1)), 0o600))
	_, err = strictyaml.Read(path, &v)
	require.ErrorContains(t, err, "too large")
}

func TestEncodeIsReadBack(t *testing.T) {
	want := outer{
		Name: "null", Count: -1, On: true, List: []string{"", " a", "1.5", "- x", "# y", "a: b", "\"", "'", "{", "é", "a\nb", "true", "*a", "&a", "!x", "%", "@", "`"},
		Inner: &inner{Path: "/a?b=c&d={key}", Head: map[string]string{"X-A": "1", "~": "y"}, Size: 7},
		Wrap:  &wrapped{inner{Path: "/b"}, 3},
		Named: map[string]inner{"free": {Path: "/"}, "null": {Path: "~"}},
	}
	data, err := strictyaml.Encode(want)
	require.NoError(t, err)
	var got outer
	_, err = strictyaml.Parse("f.yaml", data, &got)
	require.NoError(t, err, "%s", data)
	require.Equal(t, want, got)
}

func TestWrongGoTypesPanic(t *testing.T) {
	require.Panics(t, func() {
		_, _ = strictyaml.Parse("f", []byte("a: 1\n"), &struct {
			A float32 `yaml:"a"`
		}{})
	})
	require.Panics(t, func() { _, _ = strictyaml.Parse("f", []byte("a: 1\n"), map[string]string{}) })
}

// FuzzParse looks for inputs that crash, that take a long time, or whose error
// is not one line.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"name: x\ncount: 1\n", "{name: x, inner: {path: /}}", "name: |\n  a\n", "- a\n", "name: &a x", "a: [b, {c: d}]\n---\n", "\ufeffname: 'x'\r\n",
		"many:\n  - path: /a\n    head: {b: c}\nname: \"\\u00e9\"\n", "? a\n: b", "name: >-\n  a\n\n  b\n", "wait: 1h\nname: x\ncolour: red\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var v outer
		_, err := strictyaml.Parse("f.yaml", []byte(in), &v)
		if err == nil {
			data, err := strictyaml.Encode(v)
			require.NoError(t, err)
			var again outer
			_, err = strictyaml.Parse("f.yaml", data, &again)
			require.NoError(t, err, "%s", data)
			require.Equal(t, v, again, "%s", data)
			return
		}
		require.NotContains(t, err.Error(), "\n")
		require.True(t, strings.HasPrefix(err.Error(), "f.yaml"), err)
		require.True(t, errors.As(err, new(*strictyaml.Error)))
	})
}
