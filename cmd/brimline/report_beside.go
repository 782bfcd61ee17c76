package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/internal/files"
	"github.com/invoicespec/brimline/reports/evidence"
	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
)

// besideFlags name what a report knows beside logs and runs.
type besideFlags struct {
	planMap, pseudonymKey       string
	operations, prices, tickets string
}

func (f *besideFlags) define(c *cobra.Command) {
	c.Flags().StringVar(&f.planMap, "plan-map", "", "who is on which plan, and what plans allow: a YAML `FILE` (docs/evidence.md)")
	c.Flags().StringVar(&f.operations, "operations", "", "paid operations that were used: a CSV `FILE` with user,time,used,included")
	c.Flags().StringVar(&f.prices, "prices", "", "a price list: a CSV `FILE` with plan,amount,currency,period")
	c.Flags().StringVar(&f.tickets, "tickets", "", "what customers wrote: a CSV `FILE` with id,user,date,symptom; a header alone says that there is nothing")
	c.Flags().StringVar(&f.pseudonymKey, "pseudonym-key", "", "name users by a key in `FILE`, the same from report to report, and not by rank")
}

// read reads what was named.
func (f besideFlags) read() (b reassess.Beside, err error) {
	add := func(kind record.InputKind, paths ...string) error {
		for _, path := range paths {
			in, err := summed(path, kind)
			if err != nil {
				return err
			}
			b.Inputs = append(b.Inputs, in)
		}
		return nil
	}
	if f.planMap != "" {
		if b.Map, err = roster.Read(f.planMap); err != nil {
			return b, err
		}
		if err := add(record.InputPlanMap, b.Map.Files()...); err != nil {
			return b, err
		}
	}
	if f.pseudonymKey != "" {
		key, err := roster.ReadKey(f.pseudonymKey)
		if err != nil {
			return b, err
		}
		b.Key = &key
	}
	if f.operations != "" {
		if b.Usage, err = evidence.ReadUsage(f.operations); err != nil {
			return b, err
		}
		if err := add(record.InputUsage, f.operations); err != nil {
			return b, err
		}
	}
	if f.prices != "" {
		if b.Prices, err = evidence.ReadPrices(f.prices); err != nil {
			return b, err
		}
		if err := add(record.InputPrices, f.prices); err != nil {
			return b, err
		}
	}
	if f.tickets != "" {
		if b.Tickets, err = evidence.ReadTickets(f.tickets); err != nil {
			return b, err
		}
		b.Asked = true
		return b, add(record.InputTickets, f.tickets)
	}
	return b, nil
}

// summed is a file as a report tells of it.
func summed(path string, kind record.InputKind) (record.ReportInput, error) {
	f, err := files.Open(path)
	if err != nil {
		return record.ReportInput{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return record.ReportInput{}, fmt.Errorf("%s: %w", path, err)
	}
	return record.ReportInput{Name: path, Kind: kind, Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}
