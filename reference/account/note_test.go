package account_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
)

func TestNoteCheck(t *testing.T) {
	for name, n := range map[string]account.Note{
		"short":           {Author: "a", Reason: "b"},
		"other languages": {Author: "Ø. Ångström", Reason: "契約"},
		"longest":         {Author: strings.Repeat("å", account.MaxAuthor), Reason: strings.Repeat("ß", account.MaxReason)},
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, n.Check()) })
	}
	for name, c := range map[string]struct {
		note account.Note
		want string
	}{
		"no author":       {account.Note{Reason: "b"}, "the author is missing"},
		"no reason":       {account.Note{Author: "a"}, "the reason is missing"},
		"blank reason":    {account.Note{Author: "a", Reason: " \u00a0\t"}, "the reason is missing"},
		"long author":     {account.Note{Author: strings.Repeat("a", 201), Reason: "b"}, "longer than 200"},
		"long reason":     {account.Note{Author: "a", Reason: strings.Repeat("a", 1001)}, "longer than 1000"},
		"control letters": {account.Note{Author: "a\x1b[2J", Reason: "b"}, "no text"},
		"a zero byte":     {account.Note{Author: "a", Reason: "b\x00"}, "no text"},
		"broken UTF-8":    {account.Note{Author: "a", Reason: "b\xff"}, "no text"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.note.Check()
			require.ErrorIs(t, err, account.ErrRefused)
			require.ErrorContains(t, err, c.want)
		})
	}
}
