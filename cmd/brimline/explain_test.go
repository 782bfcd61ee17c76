package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/docs"
)

// Every key that is read is explained, and each need that a target file can meet
// is said to be bought by one.
func TestExplainTargetNamesEveryKey(t *testing.T) {
	code, out, errs := runCheck(t, "--explain-target")
	require.Equal(t, exitHolds, code, errs)
	for _, key := range keysOfType("", reflect.TypeFor[target.File]()) {
		require.Contains(t, "\n"+out, "\n"+key+"  (", key)
	}
	bought := strings.Join(regexp.MustCompile(`(?m)^    buys: .*$`).FindAllString(out, -1), "\n")
	for _, m := range contract.Needs() {
		if m.Need != contract.NeedHTTP && m.Need != contract.NeedReference {
			require.Regexp(t, `\b`+string(m.Need)+`\b`, bought)
		}
	}
	for _, line := range strings.Split(out, "\n") {
		require.NotContains(t, line, "map[", "values as they are written")
	}
}

// keysOfType lists the keys that a type is read from, as they are explained.
func keysOfType(key string, typ reflect.Type) (keys []string) {
	switch typ.Kind() {
	case reflect.Pointer:
		return keysOfType(key, typ.Elem())
	case reflect.Slice:
		return keysOfType(key+"[]", typ.Elem())
	case reflect.Map:
		return keysOfType(key+".NAME", typ.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	if typ == reflect.TypeFor[time.Duration]() {
		return nil
	}
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
		if name == "" {
			continue
		}
		path := strings.TrimPrefix(key+"."+name, ".")
		keys = append(append(keys, path), keysOfType(path, typ.Field(i).Type)...)
	}
	return keys
}

func TestTheExampleTargetMakesSense(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.yaml")
	require.NoError(t, os.WriteFile(path, docs.TargetExample, 0o600))
	_, err := target.ReadFile(path)
	require.NoError(t, err)
}
