package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

// logFlags say how a log is to be read.
type logFlags struct {
	scope    scope
	proxies  prefixes
	stamp    stampFlag
	trailing accesslog.Unit
	mapping  string
}

func (f *logFlags) define(c *cobra.Command) {
	c.Flags().Var(&f.scope, "scope", "only a log's requests at or below this path, such as /v1/invoice")
	c.Flags().Var(&f.proxies, "trusted-proxies", "skipped where an entry has a list of addresses, such as 10.0.0.0/8")
	c.Flags().Var(&f.stamp, "stamp", "what an entry's time means, received or finished (default as the format has it)")
	c.Flags().Var(&f.trailing, "trailing-duration", "the whole number that ends a line is how long it took, in s, ms, us or ns")
	c.Flags().StringVar(&f.mapping, "mapping", "", "read CSV or JSON Lines as the `FILE` says (docs/logs.md)")
}

// options are what the flags say.
func (f logFlags) options() (opt accesslog.Options, err error) {
	opt = accesslog.Options{Scope: string(f.scope), TrustedProxies: f.proxies, Stamp: record.LogStamp(f.stamp), Trailing: f.trailing}
	if f.mapping != "" {
		opt.Mapping, err = accesslog.ReadMapping(f.mapping)
	}
	return opt, err
}

// stampFlag is what an entry's time means.
type stampFlag record.LogStamp

func (s *stampFlag) Set(text string) error {
	switch record.LogStamp(text) {
	case record.StampReceived, record.StampFinished:
		*s = stampFlag(text)
		return nil
	}
	return errors.New("it is received or finished")
}

func (s *stampFlag) String() string { return string(*s) }
func (s *stampFlag) Type() string   { return "MEANING" }
