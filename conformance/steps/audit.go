package steps

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cucumber/godog"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
)

// audits are the sentences about what a request leaves behind.
func (s *Scenario) audits() []sentence {
	return []sentence{
		{then, `^it had these effects:$`, "a table of log entries, engine calls and charges of the latest request; what is not named is 0", needs{contract.NeedAudit}, s.hadEffects},
		{then, `^its entry is marked rejected, with its error code$`, "the one log entry of the latest request", needs{contract.NeedAudit}, s.markedRejected},
		{then, `^it left one log entry, not marked rejected$`, "the one log entry of the latest request", needs{contract.NeedAudit}, s.leftOneEntry},
		{then, `^it charged (\d+) operations?$`, "what the latest request was charged", needs{contract.NeedAudit}, s.charged},
		{then, `^no log entry holds their key or a body$`, "whatever was logged of the user", needs{contract.NeedAudit}, s.entriesAreClean},
	}
}

// effect is something that a request can leave behind, and whose business it is
// when there is too much or too little of it.
type effect struct {
	name   string
	count  func(control.Audit) int64
	clause func(e exchange) string
}

func effects() []effect {
	work := func(e exchange) string {
		switch {
		case unresolved(e):
			return "CFG-3"
		case capRejected(e):
			return "CONC-5"
		}
		return "RATE-7"
	}
	logged := func(e exchange) string {
		if unresolved(e) {
			return "CFG-3"
		}
		return "LOG-1"
	}
	return []effect{
		{"log entries", func(a control.Audit) int64 { return int64(len(a.Entries)) }, logged},
		{"engine calls", func(a control.Audit) int64 { return a.EngineCalls }, work},
		{"charges", func(a control.Audit) int64 { return a.Charges }, work},
	}
}

// hadEffects compares an answer's effects with the table; an effect that is
// not in it must not have happened.
func (s *Scenario) hadEffects(ctx context.Context, table *godog.Table) error {
	want := map[string]int64{}
	for _, row := range table.Rows {
		if len(row.Cells) != 2 {
			return fmt.Errorf("a row of effects has a name and a number")
		}
		n, err := strconv.ParseInt(row.Cells[1].Value, 10, 64)
		if err != nil || !slices.ContainsFunc(effects(), func(e effect) bool { return e.name == row.Cells[0].Value }) {
			return fmt.Errorf("no such effect: %q %q", row.Cells[0].Value, row.Cells[1].Value)
		}
		want[row.Cells[0].Value] = n
	}
	e := s.answer()
	got, err := s.audit(ctx, e, func(a control.Audit) bool {
		return !slices.ContainsFunc(effects(), func(x effect) bool { return x.count(a) != want[x.name] })
	})
	if err != nil {
		return err
	}
	for _, x := range effects() {
		if n := x.count(got); n != want[x.name] {
			err = s.brokenFor(x.clause(e), e, x.name, fmt.Sprint(want[x.name]), fmt.Sprint(n))
		}
	}
	if err != nil {
		return err
	}
	return s.verdict()
}

// audit reads what is known of a request. What shows only a moment later counts
// as well, so an audit that looks right is read a second time.
func (s *Scenario) audit(ctx context.Context, e exchange, expected func(control.Audit) bool) (control.Audit, error) {
	id := e.Answer.RequestID.Value
	if id == "" {
		return control.Audit{}, fmt.Errorf("%w: the answer has no request id to look for", ErrBroken)
	}
	a, err := s.Audit(ctx, id, expected)
	if err == nil && expected(a) {
		a, err = s.Audit(ctx, id, func(control.Audit) bool { return true })
	}
	return a, asSetup(err)
}

// entry is the one log entry of the latest answer.
func (s *Scenario) entry(ctx context.Context) (control.Entry, error) {
	e := s.answer()
	a, err := s.audit(ctx, e, func(a control.Audit) bool { return len(a.Entries) == 1 })
	if err != nil {
		return control.Entry{}, err
	}
	if len(a.Entries) != 1 {
		return control.Entry{}, s.broken(e, "log entries", "1", fmt.Sprint(len(a.Entries)))
	}
	return a.Entries[0], nil
}

func (s *Scenario) markedRejected(ctx context.Context) error {
	x, err := s.entry(ctx)
	if err != nil {
		return err
	}
	e := s.answer()
	code := contract.CodeRateLimited
	if capRejected(e) {
		code = contract.CodeConcurrencyLimited
	}
	switch {
	case !x.Rejected:
		return s.broken(e, "log entry", "marked rejected", "not marked")
	case x.ErrorCode != code:
		return s.broken(e, "log entry's error code", code, orAbsent(x.ErrorCode))
	}
	return s.verdict()
}

func (s *Scenario) leftOneEntry(ctx context.Context) error {
	x, err := s.entry(ctx)
	if err != nil {
		return err
	}
	if x.Rejected {
		return s.broken(s.answer(), "log entry", "not marked rejected", "marked rejected")
	}
	return s.verdict()
}

func (s *Scenario) charged(ctx context.Context, n int64) error {
	e := s.answer()
	a, err := s.audit(ctx, e, func(a control.Audit) bool { return a.Charges == n && len(a.Entries) > 0 })
	if err != nil {
		return err
	}
	switch {
	case a.Charges != n:
		return s.broken(e, "charges", fmt.Sprint(n), fmt.Sprint(a.Charges))
	case n == 0 && len(a.Entries) == 0 && a.EngineCalls == 0:
		return fmt.Errorf("%w: nothing is known of the request that was to charge nothing", ErrInconclusive)
	}
	return s.verdict()
}

// entriesAreClean looks into everything that was logged of the user.
func (s *Scenario) entriesAreClean(ctx context.Context) error {
	u := s.user()
	a, err := s.UserAudit(ctx, u.User, func(a control.Audit) bool { return len(a.Entries) >= len(s.got) })
	if err != nil {
		return setup(err)
	}
	if len(a.Entries) < len(s.got) {
		return s.broken(s.answer(), "log entries", fmt.Sprintf("at least %d", len(s.got)), fmt.Sprint(len(a.Entries)))
	}
	for _, x := range a.Entries {
		for k := range u.Keys() {
			if u.Secret(k).In(x.Raw) {
				return s.broken(s.answer(), "log entry", "no key", "the user's key is in the entry of "+x.RequestID)
			}
		}
		if s.showsBody(x.Raw) {
			return s.broken(s.answer(), "log entry", "no request content", "the body is in the entry of "+x.RequestID)
		}
	}
	return s.verdict()
}

// showsBody reports whether a log entry holds a body that this suite sends, as
// it is or as a JSON string.
func (s *Scenario) showsBody(raw string) bool {
	if strings.Contains(raw, bodyMark) {
		return true
	}
	body := bytes.TrimSpace(s.Valid().Body)
	if len(body) < 8 { // too little to be told from anything else
		return false
	}
	quoted, err := json.Marshal(string(body))
	return strings.Contains(raw, string(body)) || err == nil && strings.Contains(raw, strings.Trim(string(quoted), `"`))
}
