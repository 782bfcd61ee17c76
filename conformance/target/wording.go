package target

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
)

// wording is how the deployment says what the contract says.
func (f File) wording() contract.Wording {
	w := contract.Wording{Names: map[string]string{}, Replies: map[string]contract.Reply{}}
	maps.Copy(w.Names, f.Headers)
	maps.Copy(w.Names, f.ErrorBody)
	if f.ResetIs != resetSeconds {
		w.Reset = contract.ResetForm(f.ResetIs)
	}
	for _, r := range contract.OpenReplies() {
		if own, given := f.Answers[r.Code]; given {
			w.Replies[r.Code] = contract.Reply{Status: int(cmp.Or(own.Status, int64(r.Status))), Code: cmp.Or(own.Code, r.Code)}
		}
	}
	return w
}

// Reply is an answer where the contract leaves it open. What is left out is as
// the reference has it.
type Reply struct {
	Status int64  `yaml:"status,omitempty"`
	Code   string `yaml:"code,omitempty"` // in the error body
}

// Declared is what the target file says that the deployment answers where the
// contract has an error code; false: it says nothing of that.
func (t *Target) Declared(code string) (contract.Reply, bool) {
	r, said := t.wording.Replies[code]
	return r, said
}

// checkAnswers checks what is answered where the contract leaves it open.
func (f File) checkAnswers() *problem {
	var codes []string
	said := map[contract.Reply]string{}
	for _, r := range contract.OpenReplies() {
		codes = append(codes, r.Code)
		own := f.wording().Reply(r.Status)
		if other, again := said[own]; again {
			return &problem{"answers", fmt.Sprintf("%s for %s and for %s", own, other, r.Code), "an answer of its own for each"}
		}
		said[own] = r.Code
	}
	for _, code := range slices.Sorted(maps.Keys(f.Answers)) {
		key, r := "answers."+code, f.Answers[code]
		switch {
		case code == contract.CodeRateLimited:
			return &problem{key, "fixed by the contract (ERR-3)", "no other code for a request without a token"}
		case code == contract.CodeConcurrencyLimited:
			return &problem{key, "fixed by the contract (CONC-2)", "no other code for a request without a place"}
		case !slices.Contains(codes, code):
			return &problem{key, "nothing that the contract leaves open", strings.Join(codes, ", ")}
		case r == Reply{}:
			return &problem{key, "empty", "status, code or both"}
		case r.Status != 0 && (r.Status < 400 || r.Status > 599 || r.Status == http.StatusTooManyRequests):
			return &problem{key + ".status", fmt.Sprint(r.Status), "a status from 400 to 599 but 429"}
		case r.Code == contract.CodeRateLimited, r.Code == contract.CodeConcurrencyLimited, r.Code == contract.CodeConfigUnavailable, !isText(r.Code):
			return &problem{key + ".code", fmt.Sprintf("%q", r.Code), "an error code that is none of the contract's own three"}
		}
	}
	if o := f.Operations.Invalid; o != nil && o.Expect != 0 {
		if status := f.Answers[contract.CodeValidationFailed].Status; status != 0 && status != o.Expect {
			return &problem{"operations.invalid.expect", fmt.Sprintf("%d, and answers.%s says %d", o.Expect, contract.CodeValidationFailed, status), "the same, or one of the two"}
		}
	}
	return nil
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
	return f.checkAnswers()
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
