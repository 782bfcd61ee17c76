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
// its handler in outside, or to a 404. A path in outside stands for itself, or,
// if it ends in a slash, for all that is spelled plainly below it. Handler looks
// at the decoded path before any router does, so that no router's redirect or
// not-found answer can go around the chain (SCOPE-2, SCOPE-4).
func Handler(inScope func(path string) bool, chain http.Handler, outside map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if inScope(r.URL.Path) {
			chain.ServeHTTP(w, r)
			return
		}
		if h := find(outside, r.URL.Path); h != nil {
			h.ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	})
}

func find(outside map[string]http.Handler, p string) http.Handler {
	if h, ok := outside[p]; ok {
		return h
	}
	if path.Clean(p) != p {
		return nil
	}
	for above, h := range outside { // none of them lies below another
		if strings.HasSuffix(above, "/") && strings.HasPrefix(p, above) {
			return h
		}
	}
	return nil
}
