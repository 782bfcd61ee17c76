package roster_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/roster"
)

func TestRanks(t *testing.T) {
	require.Equal(t, []string{"u0003", "u0001", "u0002", "u0004"}, roster.Ranks([]int64{3, 9, 5, 3}).Names, "ties stay in their order")
	require.Empty(t, roster.Ranks(nil).Names)
}

func keyFile(t *testing.T, key []byte, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, key, 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

func TestKeyedPseudonyms(t *testing.T) {
	key, err := roster.ReadKey(keyFile(t, bytes.Repeat([]byte("k"), 32), 0o400))
	require.NoError(t, err)
	first, err := key.Pseudonyms([]string{"acme", "globex"})
	require.NoError(t, err)
	later, err := key.Pseudonyms([]string{"initech", "globex"})
	require.NoError(t, err)
	require.Equal(t, first.Names[1], later.Names[1], "the same user in another report")
	require.NotEqual(t, first.Names[0], first.Names[1])
	// As openssl dgst -sha256 -hmac says of it.
	require.Equal(t, "u5ee61ed202092a62", first.Names[0])
	other, err := roster.ReadKey(keyFile(t, bytes.Repeat([]byte("l"), 32), 0o600))
	require.NoError(t, err)
	again, err := other.Pseudonyms([]string{"acme"})
	require.NoError(t, err)
	require.NotEqual(t, first.Names[0], again.Names[0], "another key")
}

func TestKeysThatAreRefused(t *testing.T) {
	good := bytes.Repeat([]byte("k"), 32)
	for name, c := range map[string]struct {
		path, err string
	}{
		"short":           {keyFile(t, good[1:], 0o600), "31 bytes; accepted: from 32 to 4096 random bytes"},
		"long":            {keyFile(t, bytes.Repeat(good, 129), 0o600), "4097 bytes"},
		"open to a group": {keyFile(t, good, 0o640), "others than its owner may use it (mode 0640); accepted: mode 0600 or 0400"},
		"missing":         {filepath.Join(t.TempDir(), "none"), "no such file"},
		"a folder":        {t.TempDir(), "a folder; accepted: a file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := roster.ReadKey(c.path)
			require.ErrorContains(t, err, c.err)
			require.NotContains(t, err.Error(), "kkkk")
		})
	}
}
