package target

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
)

// wording is how the deployment says what the contract says.
func (f File) wording() contract.Wording {
	w := contract.Wording{Names: map[string]string{}}
	maps.Copy(w.Names, f.Headers)
	maps.Copy(w.Names, f.ErrorBody)
	if f.ResetIs != resetSeconds {
		w.Reset = contract.ResetForm(f.ResetIs)
	}
	return w
}

// Wording is how the deployment says what the contract says.
func (t *Target) Wording() contract.Wording { return t.wording }

// resetSeconds is the contract's own form of RateLimit-Reset, as a file spells it.
const resetSeconds = "seconds"

func resetForms() []string {
	return []string{resetSeconds, string(contract.ResetUnixTime), string(contract.ResetDate)}
}

// checkWording finds what makes no sense in how a deployment is said to speak.
func (f File) checkWording() *problem {
	if p := checkNames("headers", f.Headers, isToken, "a header name such as X-RateLimit-Limit",
		contract.HeaderLimit, contract.HeaderRemaining, contract.HeaderReset, contract.HeaderRetryAfter, contract.HeaderRequestID); p != nil {
		return p
	}
	if p := checkNames("error-body", f.ErrorBody, isMemberPath, "a member such as code, or error.code for one of an inner object",
		contract.MemberRequestID, contract.MemberErrorCode, contract.MemberMessage); p != nil {
		return p
	}
	if f.ResetIs != "" && !slices.Contains(resetForms(), f.ResetIs) {
		return &problem{"reset-is", fmt.Sprintf("%q", f.ResetIs), strings.Join(resetForms(), ", ")}
	}
	return nil
}

// checkNames checks a map from the contract's names to the deployment's.
func checkNames(key string, names map[string]string, good func(string) bool, accepted string, contracts ...string) *problem {
	means := map[string]string{}
	for _, name := range contracts {
		own, given := names[name]
		if !given {
			own = name
		}
		at := key + "." + name
		switch other, taken := means[strings.ToLower(own)]; {
		case !good(own):
			return &problem{at, fmt.Sprintf("%q is no name", own), accepted}
		case taken && given:
			return &problem{at, fmt.Sprintf("%s is what %s is called", own, other), "a name of its own"}
		case taken:
			return &problem{key + "." + other, names[other] + " is what the contract calls another", "a name of its own"}
		}
		means[strings.ToLower(own)] = name
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !slices.Contains(contracts, name) {
			return &problem{key + "." + name, "none of the contract's", strings.Join(contracts, ", ")}
		}
	}
	return nil
}

// isMemberPath reports whether s can be the name of a member of a JSON object, or
// a path to one with dots between.
func isMemberPath(s string) bool {
	return !slices.Contains(strings.Split(s, "."), "") && isText(s)
}
