package target_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

// inCan is the sample with more lines below can, and the first line's number.
func inCan(t *testing.T, more string) (string, int) {
	t.Helper()
	const control = "  control: { url: http://127.0.0.1:9091, token-file: control.token }\n"
	text := strings.Replace(goodFile, control, more, 1)
	require.NotEqual(t, goodFile, text)
	return text, strings.Count(text[:strings.Index(text, more)], "\n") + 1
}

func TestReadFileRefusesCommands(t *testing.T) {
	for name, c := range map[string]struct{ lines, want string }{
		"no such action":         {"  commands:\n    set-plans: { exec: [x] }\n", "+1: can.commands.set-plans: there is no such action; accepted: make-user, add-key, revoke-key, set-plan,"},
		"no program":             {"  commands:\n    restart: { exec: [] }\n", "+1: can.commands.restart.exec: empty; accepted: a program and its arguments"},
		"a line for a shell":     {"  commands:\n    restart: { exec: ./restart now }\n", "+1: can.commands.restart.exec: "},
		"no such place":          {"  commands:\n    set-plan: { exec: [x, \"{user}\", \"{plans}\"] }\n", "+1: can.commands.set-plan.exec[2]: there is no {plans} in set-plan; accepted: {user}, {plan}"},
		"nobody is named":        {"  commands:\n    set-plan: { exec: [x, \"{plan}\"] }\n", "+1: can.commands.set-plan.exec: nothing tells it the {user}; accepted: {user}, {plan}"},
		"a key in the open":      {"  commands:\n    revoke-key: { exec: [x, \"{user}\", \"{key}\"] }\n", "+1: can.commands.revoke-key.exec[2]: {key} would show in the list of processes; accepted: the body on standard input, which holds it"},
		"a program that varies":  {"  commands:\n    set-plan: { exec: [\"./{plan}\", \"{user}\"] }\n", "+1: can.commands.set-plan.exec[0]: {plan} would choose the program; accepted: a program that is always the same"},
		"no variable":            {"  commands:\n    restart: { exec: [x], environment: { \"A B\": c } }\n", "+1: can.commands.restart.environment: \"A B\" is no variable; accepted: letters, digits and _"},
		"no variable to pass":    {"  commands:\n    restart: { exec: [x], pass: [A=b] }\n", "+1: can.commands.restart.pass[0]: \"A=b\" is no variable; accepted: letters, digits and _"},
		"one variable twice":     {"  commands:\n    restart: { exec: [x], environment: { A: b }, pass: [A] }\n", "+1: can.commands.restart.pass[0]: A is in environment as well; accepted: one of the two"},
		"too long":               {"  commands:\n    restart: { exec: [x], timeout: 3m }\n", "+1: can.commands.restart.timeout: 3m0s; accepted: a duration up to 2m0s"},
		"no time":                {"  commands:\n    restart: { exec: [x], timeout: -1s }\n", "+1: can.commands.restart.timeout: -1s; accepted"},
		"half a feature":         {"  commands:\n    close-gate: { exec: [x, \"{user}\", \"{place}\"] }\n", "+1: can.commands.close-gate: close-gate is of no use without open-gate; accepted: all of close-gate, open-gate, read-gate, or none"},
		"an unknown key":         {"  commands:\n    restart: { exec: [x], shell: true }\n", "+1: can.commands.restart.shell: unknown key; accepted: exec, environment, pass, timeout"},
		"two ways for one thing": {"  sql: { dsn-variable: A, operations: select $1 }\n  commands:\n    read-operations: { exec: [x, \"{user}\"] }\n    set-operations: { exec: [x, \"{user}\"] }\n", "+2: can.commands.read-operations: can.sql does this as well; accepted: one of the two"},

		"no connection string":  {"  sql: { operations: select $1 }\n", "+0: can.sql: dsn-variable and dsn-file are both given, or neither is; accepted: one of the two"},
		"two of them":           {"  sql: { dsn-variable: A, dsn-file: b, operations: select $1 }\n", "+0: can.sql: dsn-variable and dsn-file are both given, or neither is; accepted: one of the two"},
		"itself in the file":    {"  sql: { dsn-variable: \"postgres://a:b@c/d\", operations: select $1 }\n", "+0: can.sql.dsn-variable: \"…\" is no variable; accepted: letters, digits and _"},
		"no question":           {"  sql: { dsn-variable: A }\n", "+0: can.sql: asks for nothing; accepted: request and user, operations or all of them"},
		"of requests alone":     {"  sql:\n    dsn-variable: A\n    request: { entries: a $1, engine-calls: b $1, charges: c $1 }\n", "+1: can.sql: only one of request and user is given; accepted: both, or neither"},
		"a query about nobody":  {"  sql: { dsn-variable: A, operations: select 1 }\n", "+0: can.sql.operations: does not ask about $1; accepted: a query with $1 for the id"},
		"a query about more":    {"  sql: { dsn-variable: A, operations: \"select $1, $2\" }\n", "+0: can.sql.operations: no query that could be asked; accepted: up to 16384 bytes, and $1 alone"},
		"a statement's time":    {"  sql: { dsn-variable: A, operations: select $1, timeout: 1h }\n", "+0: can.sql.timeout: 1h0m0s; accepted: a duration up to 1m0s"},
		"operations by halves":  {"  commands:\n    set-operations: { exec: [x, \"{user}\"] }\n", "+1: can.commands.set-operations: set-operations is of no use without read-operations; accepted: all of set-operations, read-operations, or none"},
		"half an audit's query": {"  sql:\n    dsn-variable: A\n    request: { entries: a $1 }\n", "+2: can.sql.request.engine-calls: missing; accepted: text"},
	} {
		t.Run(name, func(t *testing.T) {
			text, first := inCan(t, c.lines)
			dir := folder(t, map[string]string{"t.yaml": text, "ok.json": `{"a":1}`})
			path := filepath.Join(dir, "t.yaml")
			_, err := target.ReadFile(path)
			var line int
			at, rest, _ := strings.Cut(c.want, ":")
			_, scan := fmt.Sscanf(at, "+%d", &line)
			require.NoError(t, scan)
			require.ErrorContains(t, err, fmt.Sprintf("%s:%d:%s", path, first+line, rest))
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// script is a program of a few lines.
func script(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+lines), 0o700))
	return path
}

// unlessNobody lets a program refuse what nobody has, and go on with the rest.
const unlessNobody = "case \"$*\" in *brimline-asks*) echo no such thing >&2; exit 1;; esac\n"

func command(t *testing.T, lines string, args ...string) target.Command {
	t.Helper()
	return target.Command{Exec: append([]string{script(t, unlessNobody+lines)}, args...), Timeout: time.Minute}
}

// commanded is a target with commands for some actions.
func commanded(t *testing.T, of map[string]target.Command) *target.Target {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	f := fileFor(s.URL)
	f.Allowances["pro"] = target.Allowance{RequestsPerMinute: 300, Burst: 100, Concurrency: 20}
	f.Can.Commands = of
	return open(t, f)
}

func TestCommandsGetWhatTheyAreGiven(t *testing.T) {
	left := filepath.Join(t.TempDir(), "left")
	t.Setenv("BRIMLINE_TEST_PASSED", "passed on")
	t.Setenv("BRIMLINE_TEST_KEPT", "not passed on")
	set := command(t, fmt.Sprintf("{ echo \"$@\"; cat; echo; env; } > %s\n", left), "-a", "{user}", "to={value}", "{expires}")
	set.Environment, set.Pass = map[string]string{"OWN": "its own"}, []string{"BRIMLINE_TEST_PASSED", "BRIMLINE_TEST_UNSET"}
	set.Exec = append(set.Exec, "{dimension}")
	tg := commanded(t, map[string]target.Command{"set-override": set, "end-override": command(t, "", "{user}", "{dimension}")})
	u := lease(t, tg, "free", 1)
	require.NoError(t, tg.SetOverride(t.Context(), u, target.Burst, target.Override{Value: 5, Reason: "why not"}))
	require.Equal(t, int64(5), u.Bucket.Allowance().Burst)
	text, err := os.ReadFile(left)
	require.NoError(t, err)
	require.Contains(t, string(text), "-a "+u.ID+" to=5  burst\n{\"value\":5,\"reason\":\"why not\"}\n")
	require.Contains(t, string(text), "OWN=its own\n")
	require.Contains(t, string(text), "BRIMLINE_TEST_PASSED=passed on\n")
	require.NotContains(t, string(text), "BRIMLINE_TEST_KEPT")
	require.NotContains(t, string(text), "\nHOME=")
	require.False(t, tg.Has(contract.NeedPolicy), "nobody makes users")
	require.Empty(t, tg.Untrue(contract.NeedPolicy))
}

// What a command does wrong is said in one line, and never shows a key.
func TestCommandsThatFail(t *testing.T) {
	t.Setenv("BRIMLINE_TEST_SECRET", "hunter2-hunter2")
	reading := func(lines string) func(*testing.T) target.Command {
		return func(t *testing.T) target.Command { return command(t, lines, "{user}") }
	}
	for name, c := range map[string]struct {
		command func(*testing.T) target.Command
		want    string
		is      error // nil: a refusal
	}{
		"refuses":      {reading("echo first >&2; echo \"no room for " + theKey + "\" >&2; exit 3\n"), "can.commands.read-operations: exit code 3: no room for isk_free_…", nil},
		"says nothing": {reading("exit 3\n"), "can.commands.read-operations: exit code 3: it said nothing", nil},
		"shows a password": {func(t *testing.T) target.Command {
			cmd := command(t, "echo \"bad password $BRIMLINE_TEST_SECRET\" >&2; exit 1\n", "{user}")
			cmd.Pass = []string{"BRIMLINE_TEST_SECRET"}
			return cmd
		}, "exit code 1: bad password …", nil},
		"prints nothing":  {reading(""), "what it printed: the JSON text ends too early", target.ErrUntrue},
		"prints half":     {reading("echo '{\"left\":1}'\n"), "what it printed: used: missing", target.ErrUntrue},
		"prints more":     {reading("echo '{\"left\":1,\"used\":0,\"x\":1}'\n"), "what it printed: unknown member \"x\"; known: left, used", target.ErrUntrue},
		"prints text":     {reading("echo '{\"left\":\"1\",\"used\":0}'\n"), "left: want a whole number", target.ErrUntrue},
		"prints twice":    {reading("echo '{\"left\":1,\"used\":0} {}'\n"), "something follows the JSON value", target.ErrUntrue},
		"prints for ever": {reading("yes 0123456789012345678901234567890123456789 | head -c 34000000\n"), "it printed more than 33554432 bytes", target.ErrUntrue},
		"is killed":       {reading("kill -9 $$\n"), "signal: killed", context.Canceled},
		"takes too long": {func(t *testing.T) target.Command {
			cmd := command(t, "exec sleep 600\n", "{user}")
			cmd.Timeout = 300 * time.Millisecond
			return cmd
		}, "can.commands.read-operations: it did not end within 300ms", context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			tg := commanded(t, map[string]target.Command{"read-operations": c.command(t), "set-operations": command(t, "", "{user}")})
			require.Empty(t, tg.Untrue(contract.NeedOperations))
			_, err := tg.Usage(t.Context(), lease(t, tg, "free", 1))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), theKey)
			require.NotContains(t, err.Error(), "hunter2")
			var refusal *target.ControlError
			switch c.is {
			case nil:
				require.ErrorAs(t, err, &refusal)
			case target.ErrUntrue:
				require.ErrorIs(t, err, target.ErrUntrue)
			default:
				require.NotErrorIs(t, err, target.ErrUntrue)
				require.NotErrorAs(t, err, &refusal)
			}
		})
	}
}

