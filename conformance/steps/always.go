package steps

import (
	"net/http"
	"sync"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

// identities remembers every request id of a run (ERR-2).
type identities struct {
	mu   sync.Mutex
	seen map[string]bool
}

func newIdentities() *identities { return &identities{seen: map[string]bool{}} }

// first reports whether id was never seen before.
func (i *identities) first(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen[id] {
		return false
	}
	i.seen[id] = true
	return true
}

// always checks what holds for every answer in scope, whatever the scenario is
// about: ERR-1, ERR-2 and ERR-4.
func (s *Suite) always(e target.Exchange) []oracle.Finding {
	if !s.scope.Holds(e.Path) || e.Unread {
		return nil
	}
	out := s.identity(e)
	if e.Status >= http.StatusBadRequest && e.Method != http.MethodHead {
		out = append(out, shape(e.Answer)...)
	}
	if e.Status == http.StatusTooManyRequests && !e.Answer.NoStore {
		out = append(out, oracle.Finding{
			Clause: "ERR-4", Field: "Cache-Control", Expected: "no-store", Got: orAbsent(e.Header.Get("Cache-Control")),
			Consequence: "a cache may answer others with this rejection",
		})
	}
	return out
}

func (s *Suite) identity(e target.Exchange) []oracle.Finding {
	id := e.Answer.RequestID
	if id.State != contract.Good {
		return []oracle.Finding{{
			Clause: "ERR-2", Field: contract.HeaderRequestID, Expected: "one request id", Got: id.State.String(),
			Consequence: "support cannot find this request",
		}}
	}
	var out []oracle.Finding
	if !s.ids.first(id.Value) {
		out = append(out, oracle.Finding{
			Clause: "ERR-2", Field: contract.HeaderRequestID, Expected: "an id that no other request has", Got: id.Value,
		})
	}
	if body := e.Answer.Body.RequestID; body.State == contract.Good && body.Value != id.Value {
		out = append(out, oracle.Finding{
			Clause: "ERR-2", Field: contract.MemberRequestID, Expected: id.Value + ", as the header says", Got: body.Value,
		})
	}
	return out
}

// shape checks an error's body (ERR-1).
func shape(a contract.Answer) []oracle.Finding {
	wrong := func(field, expected, got string) oracle.Finding {
		return oracle.Finding{Clause: "ERR-1", Field: field, Expected: expected, Got: got}
	}
	if a.Body.Err != nil {
		return []oracle.Finding{wrong("body", "one JSON object", a.Body.Err.Error())}
	}
	var out []oracle.Finding
	if a.MediaType != "application/json" {
		out = append(out, wrong("Content-Type", "application/json", orAbsent(a.MediaType)))
	}
	for _, m := range []struct {
		name string
		text contract.Text
	}{
		{contract.MemberRequestID, a.Body.RequestID},
		{contract.MemberErrorCode, a.Body.ErrorCode},
		{contract.MemberMessage, a.Body.Message},
	} {
		if m.text.State != contract.Good {
			out = append(out, wrong(m.name, "one non-empty string", m.text.State.String()))
		}
	}
	return out
}

func orAbsent(s string) string {
	if s == "" {
		return "absent"
	}
	return s
}
