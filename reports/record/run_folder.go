package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/invoicespec/brimline/internal/files"
)

// RunFile is the name of a run's file in its folder.
const RunFile = "run.json"

// MaxRunSize bounds the text of a run: a hundred thousand users with room.
const MaxRunSize = 256 << 20

// ErrRunThere says that a folder holds a run already.
var ErrRunThere = errors.New("holds a run already")

// ClaimRunFolder makes the folder if it is not there and refuses one that holds
// a run.
func ClaimRunFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{RunFile, CapacityFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", dir, errors.Join(ErrRunThere, err))
		}
	}
	return nil
}

// WriteRun writes a run into its folder, whole or not at all, and never over
// another run.
func WriteRun(dir string, r Run) error {
	if err := r.Check(); err != nil {
		return err
	}
	if err := ClaimRunFolder(dir); err != nil {
		return err
	}
	return writeWhole(dir, RunFile, r)
}

// writeWhole writes a file as JSON, whole or not at all.
func writeWhole(dir, name string, v any) error {
	f, err := os.CreateTemp(dir, name+".*")
	if err != nil {
		return err
	}
	err = errors.Join(json.NewEncoder(f).Encode(v), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// ReadRun reads the run in a folder. One whose figures do not add up is refused,
// never read in part.
func ReadRun(dir string) (Run, error) {
	path := filepath.Join(dir, RunFile)
	f, err := files.Open(path)
	if err != nil {
		return Run{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxRunSize+1))
	if err != nil {
		return Run{}, err
	}
	if len(data) > MaxRunSize {
		return Run{}, fmt.Errorf("%s: more than %d bytes", path, MaxRunSize)
	}
	r, err := ParseRun(data)
	if err != nil {
		return Run{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Check says which figures do not add up.
func (r Run) Check() error {
	if r.Schema != RunSchema {
		return fmt.Errorf("schema is %q, want %q", r.Schema, RunSchema)
	}
	if len(r.Plans) == 0 {
		return errors.New("no plan is in it")
	}
	users := map[string]*RunPlan{} // by plan: what the users have in sum
	for _, u := range r.Users {
		p := users[u.Plan]
		if p == nil {
			p = &RunPlan{}
			users[u.Plan] = p
		}
		p.Users++
		p.Sent += u.Sent
		p.Admitted += u.Admitted
		p.RejectedRate += u.RejectedRate
		p.RejectedConcurrency += u.RejectedConcurrency
		p.RejectedAnonymous += u.RejectedOtherwise
		p.Missing += u.Missing
		p.RateJudged.Undue += u.Undue
	}
	for _, p := range r.Plans {
		of := users[p.Plan]
		if of == nil {
			of = &RunPlan{}
		}
		delete(users, p.Plan)
		if err := p.check(*of); err != nil {
			return fmt.Errorf("plan %s: %w", p.Plan, err)
		}
	}
	if len(users) > 0 {
		return errors.New("users are on plans that are not listed")
	}
	for _, e := range r.Exports {
		if e.Rows+e.Lost != r.Generator.Results {
			return fmt.Errorf("rows of %s do not add up: %d and %d of %d", e.File, e.Rows, e.Lost, r.Generator.Results)
		}
	}
	for _, t := range r.Thresholds {
		if t.Verdict != ThresholdHolds && t.Verdict != ThresholdBroken && t.Verdict != ThresholdNoData {
			return fmt.Errorf("threshold %s is of verdict %q", t.Threshold, t.Verdict)
		}
	}
	return r.checkParts()
}

func (p RunPlan) check(users RunPlan) error {
	answers := p.Admitted + p.RejectedRate + p.RejectedConcurrency + p.RejectedAnonymous + p.Unauthenticated +
		p.ConfigUnavailable + sum(p.OtherStatuses) + sum(p.TransportErrors)
	unnamed, anonymous := p.Unjudged()
	timed := int64(0)
	for _, l := range p.Latency {
		timed += l.FromSend.Count
		if l.FirstByte.Count > l.FromSend.Count {
			return fmt.Errorf("more first bytes of outcome %s than answers: %d and %d", l.Outcome, l.FirstByte.Count, l.FromSend.Count)
		}
	}
	for _, e := range []struct {
		name        string
		whole, part int64
	}{
		{"planned and what became of it", p.Planned, p.Offered + p.Unsent},
		{"offered and what became of it", p.Offered, p.Sent + p.Dropped + p.HeldOff},
		{"sent and answers", p.Sent, answers},
		{"sent and latencies", p.Sent, timed},
		{"rejected_rate and its judgment", p.RejectedRate, p.RateJudged.Sum()},
		{"rejected_concurrency and its judgment", p.RejectedConcurrency, p.ConcurrencyJudged.Sum()},
		{"users and users listed", p.Users, users.Users},
		{"sent and sent by users", p.Sent, users.Sent},
		{"admitted and admitted users' requests", p.Admitted, users.Admitted},
		{"rejected_rate and that of users", p.RejectedRate, users.RejectedRate},
		{"rejected_concurrency and that of users", p.RejectedConcurrency, users.RejectedConcurrency},
		{"429s that could not be judged and those of users", unnamed + anonymous, users.RejectedAnonymous},
		{"undue and that of users", p.RateJudged.Undue + p.ConcurrencyJudged.Undue, users.RateJudged.Undue},
		{"missing and that of users", p.Missing, users.Missing},
	} {
		if e.whole != e.part {
			return fmt.Errorf("%s do not add up: %d and %d", e.name, e.whole, e.part)
		}
	}
	for _, f := range p.HeaderFaults {
		if f.N < 1 || f.N > p.Sent {
			return fmt.Errorf("header_faults: %q of %d answers, and %d requests were sent", f.Name, f.N, p.Sent)
		}
	}
	if n := sum(p.ErrorCodes); p.ErrorCodes != nil && n != sum(p.OtherStatuses) {
		return fmt.Errorf("other_statuses and their codes do not add up: %d and %d", sum(p.OtherStatuses), n)
	}
	if slices.Min(append([]int64{p.Planned, p.Offered, p.Sent, p.Dropped, p.HeldOff, p.Unsent, p.Admitted}, p.PerSecond.Sent...)) < 0 {
		return errors.New("a count is negative")
	}
	return p.PerSecond.check(p)
}

// check says which of a plan's figures by second do not add up to those of p.
func (s RunSeconds) check(p RunPlan) error {
	for _, c := range []struct {
		name string
		list []int64
		all  int64
	}{
		{"due", s.Due, p.Offered}, {"sent", s.Sent, p.Sent}, {"admitted", s.Admitted, p.Admitted}, {"dropped", s.Dropped, p.Dropped},
		{"rejected_rate", s.RejectedRate, p.RejectedRate}, {"rejected_concurrency", s.RejectedConcurrency, p.RejectedConcurrency},
		{"other", s.Other, p.Sent - p.Admitted - p.RejectedRate - p.RejectedConcurrency}, {"held_off", s.HeldOff, p.HeldOff},
	} {
		all := int64(0)
		for _, n := range c.list {
			all += n
		}
		if all != c.all && len(c.list) > 0 {
			return fmt.Errorf("per_second.%s does not add up: %d and %d", c.name, all, c.all)
		}
	}
	for _, list := range [][]int64{s.Sent, s.Admitted, s.RejectedRate, s.RejectedConcurrency, s.Dropped} {
		if len(list) != len(s.Due) {
			return errors.New("per_second has lists of different lengths")
		}
	}
	for _, list := range [][]int64{s.Other, s.HeldOff, s.P50US, s.P99US, s.MaxUS} { // earlier versions have none
		if len(list) != len(s.Due) && list != nil {
			return errors.New("per_second has lists of different lengths")
		}
	}
	return nil
}

// Sum is how many were judged.
func (j Judged) Sum() int64 { return j.Due + j.Undue + j.Undecided }

// Plus is both judgments together.
func (j Judged) Plus(o Judged) Judged {
	return Judged{Due: j.Due + o.Due, Undue: j.Undue + o.Undue, Undecided: j.Undecided + o.Undecided}
}
