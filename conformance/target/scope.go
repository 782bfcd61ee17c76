package target

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Scope is what of a deployment the contract limits (SCOPE-1).
type Scope struct {
	Prefix  string   // a path, limited with everything below it
	Outside []string // paths that no quota applies to, wherever they are
}

// Scope is what the file says, or what the valid operation's path suggests: the
// contract's own prefix, or the folder that the operation is in.
func (f File) Scope() Scope {
	s := Scope{Prefix: f.Limited, Outside: f.OutsideQuotas}
	if s.Prefix != "" {
		return s
	}
	s.Prefix = contract.ScopePrefix
	if valid, _, _ := strings.Cut(f.Operations.Valid.Path, "?"); !s.Holds(valid) {
		if s.Prefix = path.Dir(valid); s.Prefix == "/" {
			s.Prefix = valid // the whole host is more than one operation says
		}
	}
	return s
}

// Holds reports whether a path is limited.
func (s Scope) Holds(target string) bool {
	target, _, _ = strings.Cut(target, "?")
	if slices.Contains(s.Outside, target) {
		return false
	}
	return target == s.Prefix || strings.HasPrefix(target, s.Below(""))
}

// Below is a path below the prefix.
func (s Scope) Below(rest string) string { return strings.TrimSuffix(s.Prefix, "/") + "/" + rest }

// Scope is what of the target is limited.
func (t *Target) Scope() Scope { return t.file.Scope() }

func (f File) checkScope() *problem {
	const accepted = "a path such as /api, limited with everything below it"
	switch at := f.Limited; {
	case at == "":
		return nil
	case !isPath(at) || strings.ContainsAny(at, "?#") || path.Clean(at) != at:
		return &problem{"limited", fmt.Sprintf("%q is no such path", at), accepted}
	case !f.Scope().Holds(f.Operations.Valid.Path):
		return &problem{"limited", fmt.Sprintf("%q does not hold operations.valid.path", at), accepted + ", the valid operation too"}
	}
	return nil
}
