// Package strictjson reads JSON whose shape is known beforehand: an unknown, a
// doubled or a missing member, a value of another kind, a second value and text
// that is not UTF-8 are errors that name the place, as in "lines[2].quantity".
// Nothing nests deeper than the shape does.
//
// A shape is put together from [Object], [Array], [List], [Text], [Int], [Bool]
// and [Decimal];
// [Parse] reads a document by it. Bound the size of the document before.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Value reads one JSON value at a place and stores it.
type Value func(r *Reader, place string) error

// Reader is where a value is read from.
type Reader struct{ dec *json.Decoder }

// Error is a document that does not have the shape asked for.
type Error struct {
	Place  string // empty: the document as a whole
	Reason string
}

func (e *Error) Error() string {
	if e.Place == "" {
		return e.Reason
	}
	return e.Place + ": " + e.Reason
}

// Fail is an error at place, for shapes of the caller's own.
func Fail(place, format string, args ...any) error {
	return &Error{Place: place, Reason: fmt.Sprintf(format, args...)}
}

// Parse reads data, one JSON value, by shape v. Its errors are of type [*Error].
func Parse(data []byte, v Value) error {
	if !utf8.Valid(data) {
		return Fail("", "the text is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := v(&Reader{dec: dec}, ""); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Fail("", "something follows the JSON value")
	}
	return nil
}

// token is the next token, or an error at place.
func (r *Reader) token(place string) (json.Token, error) {
	t, err := r.dec.Token()
	switch {
	case errors.Is(err, io.EOF):
		return nil, Fail(place, "the JSON text ends too early")
	case err != nil:
		return nil, Fail(place, "not JSON near byte %d", r.dec.InputOffset())
	}
	return t, nil
}

// delim reads one bracket.
func (r *Reader) delim(place string, want json.Delim, kind string) error {
	t, err := r.token(place)
	if err != nil {
		return err
	}
	if t != want {
		return Fail(place, "want %s", kind)
	}
	return nil
}

// Object is an object with exactly these members; those named in optional may
// be left out.
func Object(members map[string]Value, optional ...string) Value {
	return func(r *Reader, place string) error {
		if err := r.delim(place, '{', "an object"); err != nil {
			return err
		}
		seen := map[string]bool{}
		for r.dec.More() {
			t, err := r.token(place)
			if err != nil {
				return err
			}
			name, ok := t.(string)
			member, known := members[name]
			switch {
			case !ok || !known:
				return Fail(place, "unknown member %q; known: %s", clip(name), names(members))
			case seen[name]:
				return Fail(join(place, name), "given twice")
			}
			seen[name] = true
			if err := member(r, join(place, name)); err != nil {
				return err
			}
		}
		if err := r.delim(place, '}', "the end of the object"); err != nil {
			return err
		}
		for _, name := range sorted(members) {
			if !seen[name] && !slices.Contains(optional, name) {
				return Fail(join(place, name), "missing")
			}
		}
		return nil
	}
}

// Array is an array of at least one and at most limit values, each read by what
// item returns for its index.
func Array(limit int, item func(i int) Value) Value { return array(1, limit, item) }

// List is an array that may be empty.
func List(limit int, item func(i int) Value) Value { return array(0, limit, item) }

func array(least, limit int, item func(i int) Value) Value {
	return func(r *Reader, place string) error {
		if err := r.delim(place, '[', "an array"); err != nil {
			return err
		}
		n := 0
		for ; r.dec.More(); n++ {
			if n == limit {
				return Fail(place, "more than %d", limit)
			}
			if err := item(n)(r, place+"["+strconv.Itoa(n)+"]"); err != nil {
				return err
			}
		}
		if err := r.delim(place, ']', "the end of the array"); err != nil {
			return err
		}
		if n < least {
			return Fail(place, "empty")
		}
		return nil
	}
}

// Text is a string of at most limit bytes.
func Text(dst *string, limit int) Value {
	return func(r *Reader, place string) error {
		t, err := r.token(place)
		if err != nil {
			return err
		}
		s, ok := t.(string)
		if !ok {
			return Fail(place, "want a string")
		}
		if len(s) > limit {
			return Fail(place, "longer than %d bytes", limit)
		}
		*dst = s
		return nil
	}
}

// Int is a whole number in [low, high], written in plain digits.
func Int(dst *int64, low, high int64) Value {
	return func(r *Reader, place string) error {
		t, err := r.token(place)
		if err != nil {
			return err
		}
		s, _ := t.(json.Number)
		n, err := strconv.ParseInt(string(s), 10, 64)
		if err != nil || n < low || n > high {
			return Fail(place, "want a whole number from %d to %d", low, high)
		}
		*dst = n
		return nil
	}
}

// Bool is true or false.
func Bool(dst *bool) Value {
	return func(r *Reader, place string) error {
		t, err := r.token(place)
		if err != nil {
			return err
		}
		b, ok := t.(bool)
		if !ok {
			return Fail(place, "want true or false")
		}
		*dst = b
		return nil
	}
}

// Scalar is any value but an object or an array as it is spelled, a string with
// its quotes, of at most limit bytes: for what somebody refuses later who can say
// better why.
func Scalar(dst *string, limit int) Value {
	return func(r *Reader, place string) error {
		t, err := r.token(place)
		if err != nil {
			return err
		}
		var text string
		switch v := t.(type) {
		case json.Number:
			text = string(v)
		case string:
			text = strconv.Quote(v)
		case bool:
			text = strconv.FormatBool(v)
		case nil:
			text = "null"
		default:
			return Fail(place, "want a single value")
		}
		if len(text) > limit {
			return Fail(place, "longer than %d bytes", limit)
		}
		*dst = text
		return nil
	}
}

// Decimal is the text of a number, given as a JSON number or as a string; what
// it must look like is for set to say, whose error is reported at the place.
func Decimal(set func(text string) error) Value {
	return func(r *Reader, place string) error {
		t, err := r.token(place)
		if err != nil {
			return err
		}
		var text string
		switch v := t.(type) {
		case json.Number:
			text = string(v)
		case string:
			text = v
		default:
			return Fail(place, "want a number")
		}
		if err := set(text); err != nil {
			return Fail(place, "%v", err)
		}
		return nil
	}
}

func join(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

// clip keeps a client's own text short in a message.
func clip(s string) string {
	const limit = 40
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}

func sorted(m map[string]Value) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func names(m map[string]Value) string {
	var b bytes.Buffer
	for i, name := range sorted(m) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name)
	}
	return b.String()
}
