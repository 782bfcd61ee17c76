package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"github.com/invoicespec/brimline/conformance/contract"
)

// route carries out SCOPE-3: what is no operation gets 404 or 405, after its
// token and under a permit like any other request. Paths are matched as decoded
// and never cleaned, so the router has no reason to redirect.
func route(p *Ports, next http.Handler) http.Handler {
	router := mux.NewRouter().SkipClean(true)
	methods := map[string][]string{}
	for _, route := range p.Routes {
		methods[route.Path] = append(methods[route.Path], route.Method)
		router.Path(route.Path).Methods(route.Method).Handler(next)
	}
	for _, m := range methods {
		slices.Sort(m)
	}
	router.NotFoundHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.respond(w, From(r.Context()), Reply{
			Status:  http.StatusNotFound,
			Code:    contract.CodeNotFound,
			Message: "there is no such resource",
		})
	})
	router.MethodNotAllowedHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.respond(w, From(r.Context()), Reply{
			Status:  http.StatusMethodNotAllowed,
			Code:    contract.CodeMethodNotAllowed,
			Message: "this resource does not know the method",
			Header:  http.Header{"Allow": {strings.Join(methods[r.URL.Path], ", ")}},
		})
	})
	return router
}
