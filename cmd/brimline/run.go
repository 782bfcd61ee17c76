package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/internal/build"
	"github.com/invoicespec/brimline/reports/render"
)

// Exit codes, the same for every verb.
const (
	exitHolds      = 0 // it holds; a partial result without a failure too
	exitFails      = 1 // a clause, threshold or gate does not hold
	exitUsage      = 2 // usage, configuration, bad input, a port in use, or nothing was run
	exitCannotTell = 3 // target away, not enough evidence, inconclusive
)

// world is all that a verb may touch of the process around it.
type world struct {
	getenv     func(string) (string, bool) // as os.LookupEnv
	executable string                      // this program, for servers in processes of their own; empty: it starts none
	stdin      io.Reader
	stdout     io.Writer // results
	stderr     io.Writer // progress and errors
}

// env is a variable's value; empty: it is not set, or empty.
func (w world) env(name string) string {
	text, _ := w.getenv(name)
	return text
}

// verdict is an error that carries its exit code. Its err may be nil: the verb
// has printed all there is to say.
type verdict struct {
	code int
	err  error
}

func (v *verdict) Error() string {
	if v.err == nil {
		return fmt.Sprintf("exit code %d", v.code)
	}
	return v.err.Error()
}

func (v *verdict) Unwrap() error { return v.err }

// exitWith makes run end with code, after printing err unless it is nil.
func exitWith(code int, err error) error { return &verdict{code: code, err: err} }

// run carries out one command line and returns its exit code. An error without
// a code of its own is one of usage.
func run(ctx context.Context, args []string, w world) int {
	root := &cobra.Command{
		Use:           "brimline",
		Short:         "Are the rate limits of this API what they should be?",
		Version:       build.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },

		PersistentPreRunE: nothingEmpty,
	}
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetArgs(args)
	root.SetIn(w.stdin)
	root.SetOut(w.stdout)
	root.SetErr(w.stderr)
	root.AddCommand(verbs(w)...)

	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitHolds
	}
	code := exitUsage
	if v := (*verdict)(nil); errors.As(err, &v) {
		code, err = v.code, v.err
	}
	if err != nil {
		fmt.Fprintf(w.stderr, "brimline: %s\n", oneLine(err))
	}
	return code
}

// oneLine is an error in one line, whatever it is made of: a server that it quotes
// must not move the cursor.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return render.Visible(strings.Join(lines, "; "))
}