// A command that is given up takes its children with it.
func TestACommandsChildrenEndWithIt(t *testing.T) {
	child := filepath.Join(t.TempDir(), "child")
	slow := command(t, fmt.Sprintf("sleep 600 & echo -n $! > %s.tmp; mv %s.tmp %s; wait\n", child, child, child), "{user}")
	slow.Timeout = 2 * time.Second
	tg := commanded(t, map[string]target.Command{"read-operations": slow, "set-operations": command(t, "", "{user}")})
	_, err := tg.Usage(t.Context(), lease(t, tg, "free", 1))
	require.ErrorContains(t, err, "did not end within 2s")
	requireGone(t, child)
}

// An id that a deployment made up must not become an option.
func TestAnIdIsNoOption(t *testing.T) {
	f := fileFor(answering(t, 404))
	f.Can.Commands = map[string]target.Command{"read-operations": command(t, "", "{user}"), "set-operations": command(t, "", "{user}")}
	tg := open(t, f, target.Key{User: "--plan=pro", Plan: "free", Secret: target.NewSecret(theKey)})
	_, err := tg.Usage(t.Context(), lease(t, tg, "free", 1))
	require.ErrorContains(t, err, `can.commands.read-operations.exec[1]: "--plan=pro" would be an option, not what {user} stands for`)
}

