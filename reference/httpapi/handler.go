package httpapi

import (
	"net/http"
	"path"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
)

// InScope reports whether a request for the decoded path p has to pass the
// chain: anything at or below the contract's prefix, taken as it is or with
// dots and doubled slashes resolved (SCOPE-1, SCOPE-4). The prefix ends at a
// segment boundary.
func InScope(p string) bool { return under(p) || under(path.Clean("/"+p)) }

func under(p string) bool {
	rest, ok := strings.CutPrefix(p, contract.ScopePrefix)
	return ok && (rest == "" || rest[0] == '/')
}

// Handler sends a request that inScope accepts through chain, and any other to
// the handler of its exact path in outside, or to a 404. It looks at the
// decoded path before any router does, so that no router's redirect or
// not-found answer can go around the chain (SCOPE-2, SCOPE-4).
func Handler(inScope func(path string) bool, chain http.Handler, outside map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if inScope(r.URL.Path) {
			chain.ServeHTTP(w, r)
			return
		}
		if h, ok := outside[r.URL.Path]; ok {
			h.ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	})
}
