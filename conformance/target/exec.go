package target

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/internal/strictjson"
)

// commands carries out actions by programs of the deployment's own.
type commands struct {
	folder string
	of     map[string]Command
	mask   func(string) string
	lookup func(string) (string, bool) // of our environment
}

// maxLine is how much of what a command complains about is shown.
const maxLine = 300

func (c *commands) can(a action) bool {
	_, ok := c.of[string(a)]
	return ok
}

func (c *commands) name(a action) string { return "can.commands." + string(a) }

func (c *commands) close() {}

// passed is what commands are passed that may be secret. A path is none, and of
// what is shorter every text might hold some.
func (c *commands) passed() (all []Secret) {
	for _, of := range c.of {
		for _, name := range of.Pass {
			if value, _ := c.lookup(name); len(value) >= 6 && !strings.HasPrefix(value, "/") {
				all = append(all, NewSecret(value))
			}
		}
	}
	return all
}

func (c *commands) do(ctx context.Context, x call, answer any) error {
	key := c.name(x.action)
	r, _ := routeOf(x.action)
	said, err := c.run(ctx, key, c.of[string(x.action)], x)
	if err != nil || r.answers == nil {
		return err
	}
	if err := strictjson.Parse(said, r.answers(answer)); err != nil {
		return fmt.Errorf("%w: %s: what it printed: %s", ErrUntrue, key, unquoted(err))
	}
	return nil
}

// unquoted is what is wrong with an output, without the longer words of it: one
// may be a key that nobody has seen before.
func unquoted(err error) string {
	return quotation.ReplaceAllStringFunc(err.Error(), func(word string) string {
		return `"` + maskWords(strings.Trim(word, `"`)) + `"`
	})
}

var quotation = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// run runs a command and returns what it printed.
func (c *commands) run(ctx context.Context, key string, of Command, x call) ([]byte, error) {
	args, body, err := of.filled(key, x)
	if err != nil {
		return nil, err
	}
	program, err := findProgram(c.folder, of.Exec[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %s.exec: %w", ErrUntrue, key, err)
	}
	within, cancel := context.WithTimeout(ctx, of.timeout())
	defer cancel()
	out, errs := &bounded{most: maxControlBody + 1}, &tail{}
	cmd := exec.CommandContext(within, program, args...)
	cmd.Dir, cmd.Env = c.folder, of.environment(c.lookup)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(body), out, errs
	cmd.WaitDelay = time.Second // what a child left open does not keep us
	ownGroup(cmd)
	cmd.Cancel = func() error { kill(cmd); return nil }
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %s.exec: %w", ErrUntrue, key, err)
	}
	err = cmd.Wait()
	kill(cmd) // whoever it has left behind
	code := cmd.ProcessState.ExitCode()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case within.Err() != nil:
		return nil, fmt.Errorf("%s: it did not end within %s", key, of.timeout())
	case code > 0:
		return nil, &ControlError{Request: key, Code: fmt.Sprintf("exit code %d", code), Message: c.complaint(errs)}
	case code < 0:
		return nil, fmt.Errorf("%s: %s", key, cmd.ProcessState)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s: %w", key, err)
	case len(out.kept) > maxControlBody:
		return nil, fmt.Errorf("%w: %s: it printed more than %d bytes", ErrUntrue, key, maxControlBody)
	}
	return out.kept, nil
}

// filled is a command's arguments and what it reads.
func (c Command) filled(key string, x call) (args []string, body []byte, err error) {
	if x.body != nil {
		if body, err = json.Marshal(x.body); err != nil {
			return nil, nil, err
		}
	}
	values, err := x.values()
	if err != nil {
		return nil, nil, err
	}
	for i, arg := range c.Exec[1:] {
		full := placeholder.ReplaceAllStringFunc(arg, func(place string) string { return values[strings.Trim(place, "{}")] })
		// An id that looks like an option would be one.
		if _, number := strconv.ParseInt(full, 10, 64); strings.HasPrefix(full, "-") && !strings.HasPrefix(arg, "-") && number != nil {
			return nil, nil, fmt.Errorf("%s.exec[%d]: %q would be an option, not what %s stands for", key, i+1, full, arg)
		}
		if strings.ContainsRune(full, 0) {
			return nil, nil, fmt.Errorf("%s.exec[%d]: what %s stands for holds a zero byte", key, i+1, arg)
		}
		args = append(args, full)
	}
	return args, body, nil
}

// findProgram is where a program of a target file in a folder is: beside the file
// if it is named by a path, else where this machine keeps programs.
func findProgram(folder, called string) (string, error) {
	name := called
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		var err error
		if name, err = filepath.Abs(filepath.Join(folder, name)); err != nil {
			return "", err
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", called, cause(err))
	}
	return path, nil
}

// cause is why a program is not there, without its name.
func cause(err error) error {
	if e := (*exec.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// environment is what was named, and nothing else of ours.
func (c Command) environment(lookup func(string) (string, bool)) []string {
	all := []string{} // not nil, which would be all of ours
	for name, value := range c.Environment {
		all = append(all, name+"="+value)
	}
	for _, name := range c.Pass {
		if value, ok := lookup(name); ok {
			all = append(all, name+"="+value)
		}
	}
	slices.Sort(all)
	return all
}

// complaint is the last line that a command wrote to standard error, without the
// keys that we know and without what it was passed.
func (c *commands) complaint(errs *tail) string {
	line := c.mask(errs.line())
	return cmp.Or(strings.ToValidUTF8(line[:min(len(line), maxLine)], ""), "it said nothing")
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

const maxTail = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - maxTail; over > 0 {
		t.kept = t.kept[over:]
	}
	return len(p), nil
}

// line is the last line that is not empty, without control characters.
func (t *tail) line() string {
	lines := strings.Split(strings.TrimSpace(string(t.kept)), "\n")
	if len(lines) == 1 && len(t.kept) == maxTail {
		return "a line that is too long" // its beginning may be the end of a key
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.TrimSpace(lines[len(lines)-1]))
}
