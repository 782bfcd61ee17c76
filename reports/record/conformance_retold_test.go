package record_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

// TestEveryTextOfOthersIsRetold fills every plain text of a result and looks which
// are left: a new one has to be retold, or be named here as our own.
func TestEveryTextOfOthersIsRetold(t *testing.T) {
	const secret = "isk_free_THEKEY"
	var c record.Conformance
	fillTexts(reflect.ValueOf(&c).Elem(), secret)
	before, err := json.Marshal(c)
	require.NoError(t, err)
	got := c.Retold(func(s string) string { return strings.ReplaceAll(s, secret, "…") })
	after, err := json.Marshal(c)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "the result itself stays as it was")

	var left []string
	texts("", reflect.ValueOf(got), func(path, text string) {
		if strings.Contains(text, secret) {
			left = append(left, path)
		}
	})
	slices.Sort(left)
	require.Equal(t, []string{
		".Brimline", ".Changes.", ".Clauses.Findings.Clause", ".Clauses.ID", ".Clauses.Level",
		".KnownFailing.Clause", ".KnownFailing.Reason", // the list of whoever runs it
		".Power.", ".Reproduce.Command", ".Run", ".Schema", ".Selected", ".Target.Clock", ".Target.Offers",
	}, slices.Compact(left))
}

// fillTexts gives every plain text below v a value, one element a list.
func fillTexts(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillTexts(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillTexts(v.Index(0), text)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillTexts(v.Field(i), text)
			}
		}
	}
}

// texts visits every plain text below v; those of power and changes, which hold
// ids and verdicts alone, go by one name.
func texts(path string, v reflect.Value, visit func(path, text string)) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			visit(path, v.String())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			texts(path, v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			texts(path, v.Index(i), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			below := path + "." + name
			switch {
			case !v.Type().Field(i).IsExported():
				continue
			case path == ".Power." || path == ".Changes.":
				below = path
			case below == ".Power" || below == ".Changes":
				below += "."
			case path == ".Clauses" && name == "Scenarios", path == ".Clauses" && name == "Findings":
				below = path
			case path == ".Clauses.Scenarios" && name == "Findings":
				below = ".Clauses.Findings"
			}
			if below == ".Clauses" && name == "Findings" {
				below = ".Clauses.Findings"
			}
			texts(below, v.Field(i), visit)
		}
	}
}
