package strictyaml

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

type decoder struct{ doc *Document }

func (d decoder) root(n ast.Node, v any) error {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("strictyaml: want a pointer to a struct, got %T", v))
	}
	return d.value(n, "", p.Elem())
}

// value decodes n, which stands at key, into v.
func (d decoder) value(n ast.Node, key string, v reflect.Value) error {
	d.doc.lines[key] = lineOf(n)
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		if err := d.value(n, key, p.Elem()); err != nil {
			return err
		}
		v.Set(p)
		return nil
	}
	if _, ok := n.(*ast.NullNode); ok {
		return d.doc.refuse(n, key, "null is no value", kindName(v.Type()))
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok && !spelledOut(n, v) {
		return d.text(n, key, u)
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return d.duration(n, key, v)
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.structure(n, key, v)
	case reflect.Map:
		return d.mapping(n, key, v)
	case reflect.Slice:
		return d.list(n, key, v)
	case reflect.String:
		s, ok := stringOf(n)
		if !ok {
			return d.mismatch(n, key, v.Type())
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return d.mismatch(n, key, v.Type())
		}
		v.SetBool(b.Value)
	case reflect.Int64:
		i, ok := intOf(n)
		if !ok {
			return d.mismatch(n, key, v.Type())
		}
		v.SetInt(i)
	default:
		panic(fmt.Sprintf("strictyaml: %s: no way to decode a %s", key, v.Type()))
	}
	return nil
}

func (d decoder) mismatch(n ast.Node, key string, t reflect.Type) error {
	got := describe(n)
	if t.Kind() == reflect.Int64 && t != reflect.TypeFor[time.Duration]() {
		bare := n.GetToken().Value
		if s, ok := n.(*ast.StringNode); ok && s.Token.Type == token.StringType && numeric.MatchString(bare) {
			got = printable(bare) // people mean a number, whatever YAML takes it for
		}
		if decimal.MatchString(got) {
			got += ", which is out of range"
		}
	}
	return d.doc.refuse(n, key, "got "+got, kindName(t))
}

var numeric = regexp.MustCompile(`^[-+]?[0-9][0-9_.,]*([eE][-+]?[0-9]+)?$`)

// spelledOut reports whether a value that is also read from text came as a
// mapping of its fields.
func spelledOut(n ast.Node, v reflect.Value) bool {
	_, ok := n.(*ast.MappingNode)
	return ok && v.Kind() == reflect.Struct && len(fieldsOf(v.Type())) > 0
}

func (d decoder) text(n ast.Node, key string, u encoding.TextUnmarshaler) error {
	s, ok := stringOf(n)
	if !ok {
		switch n.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			s = n.GetToken().Value
		default:
			return d.doc.refuse(n, key, "got "+describe(n), "a word or number")
		}
	}
	if err := u.UnmarshalText([]byte(s)); err != nil {
		return d.doc.refuse(n, key, shortened(err.Error(), 240), "")
	}
	return nil
}

func (d decoder) duration(n ast.Node, key string, v reflect.Value) error {
	s, _ := stringOf(n)
	dur, err := time.ParseDuration(s)
	if err != nil {
		return d.mismatch(n, key, v.Type())
	}
	v.SetInt(int64(dur))
	return nil
}

type field struct {
	name     string
	index    []int
	required bool
}

func fieldsOf(t reflect.Type) []field {
	var fields []field
	for _, f := range reflect.VisibleFields(t) { // those of embedded structs too
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields = append(fields, field{name: name, index: f.Index, required: options != "omitempty"})
	}
	return fields
}

func (d decoder) structure(n ast.Node, key string, v reflect.Value) error {
	fields := fieldsOf(v.Type())
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	entries, err := d.entries(n, key, "a mapping of "+strings.Join(names, ", "))
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, e := range entries {
		i := slices.Index(names, e.name)
		if i < 0 {
			return d.doc.refuse(e.at, e.key, "unknown key", strings.Join(names, ", "))
		}
		seen[e.name] = true
		if err := d.value(e.value, e.key, v.FieldByIndex(fields[i].index)); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if f.required && !seen[f.name] {
			return d.doc.refuse(n, join(key, f.name), "missing", kindName(v.Type().FieldByIndex(f.index).Type))
		}
	}
	return nil
}

func (d decoder) mapping(n ast.Node, key string, v reflect.Value) error {
	entries, err := d.entries(n, key, kindName(v.Type()))
	if err != nil {
		return err
	}
	m := reflect.MakeMapWithSize(v.Type(), len(entries))
	for _, e := range entries {
		value := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(e.value, e.key, value); err != nil {
			return err
		}
		m.SetMapIndex(reflect.ValueOf(e.name).Convert(v.Type().Key()), value)
	}
	v.Set(m)
	return nil
}

func (d decoder) list(n ast.Node, key string, v reflect.Value) error {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return d.mismatch(n, key, v.Type())
	}
	list := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, item := range seq.Values {
		if err := d.value(item, fmt.Sprintf("%s[%d]", key, i), list.Index(i)); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

type entry struct {
	name  string
	key   string // the whole path
	at    ast.Node
	value ast.Node
}

// entries lists a mapping's keys, each at most once.
func (d decoder) entries(n ast.Node, key, accepted string) ([]entry, error) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return nil, d.doc.refuse(n, key, "got "+describe(n), accepted)
	}
	first := map[string]int{}
	entries := make([]entry, len(m.Values))
	for i, kv := range m.Values {
		name, ok := stringOf(kv.Key)
		if !ok {
			return nil, d.doc.refuse(kv.Key, key, describe(kv.Key)+" as a key", "a word")
		}
		e := entry{name: name, key: join(key, printable(name)), at: kv.Key, value: kv.Value}
		if line, doubled := first[name]; doubled {
			return nil, d.doc.refuse(kv.Key, e.key, fmt.Sprintf("given twice, first in line %d", line), "each key once")
		}
		first[name] = lineOf(kv.Key)
		entries[i] = e
	}
	return entries, nil
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func stringOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// intOf takes plain decimal digits alone: not 0x10, 1_000, 010 or "10".
func intOf(n ast.Node) (int64, bool) {
	in, ok := n.(*ast.IntegerNode)
	if !ok || !decimal.MatchString(in.Token.Value) {
		return 0, false
	}
	i, err := strconv.ParseInt(in.Token.Value, 10, 64)
	return i, err == nil
}

func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "null"
	case *ast.LiteralNode:
		return "a block of text"
	case *ast.StringNode:
		return "the text " + strconv.Quote(printable(n.Value))
	}
	return printable(n.GetToken().Value)
}

func kindName(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return kindName(t.Elem())
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "a word or number"
	case t == reflect.TypeFor[time.Duration]():
		return "a duration such as 90s or 1m30s"
	}
	switch t.Kind() {
	case reflect.Struct:
		return "a mapping"
	case reflect.Map:
		return "a mapping of names to " + plural(t.Elem())
	case reflect.Slice:
		return "a list of " + plural(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "a whole number"
	}
	return "text"
}

func plural(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "mappings"
	case reflect.Int64:
		return "whole numbers"
	case reflect.Slice:
		return "lists"
	}
	return "texts"
}