// What is declared is asked before it is believed.
func TestUntrueCommands(t *testing.T) {
	yes := func(t *testing.T) target.Command { return target.Command{Exec: []string{script(t, ""), "{user}"}} }
	for name, c := range map[string]struct {
		of   func(*testing.T) target.Command
		want string
	}{
		"yes to everything": {yes, "can.commands.set-operations: it says yes to what nobody has: user brimline-asks-about-nobody"},
		"not there": {func(*testing.T) target.Command {
			return target.Command{Exec: []string{"./no-such-program", "{user}"}}
		}, "can.commands.set-operations.exec: ./no-such-program: "},
		"not on the path": {func(*testing.T) target.Command {
			return target.Command{Exec: []string{"brimline-no-such-program", "{user}"}}
		}, "can.commands.set-operations.exec: brimline-no-such-program: executable file not found"},
		"no program": {func(t *testing.T) target.Command {
			path := filepath.Join(t.TempDir(), "text")
			require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
			return target.Command{Exec: []string{path, "{user}"}}
		}, "permission denied"},
		"hangs": {func(t *testing.T) target.Command {
			return target.Command{Exec: []string{script(t, "exec sleep 600\n"), "{user}"}, Timeout: 100 * time.Millisecond}
		}, "can.commands.set-operations: it did not end within 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			tg := commanded(t, map[string]target.Command{"set-operations": c.of(t), "read-operations": command(t, "", "{user}")})
			require.False(t, tg.Has(contract.NeedOperations))
			require.Contains(t, tg.Untrue(contract.NeedOperations), c.want)
			require.ErrorIs(t, tg.SetOperations(t.Context(), lease(t, tg, "free", 1), 1), target.ErrUnsupported)
		})
	}
}

