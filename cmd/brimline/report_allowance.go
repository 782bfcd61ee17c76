package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reports/record"
)

// allowance is a flag: requests per minute and burst.
type allowance struct{ rate, burst int64 }

func (a *allowance) Set(text string) error {
	rate, burst, ok := strings.Cut(text, "/")
	if !ok {
		return errors.New("it is requests per minute, a slash and the burst, such as 10/10")
	}
	r, err := policy.ParseValue(policy.RequestsPerMinute, strings.TrimSpace(rate))
	if err != nil {
		return err
	}
	b, err := policy.ParseValue(policy.Burst, strings.TrimSpace(burst))
	if err != nil {
		return err
	}
	a.rate, a.burst = r, b
	return nil
}

func (a *allowance) String() string {
	if a.rate == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", a.rate, a.burst)
}

func (a *allowance) Type() string { return "RATE/BURST" }

// value is nil where the flag was not given.
func (a *allowance) value() *record.ReportAllowance {
	if a.rate == 0 {
		return nil
	}
	return &record.ReportAllowance{RequestsPerMinute: a.rate, Burst: a.burst}
}
