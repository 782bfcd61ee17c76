// Package strictyaml reads one YAML document into a struct and takes nothing on
// faith: an unknown, doubled or missing key, a second document, null, 1.5 or a
// string where a whole number belongs, an anchor, alias, merge key or tag are
// all refused with one line that names file, line, key and what is accepted.
//
// Most callers want [Read]. A field's key comes from its `yaml` tag; a field
// without "omitempty" is required. Fields are structs, maps with string keys,
// slices, pointers (for optional parts), strings, bools, int64, time.Duration
// and types with UnmarshalText, which may also come as a mapping if they are
// structs with keys; anything else is a programmer's error and panics. The parser is goccy/go-yaml; no type of it leaves this package.
package strictyaml

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a document. The parser's time grows with the square of both.
const (
	MaxSize  = 64 << 10 // bytes
	maxDepth = 32
)

// Error is what is wrong with a document, in one line.
type Error struct {
	File     string
	Line     int    // 0: the file as a whole
	Key      string // such as operations.valid.path; empty: the document
	Problem  string
	Accepted string // may be empty
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Key != "" {
		b.WriteString(": " + e.Key)
	}
	b.WriteString(": " + e.Problem)
	if e.Accepted != "" {
		b.WriteString("; accepted: " + e.Accepted)
	}
	return b.String()
}

// Document remembers where its keys were, for checks that come after decoding.
type Document struct {
	file  string
	lines map[string]int
}

// Read reads the document in a file into the struct that v points to.
func Read(path string, v any) (*Document, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, &Error{File: path, Problem: "a folder, a pipe or a device", Accepted: "a file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fileError(path, err)
	}
	return Parse(path, data, v)
}

func fileError(path string, err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err // the path comes first anyway
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Parse is [Read] for a document in memory; file is what errors call it.
func Parse(file string, data []byte, v any) (*Document, error) {
	d := &Document{file: file, lines: map[string]int{}}
	root, err := d.parse(data)
	if err != nil {
		return nil, err
	}
	dec := decoder{doc: d}
	if err := dec.root(root, v); err != nil {
		return nil, err
	}
	return d, nil
}

// Has reports whether a key was given.
func (d *Document) Has(key string) bool {
	_, ok := d.lines[key]
	return ok
}

// Refuse is the error for a key whose value is well-formed but makes no sense.
func (d *Document) Refuse(key, problem, accepted string) error {
	return &Error{File: d.file, Line: d.line(key), Key: key, Problem: problem, Accepted: accepted}
}

// At is where a key is, as errors say it: file, line and key.
func (d *Document) At(key string) string {
	return strings.TrimSuffix((&Error{File: d.file, Line: d.line(key), Key: key}).Error(), ": ")
}

// line is where a key is, or else the nearest one above it.
func (d *Document) line(key string) int {
	for {
		if n, ok := d.lines[key]; ok {
			return n
		}
		i := strings.LastIndexAny(key, ".[")
		if i < 0 {
			return d.lines[""]
		}
		key = key[:i]
	}
}

func (d *Document) refuse(n ast.Node, key, problem, accepted string) error {
	return &Error{File: d.file, Line: lineOf(n), Key: key, Problem: problem, Accepted: accepted}
}

// parse returns the document's one value.
func (d *Document) parse(data []byte) (ast.Node, error) {
	switch {
	case len(data) > MaxSize:
		return nil, &Error{File: d.file, Problem: "too large", Accepted: fmt.Sprintf("at most %d bytes", MaxSize)}
	case !utf8.Valid(data):
		return nil, &Error{File: d.file, Problem: "not UTF-8 text"}
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(data), "\ufeff"))
	if err := d.checkTokens(tokens); err != nil {
		return nil, err
	}
	// Doubled keys are found while decoding: the parser mistakes a.b for b in a.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, d.syntaxError(err)
	}
	var root ast.Node
	for i, doc := range file.Docs {
		if i > 0 {
			line := 0
			if doc.Start != nil {
				line = doc.Start.Position.Line
			}
			return nil, &Error{File: d.file, Line: line, Problem: "a second document begins", Accepted: "one document"}
		}
		root = doc.Body
	}
	if root == nil {
		return nil, &Error{File: d.file, Problem: "the file is empty", Accepted: "a mapping"}
	}
	return root, nil
}

// checkTokens refuses what this package has no use for before the parser, which
// is slow on some of it, sees it.
func (d *Document) checkTokens(tokens token.Tokens) error {
	depth := 0
	for _, t := range tokens {
		problem, column := "", 0
		switch t.Type {
		case token.AnchorType:
			problem = "an anchor (&)"
		case token.AliasType:
			problem = "an alias (*)"
		case token.MergeKeyType:
			problem = "a merge key (<<)"
		case token.TagType:
			problem = "a tag (!)"
		case token.DirectiveType:
			problem = "a directive (%)"
		case token.MappingKeyType:
			problem = "an explicit key (?)"
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType:
			column = t.Position.Column
		}
		if depth > maxDepth || max(column, t.Position.IndentNum) > 8*maxDepth {
			problem = "nesting this deep"
		}
		if problem != "" {
			return &Error{File: d.file, Line: t.Position.Line, Problem: problem + " is not taken", Accepted: "plain mappings, lists and values"}
		}
	}
	return nil
}

func (d *Document) syntaxError(err error) error {
	e := &Error{File: d.file, Problem: "not well-formed YAML"}
	var se yaml.Error
	if errors.As(err, &se) {
		e.Problem, e.Accepted = plainly(se.GetMessage())
		if t := se.GetToken(); t != nil {
			e.Line = t.Position.Line
		}
	}
	return e
}

// plainly puts what the parser says into words for somebody who does not write
// parsers, where that is known.
func plainly(message string) (problem, accepted string) {
	switch {
	case strings.Contains(message, "\t"):
		return "a tab to indent with", "spaces"
	case strings.Contains(message, "value is not allowed in this context"), strings.Contains(message, "non-map value is specified"):
		return "a value, or an item of a list, where a key belongs", "key: value, indented like the keys around it"
	}
	return printable(message), ""
}

func lineOf(n ast.Node) int {
	// A mapping's own token is its first colon, whose line is right as well.
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// printable keeps an error on one line whatever the file holds.
func printable(s string) string { return shortened(s, 80) }

// shortened is printable for a text of ours, which may say more.
func shortened(s string, most int) string {
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	if q := strconv.Quote(s); q[1:len(q)-1] != s && strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return q
	}
	return s
}
