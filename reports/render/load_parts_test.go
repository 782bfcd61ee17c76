package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

func TestLoadParts(t *testing.T) {
	var b strings.Builder
	require.NoError(t, render.LoadParts(&b, record.RunMerged{
		Of: 4, Start: time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC), Missing: []int64{1},
		Parts: []record.RunPart{
			{Index: 0, Users: 1200, Generator: record.Generator{Results: 48_000, Lag: record.Quantiles{P99US: 1400}, StartLateUS: 80, CPUSeconds: 2.04}},
			{Index: 2, Users: 9, Clock: record.RunClock{Known: true}},
			{Index: 3, Users: 9, Clock: record.RunClock{Known: true, Synchronised: true, MostOffUS: 1500}},
		},
	}))
	require.Equal(t, `4 shards of one run that began at 2026-11-30 21:00:00 UTC

  shard    users    sent  lag p99   late    cpu             clock
    0/4    1,200  48,000  1.40 ms  80 µs  2.0 s           unknown
    1/4  missing       –        –      –      –                 –
    2/4        9       0     0 µs   0 µs  0.0 s  not synchronised
    3/4        9       0     0 µs   0 µs  0.0 s          ±1.50 ms

`, b.String())
}
