package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func names(c Links) []string {
	var out []string
	for _, l := range c {
		out = append(out, l.Name)
	}
	return out
}

// TestChainIsTheOrderOfTheContract is the enforcement order, written out.
func TestChainIsTheOrderOfTheContract(t *testing.T) {
	require.Equal(t, []string{
		"request-id", "api-log", "authenticate", "limit", "route", "validate", "capacity", "engine",
	}, names(Chain()))
}

func TestLinksByName(t *testing.T) {
	link := func(name string) Link { return Link{Name: name} }
	c := Links{link("a"), link("b"), link("c")}
	require.Equal(t, []string{"a", "x", "b", "c"}, names(c.Before("b", link("x"))))
	require.Equal(t, []string{"a", "b", "x", "c"}, names(c.After("b", link("x"))))
	require.Equal(t, []string{"a", "x", "c"}, names(c.Replace("b", link("x"))))
	require.Equal(t, []string{"a", "c"}, names(c.Without("b")))
	require.Equal(t, []string{"a", "b", "c"}, names(c), "the chain itself stays as it was")
	require.PanicsWithValue(t, "httpapi: no link called z", func() { c.Without("z") })
}

func TestBuildIsOutermostFirst(t *testing.T) {
	var passed []string
	link := func(name string) Link {
		return Link{name, func(_ *Ports, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				passed = append(passed, name)
				if name != "c" {
					next.ServeHTTP(w, r)
				}
			})
		}}
	}
	Links{link("a"), link("b"), link("c")}.Build(&Ports{}).ServeHTTP(nil, nil)
	require.Equal(t, []string{"a", "b", "c"}, passed)
}

func TestInScope(t *testing.T) {
	for path, want := range map[string]bool{
		"/v1/invoice":                  true,
		"/v1/invoice/":                 true,
		"/v1/invoice/calculate":        true,
		"/v1/invoice/a/b/c":            true,
		"/v1/invoice/health":           true,
		"//v1/invoice/x":               true,
		"/v1//invoice/x":               true,
		"/v1/./invoice/x":              true,
		"/x/../v1/invoice/x":           true,
		"/v1/invoice/../../health":     true, // written below the prefix, so never a way out of it
		"/v1/invoice/../invoicex":      true,
		"v1/invoice/x":                 true,
		"/../../v1/invoice":            true,
		"/v1/invoicex":                 false,
		"/v1/invoice;a=b/x":            false,
		"/V1/Invoice/x":                false,
		"/v1":                          false,
		"/":                            false,
		"":                             false,
		"*":                            false,
		"/health":                      false,
		`/v1\invoice\x`:                false,
		"/health/../v1/invoicex/../in": false,
	} {
		require.Equal(t, want, InScope(path), path)
	}
}

func TestOutsideByPathAndBelow(t *testing.T) {
	said := func(word string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(word)) })
	}
	h := Handler(InScope, said("chain"), map[string]http.Handler{"/health": said("health"), "/internal/": said("internal")})
	for target, want := range map[string]string{
		"/v1/invoice/x":             "chain",
		"/health":                   "health",
		"/internal/a/b":             "internal",
		"/internal/":                "internal",
		"/internal/../v1/invoice/x": "chain",
		"/internal":                 "404 page not found\n",
		"/internal/../health":       "404 page not found\n",
		"/internal//a":              "404 page not found\n",
		"//internal/a":              "404 page not found\n",
		"/internalx/a":              "404 page not found\n",
		"/health/":                  "404 page not found\n",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://x"+target, nil))
		require.Equal(t, want, w.Body.String(), target)
	}
}
