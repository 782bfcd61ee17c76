package strictcsv_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/strictcsv"
)

var columns = strictcsv.Columns{Required: []string{"user", "plan"}, Optional: []string{"from"}}

func read(text string) (rows []string, err error) {
	err = strictcsv.From("t.csv", strings.NewReader(text), columns, func(r strictcsv.Row) error {
		rows = append(rows, r.Get("user")+"|"+r.Get("plan")+"|"+r.Get("from"))
		if r.Get("plan") == "bad" {
			return r.Refuse("plan", "no such plan", "free, starter")
		}
		return nil
	})
	return rows, err
}

func TestTables(t *testing.T) {
	for name, c := range map[string]struct {
		text, err string
		rows      []string
	}{
		"plain":             {text: "user,plan\na,free\n", rows: []string{"a|free|"}},
		"another order":     {text: "from,plan,user\n2026-01-01, free ,a", rows: []string{"a|free|2026-01-01"}},
		"mark, CRLF, blank": {text: "\ufeffuser,plan\r\n\r\n\"a,\"\"b\",free\r\n", rows: []string{`a,"b|free|`}},
		"no rows":           {text: "user,plan\n"},
		"empty":             {text: "", err: "t.csv: the file is empty; accepted: a header line of user,plan, and perhaps from"},
		"unknown column":    {text: "user,plan,secret-user\n", err: "t.csv:1: column 3 of the header is none that is known; accepted: a header line of user,plan, and perhaps from"},
		"twice":             {text: "user,plan,user\n", err: "t.csv:1: user: the column is there twice; accepted: a header line of user,plan, and perhaps from"},
		"missing":           {text: "user\n", err: "t.csv:1: plan: the column is missing; accepted: a header line of user,plan, and perhaps from"},
		"a short row":       {text: "user,plan\na\n", err: "t.csv:2: another number of fields than the header has; accepted: as many as there are columns"},
		"a stray mark":      {text: "user,plan\na,\"b\"c\n", err: `t.csv:2: a stray quotation mark; accepted: fields in quotation marks as a whole, a mark inside as ""`},
		"not text":          {text: "user,plan\na\xff,free\n", err: "t.csv:2: user: not UTF-8 text"},
		"too long":          {text: "user,plan\n" + strings.Repeat("a", 5000) + ",free\n", err: "t.csv:2: user: too long; accepted: at most 4096 bytes"},
		"the caller's":      {text: "user,plan\na,free\nb,bad\n", err: "t.csv:3: plan: no such plan; accepted: free, starter", rows: []string{"a|free|", "b|bad|"}},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := read(c.text)
			if c.err != "" {
				require.EqualError(t, err, c.err)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.rows, rows)
		})
	}
}

func TestReadOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	require.ErrorContains(t, strictcsv.Read(path, columns, nil), "t.csv: no such file")
	require.NoError(t, os.WriteFile(path, []byte("user,plan\n"), 0o600))
	require.NoError(t, strictcsv.Read(path, columns, nil))
	require.ErrorContains(t, strictcsv.Read(filepath.Dir(path), columns, nil), "a folder, a pipe or a device; accepted: a file")
}

func TestInstant(t *testing.T) {
	at, whole, err := strictcsv.Instant("2026-11-30")
	require.NoError(t, err)
	require.True(t, whole)
	later, whole, err := strictcsv.Instant("2026-11-30T02:00:00+01:00")
	require.NoError(t, err)
	require.False(t, whole)
	require.EqualValues(t, 3600, later.Unix()-at.Unix())
	for _, text := range []string{"", "30.11.2026", "2026-11-30T02:00:00", "0001-01-01", "2026-02-30"} {
		_, _, err := strictcsv.Instant(text)
		require.EqualError(t, err, strictcsv.Instants, text)
	}
}

func FuzzTables(f *testing.F) {
	f.Add("user,plan\na,free\n")
	f.Add("\ufefffrom,plan,user\r\n,\"a\nb\",x")
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := read(text)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
		require.LessOrEqual(t, len(rows), strings.Count(text, "\n")+1)
	})
}
