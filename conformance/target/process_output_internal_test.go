package target

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutput(t *testing.T) {
	for name, c := range map[string]struct {
		written []string
		kept    string
	}{
		"nothing":             {nil, ""},
		"a little":            {[]string{"ab", "cd"}, "abcd"},
		"as much as there is": {[]string{"abcdefgh"}, "abcdefgh"},
		"too much":            {[]string{"a\nkeykeyk\nb"}, "a\n…\nb"},
		"bit by bit":          {strings.Split("ab\ndefghi\nkl", ""), "ab\n…\nkl"},
		"too long a line":     {[]string{"abcdefghi"}, "…"},
		"that ends":           {[]string{"abcdefghi\n"}, "…\n"},
		"half a character":    {[]string{"é\nabcdefghi\né"}, "é\n…\né"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &output{most: 8}
			for _, w := range c.written {
				n, err := o.Write([]byte(w))
				require.NoError(t, err)
				require.Equal(t, len(w), n)
			}
			require.Equal(t, c.kept, o.String())
		})
	}
}
