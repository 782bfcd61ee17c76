package account_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/account"
)

func TestPeriodAt(t *testing.T) {
	date := func(s string) time.Time {
		at, err := time.Parse(time.RFC3339, s)
		require.NoError(t, err)
		return at
	}
	for name, c := range map[string]struct{ anchor, now, start, end string }{
		"at the anchor":              {"2026-11-30T12:00:00Z", "2026-11-30T12:00:00Z", "2026-11-30T12:00:00Z", "2026-12-30T12:00:00Z"},
		"just before the boundary":   {"2026-11-30T12:00:00Z", "2026-12-30T11:59:59Z", "2026-11-30T12:00:00Z", "2026-12-30T12:00:00Z"},
		"at the boundary":            {"2026-11-30T12:00:00Z", "2026-12-30T12:00:00Z", "2026-12-30T12:00:00Z", "2027-01-30T12:00:00Z"},
		"a shorter month":            {"2027-01-31T00:00:00Z", "2027-02-28T00:00:00Z", "2027-02-28T00:00:00Z", "2027-03-31T00:00:00Z"},
		"the 31st once more":         {"2027-01-31T00:00:00Z", "2027-03-31T00:00:00Z", "2027-03-31T00:00:00Z", "2027-04-30T00:00:00Z"},
		"a leap day":                 {"2028-01-31T00:00:00Z", "2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z", "2028-03-31T00:00:00Z"},
		"years later":                {"2026-11-30T12:00:00Z", "2031-06-15T00:00:00Z", "2031-05-30T12:00:00Z", "2031-06-30T12:00:00Z"},
		"before the anchor":          {"2026-11-30T12:00:00Z", "2026-11-30T11:59:59Z", "2026-11-30T12:00:00Z", "2026-12-30T12:00:00Z"},
		"a reading in another place": {"2026-11-30T23:30:00Z", "2026-12-31T00:15:00+01:00", "2026-11-30T23:30:00Z", "2026-12-30T23:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, account.Period{Start: date(c.start), End: date(c.end)}, account.PeriodAt(date(c.anchor), date(c.now)))
		})
	}
}

func TestPeriodsFollowOnEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instant := rapid.Int64Range(0, 7_000_000_000_000_000)
		anchor, now := time.UnixMicro(instant.Draw(t, "anchor")), time.UnixMicro(instant.Draw(t, "now"))
		p := account.PeriodAt(anchor, now)
		require.False(t, now.Before(p.Start) && anchor.Before(now))
		require.True(t, now.Before(p.End))
		require.Equal(t, p.End, account.PeriodAt(anchor, p.End).Start)
		require.Equal(t, p, account.PeriodAt(anchor, p.Start))
	})
}
