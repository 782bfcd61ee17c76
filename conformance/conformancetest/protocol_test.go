package conformancetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// everyHook sets each hook to a function that tells its name and does nothing.
func everyHook(told func(name string)) Hooks {
	h := Hooks{Gates: &Gates{}}
	v := reflect.ValueOf(&h).Elem()
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if f.Kind() != reflect.Func {
			continue
		}
		f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value {
			told(name)
			var out []reflect.Value
			for j := range f.Type().NumOut() {
				out = append(out, reflect.Zero(f.Type().Out(j)))
			}
			return out
		}))
	}
	return h
}

// What the protocol's document lists, hooks answer, and each hook is asked.
func TestHooksAreTheWholeProtocol(t *testing.T) {
	asked := map[string]bool{}
	h := everyHook(func(name string) { asked[name] = true })
	features, err := h.features()
	require.NoError(t, err)
	require.Len(t, features, 12)
	p := newProtocol(h, features)

	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(control.OpenAPI, &doc))
	require.NotEmpty(t, doc.Paths)
	const body = `{"plan":"pro","keys":1,"key":"k","value":5.0,"text":"5","remaining":1,"microseconds":-1,"behaviour":"ok"}`
	for path, methods := range doc.Paths {
		path = control.Prefix + strings.NewReplacer("{place}", "engine", "{", "", "}", "").Replace(strings.TrimPrefix(path, control.Prefix))
		for method := range methods {
			if method == "parameters" {
				continue
			}
			r := httptest.NewRequest(strings.ToUpper(method), path, strings.NewReader(body))
			w := httptest.NewRecorder()
			p.ServeHTTP(w, r)
			require.Equal(t, http.StatusUnauthorized, w.Code, "without the token")
			r.Header.Set("Authorization", "Bearer "+p.token)
			w = httptest.NewRecorder()
			p.ServeHTTP(w, r)
			require.Less(t, w.Code, 300, "%s %s: %s", method, path, w.Body)
		}
	}
	for _, part := range h.parts() {
		require.True(t, asked[part.name] || part.name == "Gates", "%s was not asked", part.name)
	}
	fields := reflect.TypeFor[Hooks]()
	require.Len(t, h.parts(), fields.NumField()-1, "each hook but Frozen belongs to a feature")
}

func TestWhatNoHookAnswersIsUnsupported(t *testing.T) {
	p := newProtocol(Hooks{}, nil)
	for _, path := range []string{"/users", "/time-travel/yesterday", "/users/x/gates/engine"} {
		r := httptest.NewRequest(http.MethodPost, control.Prefix+path, nil)
		r.Header.Set("Authorization", "Bearer "+p.token)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		require.Equal(t, http.StatusNotFound, w.Code)
		require.Contains(t, w.Body.String(), control.CodeUnsupported)
	}
}

// An override's value comes as it is spelled, and an error is a refusal.
func TestHooksMayRefuse(t *testing.T) {
	h := everyHook(func(string) {})
	h.SetOverride = func(_ context.Context, user, dimension string, o control.Override) error {
		return fmt.Errorf("%s %s %v", user, dimension, o.Value)
	}
	p := newProtocol(h, nil)
	for spelled, want := range map[string]string{`5.0`: "5.0", `1e99`: "1e99", `null`: "<nil>", `"5"`: "5", `[5]`: "[5]"} {
		r := httptest.NewRequest(http.MethodPut, control.Prefix+"/users/u%2F1/overrides/burst", strings.NewReader(`{"value":`+spelled+`}`))
		r.Header.Set("Authorization", "Bearer "+p.token)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code)
		var said control.Error
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &said))
		require.Equal(t, control.Error{Code: "refused", Message: "u/1 burst " + want}, said)
	}
}
