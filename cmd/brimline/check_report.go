package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// beside is what a result is held against.
type beside struct {
	known   []record.KnownFailing // nil: no list was given
	earlier *record.Conformance   // nil: no run was given
}

// readBeside reads what a result will be held against, before anything is sent.
func (f checkFlags) readBeside() (b beside, err error) {
	if f.knownFailing != "" {
		b.known, err = record.ReadKnownFailing(f.knownFailing, f.known)
		if err != nil {
			return b, fmt.Errorf("--known-failing: %w", err)
		}
	}
	if f.against != "" {
		old, err := record.ReadConformance(f.against)
		if err != nil {
			return b, fmt.Errorf("--against: %w", err)
		}
		b.earlier = &old
	}
	return b, nil
}

func (b beside) hold(c record.Conformance) record.Conformance {
	if b.known != nil {
		c = c.WithKnown(b.known)
	}
	if b.earlier != nil {
		c = c.Against(*b.earlier)
	}
	return c
}

// checkCode is the exit code that a result stands for.
func checkCode(c record.Conformance) int {
	n := c.Counts
	told := n.Pass + n.Fail + n.KnownFails + n.Stale + n.Differs
	untold := n.Inconclusive + n.SetupFailed
	switch {
	case c.Result == record.ResultFailure:
		return exitFails
	case n.Untrue > 0:
		return exitUsage // it is the target file that has to be mended
	case c.Aborted != "" || untold > told || told == 0:
		return exitCannotTell
	}
	return exitHolds
}

// command is the command line that does the run again, for a shell.
func (f checkFlags) command() string {
	words := []string{"brimline", "check"}
	for _, flag := range []struct{ name, value string }{
		{"target", f.target}, {"clauses", strings.Join(f.clauses, ",")}, {"features", f.own}, {"known-failing", f.knownFailing},
	} {
		if flag.value != "" {
			words = append(words, "--"+flag.name, quoted(flag.value))
		}
	}
	if f.strict {
		words = append(words, "--strict")
	}
	if f.budget > 0 {
		words = append(words, "--budget", f.budget.String())
	}
	return strings.Join(words, " ")
}

// quoted is a word for a shell.
func quoted(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// report leaves the files of a result and prints it, in any case: a result that
// cannot be left is not lost. Its error carries the exit code.
func (f checkFlags) report(c record.Conformance, w world) error {
	var left string
	var lost error
	if f.out != "" {
		if left, lost = leave(f.out, c); lost != nil {
			lost = fmt.Errorf("--out: %w", lost)
		}
	}
	if err := f.print(c, left, w); err != nil {
		return errors.Join(err, lost)
	}
	code := checkCode(c)
	if code == exitHolds && lost != nil {
		code = exitUsage
	}
	if code != exitHolds {
		return exitWith(code, lost)
	}
	return nil
}

// print prints a result that was left somewhere.
func (f checkFlags) print(c record.Conformance, left string, w world) error {
	if f.asJSON {
		return printJSON(w.stdout, c)
	}
	text := render.Text{Report: left, Colour: isTerminal(w.stdout) && w.env("NO_COLOR") == "" && w.env("TERM") != "dumb"}
	switch {
	case f.quiet:
		text.Detail = render.Quiet
	case f.verbose:
		text.Detail = render.Verbose
	}
	return render.Conformance(w.stdout, c, text)
}