// A command that says it is done and does nothing is found out where something
// can be read: no clause of the deployment's is broken by that.
func TestCommandsThatLie(t *testing.T) {
	nothing := func(args ...string) target.Command { return command(t, "", args...) }
	tg := commanded(t, map[string]target.Command{
		"set-plan":       nothing("{user}", "{plan}"),
		"read-period":    command(t, `echo '{"start":"2026-01-01T00:00:00Z","end":"2026-02-01T00:00:00Z","plan":"free"}'`, "{user}"),
		"set-operations": nothing("{user}"), "read-operations": command(t, `echo '{"left":7,"used":0}'`, "{user}"),
		"set-override": nothing("{user}", "{dimension}"), "end-override": nothing("{user}", "{dimension}"),
		"read-overrides": command(t, `echo '{"entries":[{"dimension":"burst","value":"3","set":"2026-01-01T00:00:00Z"}]}'`, "{user}"),
		"close-gate":     nothing("{user}", "{place}"), "open-gate": nothing("{user}", "{place}"),
		"read-gate":     command(t, `echo '{"closed":false,"waiting":0}'`, "{user}", "{place}"),
		"read-clock":    command(t, `echo '{"mode":"frozen","now":"2026-01-01T00:00:00Z"}'`),
		"advance-clock": command(t, `echo '{"mode":"frozen","now":"2026-01-01T00:00:00Z"}'`, "{microseconds}"),
	})
	require.Equal(t, control.ClockFrozen, tg.Clock())
	u := lease(t, tg, "free", 1)
	ctx := t.Context()
	for what, err := range map[string]error{
		`set-plan: it says that it is done, and plan "free" is in force, not "pro"`:        tg.SetPlan(ctx, u, "pro"),
		`set-operations: it says that it is done, and 7 operations are left, not 1`:        tg.SetOperations(ctx, u, 1),
		`set-override: it says that it is done, and no override of burst to 5 is in force`: tg.SetOverride(ctx, u, target.Burst, target.Override{Value: 5}),
		`end-override: it says that it is done, and an override of burst is in force`:      tg.EndOverride(ctx, u, target.Burst),
		`close-gate: it says that it is done, and closed is false`:                         tg.CloseGate(ctx, u, target.PlaceEngine),
		`advance-clock: it says that it is done, and the clock moved by 0s, not by 1s`:     tg.Wait(ctx, time.Second),
	} {
		require.ErrorIs(t, err, target.ErrUntrue, what)
		require.ErrorContains(t, err, what)
	}
	require.NoError(t, tg.SetOperations(ctx, u, 7))
}
