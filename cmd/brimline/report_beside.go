package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/internal/files"
	"github.com/invoicespec/brimline/internal/strictcsv"
	"github.com/invoicespec/brimline/reports/evidence"
	"github.com/invoicespec/brimline/reports/prometheus"
	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
)

// besideFlags name what a report knows beside logs and runs.
type besideFlags struct {
	planMap, pseudonymKey       string
	operations, prices, tickets string
	database, prometheus        string
	since, until                instant // of the database's entries; zero: no bound
}

func (f *besideFlags) define(c *cobra.Command) {
	c.Flags().StringVar(&f.database, "database-url", "", "take the API log from the PostgreSQL at this `URL` as well")
	c.Flags().Var(&f.since, "since", "of the database's entries only those received from then on: a day, or a time such as 2026-11-30T14:05:00Z")
	c.Flags().Var(&f.until, "until", "and only those received before then")
	c.Flags().StringVar(&f.prometheus, "prometheus", "", "ask a Prometheus for what the engine's meters said: its `URL`, or a file (docs/evidence.md)")
	c.Flags().StringVar(&f.planMap, "plan-map", "", "who is on which plan, and what plans allow: a YAML `FILE` (docs/evidence.md)")
	c.Flags().StringVar(&f.operations, "operations", "", "paid operations that were used: a CSV `FILE` with user,time,used,included")
	c.Flags().StringVar(&f.prices, "prices", "", "a price list: a CSV `FILE` with plan,amount,currency,period")
	c.Flags().StringVar(&f.tickets, "tickets", "", "what customers wrote: a CSV `FILE` with id,user,date,symptom; a header alone says that there is nothing")
	c.Flags().StringVar(&f.pseudonymKey, "pseudonym-key", "", "name users by a key in `FILE`, the same from report to report, and not by rank")
}

// instant is a flag: a day, which is its midnight in UTC, or a time.
type instant struct{ time.Time }

func (i *instant) Set(text string) (err error) {
	i.Time, _, err = strictcsv.Instant(text)
	return err
}

func (i *instant) String() string {
	if i.IsZero() {
		return ""
	}
	return i.Format(time.RFC3339)
}

func (i *instant) Type() string { return "TIME" }

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

// ask asks a Prometheus about the time that the evidence is of.
func (f besideFlags) ask(ctx context.Context, e reassess.Evidence, b *reassess.Beside) error {
	if f.prometheus == "" {
		return nil
	}
	var c prometheus.Config
	var err error
	if strings.Contains(f.prometheus, "://") {
		c, err = prometheus.At(f.prometheus)
	} else {
		c, err = prometheus.Read(f.prometheus)
	}
	if err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	from, until := e.Window()
	if from.IsZero() {
		return errors.New("--prometheus: meters are asked about the time of recorded traffic, and no log was given")
	}
	m, err := c.Ask(ctx, from, until)
	if errors.Is(err, prometheus.ErrAway) {
		return exitWith(exitCannotTell, fmt.Errorf("--prometheus: %w", err))
	}
	if err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	b.Metrics = &m
	b.Inputs = append(b.Inputs, record.ReportInput{Name: "Prometheus, job " + m.Job, Kind: record.InputMetrics, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])})
	return nil
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
