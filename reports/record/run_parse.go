package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// ParseRun reads the text of a run, and refuses it like [ReadRun].
func ParseRun(data []byte) (Run, error) {
	var r Run
	if err := json.Unmarshal(data, &r); err != nil {
		return Run{}, placed(data, err)
	}
	if r.Schema == RunSchema { // another may have other keys
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			return Run{}, err
		}
		if list := missing("", reflect.TypeFor[Run](), v); len(list) > 0 {
			return Run{}, fmt.Errorf("not a whole run: missing %s", strings.Join(list, ", "))
		}
	}
	return r, r.Check()
}

// placed says where in the text an error is.
func placed(data []byte, err error) error {
	syntax, kind := (*json.SyntaxError)(nil), (*json.UnmarshalTypeError)(nil)
	at := func(offset int64) string {
		before := data[:min(max(offset-1, 0), int64(len(data)))]
		return fmt.Sprintf("line %d, byte %d", 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n'))
	}
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: %w", at(syntax.Offset), err)
	case errors.As(err, &kind):
		words := map[reflect.Kind]string{
			reflect.Struct: "an object", reflect.Map: "an object", reflect.Slice: "a list", reflect.String: "a text",
			reflect.Bool: "true or false", reflect.Float64: "a number", reflect.Int64: "a whole number", reflect.Int: "a whole number",
		}
		where := at(kind.Offset)
		if kind.Field != "" {
			where += ": " + kind.Field
		}
		got := strings.Replace(kind.Value, "array", "list", 1)
		return fmt.Errorf("%s: got a %s; accepted: %s", where, got, words[kind.Type.Kind()])
	}
	return err
}

// missing lists the keys that a value of type t has to have and v has not: those
// of the outermost object that lacks any.
func missing(path string, t reflect.Type, v any) (list []string) {
	switch members, isObject := v.(map[string]any); {
	case t.Kind() == reflect.Slice:
		items, _ := v.([]any)
		for i, item := range items {
			if list := missing(fmt.Sprintf("%s[%d]", path, i), t.Elem(), item); len(list) > 0 {
				return list
			}
		}
	case t.Kind() == reflect.Map:
		for _, name := range slices.Sorted(maps.Keys(members)) {
			list = append(list, missing(path+"."+name, t.Elem(), members[name])...)
		}
	case t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]():
		if !isObject {
			return []string{path}
		}
		keys := reflect.VisibleFields(t)
		name := func(f reflect.StructField) (string, bool) {
			name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
			return name, name != "" && option != "omitempty" && option != "omitzero"
		}
		for _, f := range keys {
			if key, required := name(f); required && members[key] == nil {
				list = append(list, strings.TrimPrefix(path+"."+key, "."))
			}
		}
		for i := 0; i < len(keys) && len(list) == 0; i++ {
			if key, required := name(keys[i]); required {
				list = missing(strings.TrimPrefix(path+"."+key, "."), keys[i].Type, members[key])
			}
		}
	}
	return list
}
