package record_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

// packed is a text as one frame.
func packed(t testing.TB, text string) []byte {
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer z.Close()
	return z.EncodeAll([]byte(text), nil)
}

const rowsHead = `{"schema":"brimline.rows/1","started":"2026-11-30T01:02:03Z"}` + "\n"

func TestReadRows(t *testing.T) {
	none := func(record.Row) error { return nil }
	head, err := record.ReadRows(bytes.NewReader(packed(t, rowsHead)), none)
	require.NoError(t, err)
	require.Equal(t, record.RowsSchema, head.Schema)
	for name, c := range map[string]struct{ text, want string }{
		"nothing":        {"", "line 1: the rows are cut off"},
		"another schema": {`{"schema":"brimline.run/1"}` + "\n", `line 1: no rows of a load run: schema is "brimline.run/1", want "brimline.rows/1"`},
		"no JSON":        {"user,plan\n", "line 1: no rows of a load run"},
		"half a line":    {rowsHead + `{"user":"a"`, "line 2: the rows are cut off"},
		"a broken line":  {rowsHead + "{}\n{\"user\":1}\n", "line 3: json"},
		"an unknown key": {rowsHead + "{\"who\":\"a\"}\n", "line 2: json: unknown field"},
		"a long line":    {rowsHead + strings.Repeat("x", 70_000) + "\n", "line 2: bufio: buffer full"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := record.ReadRows(bytes.NewReader(packed(t, c.text)), none)
			require.ErrorContains(t, err, c.want)
		})
	}
	t.Run("no frame", func(t *testing.T) {
		_, err := record.ReadRows(strings.NewReader(rowsHead), none)
		require.ErrorContains(t, err, "line 1: ")
		require.NotErrorIs(t, err, record.ErrRowsCut)
	})
	t.Run("enough", func(t *testing.T) {
		enough := errors.New("enough")
		_, err := record.ReadRows(bytes.NewReader(packed(t, rowsHead+"{}\n{}\n")), func(record.Row) error { return enough })
		require.ErrorIs(t, err, enough)
	})
}

func FuzzReadRows(f *testing.F) {
	f.Add(packed(f, rowsHead+`{"user":"a","outcome":"admitted"}`+"\n"))
	f.Add(packed(f, rowsHead)[:20])
	f.Fuzz(func(t *testing.T, text []byte) {
		n := 0
		_, err := record.ReadRows(bytes.NewReader(text), func(record.Row) error { n++; return nil })
		if n > 0 && err == nil {
			require.NotEmpty(t, text)
		}
	})
}
