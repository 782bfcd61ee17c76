package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nothingEmpty refuses flags and arguments that are given and empty: a script
// that lost a value must not get what leaving the flag out means. A flag may say
// in its text what empty means.
func nothingEmpty(c *cobra.Command, args []string) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && blank(f.Value) && !strings.Contains(f.Usage, "empty: ") {
			err = fmt.Errorf("--%s is empty: give it a value, or leave it out", f.Name)
		}
	})
	if i := slices.IndexFunc(args, isBlank); err == nil && i >= 0 {
		err = fmt.Errorf("argument %d of %s is empty", i+1, c.Name())
	}
	return err
}

func blank(v pflag.Value) bool {
	if list, ok := v.(pflag.SliceValue); ok {
		words := list.GetSlice()
		return len(words) == 0 || slices.ContainsFunc(words, isBlank)
	}
	return isBlank(v.String())
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// flagError says what a flag accepts where the parser only says what it did.
func flagError(_ *cobra.Command, err error) error {
	wrong := (*pflag.InvalidValueError)(nil)
	if !errors.As(err, &wrong) || !errors.As(err, new(*strconv.NumError)) {
		return err
	}
	accepted := map[string]string{"bool": "true or false", "int": "a whole number"}[wrong.GetFlag().Value.Type()]
	if accepted == "" {
		return err
	}
	return fmt.Errorf("--%s: got %q; accepted: %s", wrong.GetFlag().Name, wrong.GetValue(), accepted)
}

// exclusive refuses two of the flags together.
func exclusive(c *cobra.Command, names ...string) error {
	given := slices.DeleteFunc(names, func(name string) bool { return !c.Flags().Changed(name) })
	if len(given) < 2 {
		return nil
	}
	return fmt.Errorf("--%s and --%s exclude each other", given[0], given[1])
}

// noArguments refuses arguments and says where what was meant may belong.
func noArguments(belongs string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return fmt.Errorf("%s takes no argument, got %q: %s", c.Name(), args[0], belongs)
	}
}

// count is a flag: a whole number up to a bound.
type count struct{ n, most int }

func (c *count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > c.most {
		return fmt.Errorf("accepted: a whole number from 0 to %d", c.most)
	}
	c.n = n
	return nil
}

func (c *count) String() string { return strconv.Itoa(c.n) }
func (c *count) Type() string   { return "int" }
