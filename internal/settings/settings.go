// Package settings fills a struct from a file, the environment and flags, each
// under a name that follows from the field's place in the struct, and remembers
// where every value came from. Most callers want [Of], a flag for each of
// [Settings.All], [Settings.Load], and [Settings.Refuse] for checks of their own.
//
// A value that is given and empty is a value that was lost somewhere: it is
// refused, except for a string that is empty by default and for a list.
//
// A field's key is the `yaml` tags on the way to it, such as
// invoicespec.rate-limit.replicas. In the environment that is
// INVOICESPEC_RATE_LIMIT_REPLICAS. Fields are int64, time.Duration, string, bool
// and []string; these tags say more of one:
//
//	usage:"..."     what it is for, in a few words
//	range:"1 100"   the least and the largest int64 or time.Duration
//	one-of:"a b"    what a string may be
//	secret:"true"   never printed
package settings

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Origin is where a value came from, the later ones over the earlier.
type Origin string

// The origins.
const (
	Default     Origin = "default"
	File        Origin = "file"
	Environment Origin = "environment"
	Flag        Origin = "flag"
)

// Setting is one value by its names.
type Setting struct {
	Key    string // in a file
	Env    string // in the environment
	Usage  string
	Origin Origin

	value  reflect.Value
	tag    reflect.StructTag
	needed bool // a string that is not empty by default
}

// Settings are all values of a struct.
type Settings struct {
	target any
	list   []*Setting
	doc    Document // nil: no file was read
}

// Document is a file that was read: which keys it has, and the error for one
// whose value makes no sense.
type Document interface {
	Has(key string) bool
	Refuse(key, problem, accepted string) error
}

// Of lists the settings of the struct that v points to. What is in it now are
// the defaults. A field of another kind is a programmer's error and panics.
func Of(v any) *Settings {
	s := &Settings{target: v}
	s.add(reflect.ValueOf(v).Elem(), "")
	return s
}

func (s *Settings) add(v reflect.Value, above string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		key := strings.TrimPrefix(above+"."+name, ".")
		if f.Type.Kind() == reflect.Struct {
			s.add(v.Field(i), key)
			continue
		}
		if !slices.Contains([]string{"int64", "time.Duration", "string", "bool", "[]string"}, f.Type.String()) {
			panic(fmt.Sprintf("settings: %s: no way to read a %s", key, f.Type))
		}
		env := strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
		s.list = append(s.list, &Setting{Key: key, Env: env, Usage: f.Tag.Get("usage"), Origin: Default, value: v.Field(i), tag: f.Tag, needed: !v.Field(i).IsZero()})
	}
}

// All is every setting, in the order of the struct.
func (s *Settings) All() []*Setting { return s.list }

// Load takes the values of a file, which read (nil: there is none) reads into the
// struct, then those of the environment, then those that flags gave, by key, and
// checks each.
func (s *Settings) Load(read func(v any) (Document, error), lookup func(string) (string, bool), flags map[string]string) error {
	if read != nil {
		var err error
		if s.doc, err = read(s.target); err != nil {
			return err
		}
	}
	for _, x := range s.list {
		if s.doc != nil && s.doc.Has(x.Key) {
			x.Origin = File
		}
		if text, ok := lookup(x.Env); ok {
			if err := s.set(x, text, Environment); err != nil {
				return err
			}
		}
		if text, ok := flags[x.Key]; ok {
			if err := s.set(x, text, Flag); err != nil {
				return err
			}
		}
		if problem := x.check(); problem != "" {
			return s.Refuse(x.Key, problem, x.accepted())
		}
	}
	return nil
}

// set reads text as the setting's kind.
func (s *Settings) set(x *Setting, text string, from Origin) error {
	x.Origin = from
	switch p := x.value.Addr().Interface().(type) {
	case *int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != text {
			return s.Refuse(x.Key, fmt.Sprintf("got %q", text), x.accepted())
		}
		*p = n
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return s.Refuse(x.Key, fmt.Sprintf("got %q", text), x.accepted())
		}
		*p = d
	case *bool:
		if text != "true" && text != "false" {
			return s.Refuse(x.Key, fmt.Sprintf("got %q", text), x.accepted())
		}
		*p = text == "true"
	case *string:
		*p = text
	case *[]string:
		*p = nil
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word != "" {
				*p = append(*p, word)
			}
		}
	}
	return nil
}

// check says what is wrong with a value, if anything is.
func (x *Setting) check() string {
	switch v := x.value.Interface().(type) {
	case int64:
		if least, most, ok := x.bounds(); ok && (v < parseInt(least) || v > parseInt(most)) {
			return fmt.Sprintf("%d is out of range", v)
		}
	case time.Duration:
		if least, most, ok := x.bounds(); ok && (v < parseDuration(least) || v > parseDuration(most)) {
			return fmt.Sprintf("%v is out of range", v)
		}
	case string:
		if words := strings.Fields(x.tag.Get("one-of")); len(words) > 0 && !slices.Contains(words, v) {
			return fmt.Sprintf("got %q", v)
		}
		if x.needed && strings.TrimSpace(v) == "" {
			return "empty"
		}
	}
	return ""
}

func (x *Setting) bounds() (least, most string, ok bool) {
	return strings.Cut(x.tag.Get("range"), " ")
}

// The tags are part of the program.
func parseInt(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func parseDuration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// accepted says what a setting takes.
func (x *Setting) accepted() string {
	least, most, ranged := x.bounds()
	switch x.value.Interface().(type) {
	case int64:
		if ranged {
			return "a whole number from " + least + " to " + most
		}
		return "a whole number"
	case time.Duration:
		if ranged {
			return "a duration from " + least + " to " + most
		}
		return "a duration such as 90s or 1m30s"
	case bool:
		return "true or false"
	case string:
		return strings.Join(strings.Fields(x.tag.Get("one-of")), " or ")
	}
	return ""
}

// Refuse is the error for a value that makes no sense: it names the flag, the
// variable, or the file, line and key that the value came from.
func (s *Settings) Refuse(key, problem, accepted string) error {
	i := slices.IndexFunc(s.list, func(x *Setting) bool { return x.Key == key })
	if i < 0 {
		panic("settings: no setting " + key)
	}
	where := key
	switch x := s.list[i]; x.Origin {
	case File:
		return s.doc.Refuse(key, problem, accepted)
	case Environment:
		where = x.Env + " (" + key + ")"
	}
	if accepted != "" {
		accepted = "; accepted: " + accepted
	}
	return fmt.Errorf("%s: %s%s", where, problem, accepted)
}

// Text is a value as text; that of a secret is not shown.
func (x *Setting) Text() string {
	if x.tag.Get("secret") == "true" && !x.value.IsZero() {
		return "(not shown)"
	}
	if list, ok := x.value.Interface().([]string); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(x.value.Interface())
}

// Print lists every setting, its value and where that came from.
func (s *Settings) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, x := range s.list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", x.Key, x.Text(), x.Origin)
	}
	return t.Flush()
}
