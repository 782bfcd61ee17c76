package evidence_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/evidence"
	"github.com/invoicespec/brimline/reports/roster"
)

func table(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.csv")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestUsage(t *testing.T) {
	list, err := evidence.ReadUsage(table(t, "\ufeffuser,time,used,included\r\nb,2026-03-02,100,100\r\na,2026-03-01T10:00:00Z,90,100\r\na,2026-03-03,101,100\r\na,2026-03-04,120,100\r\n"))
	require.NoError(t, err)
	require.Len(t, list, 4)
	require.Equal(t, "a", list[0].User)
	require.Equal(t, map[string]time.Time{
		"a": time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC), "b": time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC),
	}, evidence.FirstExhausted(list))
}

func TestTickets(t *testing.T) {
	list, err := evidence.ReadTickets(table(t, `id,user,date,symptom
T-2,acme,2026-03-02T14:05:00+01:00,"429 from 192.0.2.7, says Acme"
T-1,globex,2026-03-01,too slow
`))
	require.NoError(t, err)
	require.Equal(t, []evidence.Ticket{
		{ID: "T-1", User: "globex", At: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Symptom: "too slow"},
		{ID: "T-2", User: "acme", At: time.Date(2026, 3, 2, 13, 5, 0, 0, time.UTC), Hour: true, Symptom: "429 from […], says […]"},
	}, list)
	none, err := evidence.ReadTickets(table(t, "id,user,date,symptom\n"))
	require.NoError(t, err)
	require.NotNil(t, none, "somebody looked")
	require.Empty(t, none)
}

func TestPrices(t *testing.T) {
	list, err := evidence.ReadPrices(table(t, "plan,amount,currency,period,operations\nfree,0,EUR,month,100\nstarter,360,EUR,year,12000\n"))
	require.NoError(t, err)
	r := roster.Single("Starter", nil, 1)
	r.Plans = append(r.Plans, roster.Plan{Name: "own"})
	require.Equal(t, []string{"own"}, evidence.Apply(list, r))
	require.InDelta(t, 30, r.Plans[0].Price.Monthly(), 1e-9)
	require.EqualValues(t, 1000, *r.Plans[0].Operations)
	require.True(t, *r.Plans[0].Paid)
	require.Nil(t, r.Plans[1].Price)
}

func TestTablesThatAreRefused(t *testing.T) {
	usage := func(path string) error { _, err := evidence.ReadUsage(path); return err }
	tickets := func(path string) error { _, err := evidence.ReadTickets(path); return err }
	prices := func(path string) error { _, err := evidence.ReadPrices(path); return err }
	for name, c := range map[string]struct {
		read      func(string) error
		text, err string
	}{
		"no table":        {usage, "", "t.csv: the file is empty; accepted: a header line of user,time,used,included"},
		"used":            {usage, "user,time,used,included\nsecret,2026-01-01,-1,5\n", "t.csv:2: used: it is no such number; accepted: a whole number from 0 on"},
		"included":        {usage, "user,time,used,included\nsecret,2026-01-01,1,5.0\n", "t.csv:2: included: it is no such number"},
		"time":            {usage, "user,time,used,included\nsecret,yesterday,1,5\n", "t.csv:2: time: it is no time; accepted: a day such as"},
		"no user":         {usage, "user,time,used,included\n ,2026-01-01,1,5\n", "t.csv:2: user: it is empty"},
		"no id":           {tickets, "id,user,date,symptom\nto secret,u,2026-01-01,x\n", "t.csv:2: id: it is no ticket's id"},
		"a ticket twice":  {tickets, "id,user,date,symptom\nT,u,2026-01-01,x\nT,u,2026-01-01,x\n", "t.csv:3: id: the ticket is there already, in line 2"},
		"no symptom":      {tickets, "id,user,date,symptom\nT,secret,2026-01-01,\n", "t.csv:2: symptom: it is empty"},
		"amount":          {prices, "plan,amount,currency,period\nfree,1e3,EUR,month\n", "t.csv:2: amount: it is no amount of money; accepted: an amount such as 29 or 29.90"},
		"currency":        {prices, "plan,amount,currency,period\nfree,1,euro,month\n", `t.csv:2: currency: got "euro"; accepted: three capital letters`},
		"period":          {prices, "plan,amount,currency,period\nfree,1,EUR,day\n", `t.csv:2: period: got "day"; accepted: month or year`},
		"two currencies":  {prices, "plan,amount,currency,period\na,1,EUR,month\nb,1,USD,month\n", `t.csv:3: currency: got "USD" beside "EUR"`},
		"a plan twice":    {prices, "plan,amount,currency,period\na,1,EUR,month\na,1,EUR,month\n", "t.csv:3: plan: it has a price already"},
		"operations":      {prices, "plan,amount,currency,period,operations\na,1,EUR,month,many\n", "t.csv:2: operations: it is no such number"},
		"another's table": {prices, "user,time,used,included\n", "column 1 of the header is none that is known; accepted: a header line of plan,amount,currency,period, and perhaps operations"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.read(table(t, c.text))
			require.ErrorContains(t, err, c.err)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestMasked(t *testing.T) {
	for text, want := range map[string]string{
		"429 since Tuesday":                         "429 since Tuesday",
		"mail me: Jo.Doe@example.org!":              "mail me: […]!",
		"from 2001:db8::1, (192.0.2.1:443) it ends": "from […], ([…]) it ends",
		"ip=192.0.2.1":                              "[…]",
		"see https://example.org/?key=1":            "see […]",
		"key sk_live_0123456789abcdef0123":          "key […]",
		"internationalization fails":                "internationalization fails",
		"acme, ACME and acme-two; pacmen":           "[…], […] and […]-two; pacmen",
		"a\nb\tc\x1b[31m":                           "a b c [31m",
		"acme acme acme":                            "[…] […] […]",
	} {
		require.Equal(t, want, evidence.Masked(text, "acme"), text)
	}
	require.Equal(t, 301, len([]rune(evidence.Masked(strings.Repeat("a b ", 200), ""))))
}
