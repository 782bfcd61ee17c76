package strictyaml

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Encode renders the struct that v is or points to as a document that [Parse]
// reads back to the same value. Empty fields with "omitempty" are left out, and
// the names of a map are sorted.
func Encode(v any) ([]byte, error) {
	var e encoder
	if err := e.structure(reflect.Indirect(reflect.ValueOf(v)), ""); err != nil {
		return nil, err
	}
	return e.out.Bytes(), nil
}

type encoder struct{ out bytes.Buffer }

// value writes what follows "key:" or "-".
func (e *encoder) value(v reflect.Value, indent string) error {
	if v.Kind() == reflect.Pointer {
		return e.value(v.Elem(), indent)
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		e.scalar(quote(string(text)))
		return err
	}
	if d, ok := v.Interface().(time.Duration); ok {
		e.scalar(d.String())
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		e.out.WriteString("\n")
		return e.structure(v, indent)
	case reflect.Map:
		return e.mapping(v, indent)
	case reflect.Slice:
		return e.list(v, indent)
	case reflect.String:
		e.scalar(quote(v.String()))
	case reflect.Bool, reflect.Int64:
		e.scalar(fmt.Sprint(v.Interface()))
	default:
		return fmt.Errorf("no way to encode a %s", v.Type())
	}
	return nil
}

func (e *encoder) scalar(text string) { e.out.WriteString(" " + text + "\n") }

func (e *encoder) structure(v reflect.Value, indent string) error {
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		if !f.required && value.IsZero() {
			continue
		}
		if err := e.entry(f.name, value, indent); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) entry(name string, value reflect.Value, indent string) error {
	e.out.WriteString(indent + quote(name) + ":")
	return e.value(value, indent+"  ")
}

func (e *encoder) mapping(v reflect.Value, indent string) error {
	if v.Len() == 0 {
		e.scalar("{}")
		return nil
	}
	e.out.WriteString("\n")
	names := v.MapKeys()
	slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names {
		if err := e.entry(name.String(), v.MapIndex(name), indent); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) list(v reflect.Value, indent string) error {
	if v.Len() == 0 {
		e.scalar("[]")
		return nil
	}
	e.out.WriteString("\n")
	for i := range v.Len() {
		e.out.WriteString(indent + "-")
		if err := e.value(v.Index(i), indent+"  "); err != nil {
			return err
		}
	}
	return nil
}

// plain matches texts that need no quotes. It is narrower than YAML's own rule.
var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*(:[A-Za-z0-9_./-]+)*$`)

// quote renders a text as a scalar that is read back as that text.
func quote(s string) string {
	if plain.MatchString(s) && !reserved[strings.ToLower(s)] {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r < ' ' || r >= 0x7f && r <= 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

var reserved = map[string]bool{"null": true, "true": true, "false": true, "yes": true, "no": true, "on": true, "off": true, "y": true, "n": true}
