package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// report leaves the files of a result and prints it.
func (f checkFlags) report(c record.Conformance, w world) error {
	var left string
	if f.out != "" {
		var err error
		if left, err = leave(f.out, c); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
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

// leave writes a result into a folder in every form there is, and says where.
func leave(dir string, c record.Conformance) (where string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	var names []string
	for _, file := range []struct {
		name  string
		write func(io.Writer, record.Conformance) error
	}{
		{"index.html", render.ConformanceHTML},
		{"conformance.json", func(w io.Writer, c record.Conformance) error { return printJSON(w, c) }},
		{"junit.xml", render.JUnit},
		{"summary.md", render.ConformanceMarkdown},
		{"badge.json", render.Badge},
	} {
		var b bytes.Buffer
		if err := file.write(&b, c); err != nil {
			return "", err
		}
		if err := replaceFile(filepath.Join(dir, file.name), b.Bytes()); err != nil {
			return "", err
		}
		names = append(names, file.name)
	}
	return fmt.Sprintf("%s  (%s beside it)", filepath.Join(dir, names[0]), strings.Join(names[1:], ", ")), nil
}
