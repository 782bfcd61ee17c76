package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/steps"
)

func TestWaitsAreFolded(t *testing.T) {
	var out bytes.Buffer
	c := newCounter(&out, "scenarios")
	waits := func(d time.Duration, what string) {
		c.wait(conformance.Wait{Scenario: "a scenario", Wait: steps.Wait{For: d, What: what}})
	}
	waits(4*time.Second, "tokens")
	waits(9*time.Second, "attempts")
	waits(7*time.Second, "tokens")
	require.Empty(t, out.String(), "none is long, and the last line is not")
	waits(2*time.Minute, "the time that it is about")
	require.Equal(t, "waits 2m0s for the time that it is about (a scenario)\n", out.String())

	out.Reset()
	c.said = time.Time{}
	c.show(conformance.Event{Done: 3, Of: 9})
	require.Equal(t, "3 of 9 scenarios; waits begun: 4, the longest: waits 2m0s for the time that it is about (a scenario)\n", out.String())

	out.Reset()
	c.said = time.Time{}
	waits(5*time.Second, "tokens")
	require.Equal(t, "waits begun: 1, the longest: waits 5s for tokens (a scenario)\n", out.String())

	out.Reset()
	c.clear()
	require.Equal(t, "scenarios waited 2m25s, side by side: 2m0s for the time that it is about; 16s for tokens; 9s for attempts\n", out.String())
	out.Reset()
	newCounter(&out, "faults").clear()
	require.Empty(t, out.String())
}
