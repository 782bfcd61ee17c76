//go:build unix

package files_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/files"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(in("file"), []byte("text"), 0o600))
	require.NoError(t, syscall.Mkfifo(in("pipe"), 0o600))
	require.NoError(t, os.Symlink("pipe", in("link")))
	for path, says := range map[string]string{
		in("pipe"):  "a pipe; accepted: a file",
		in("link"):  "a pipe; accepted: a file",
		dir:         "a folder; accepted: a file",
		"/dev/zero": "a device; accepted: a file",
		in("gone"):  "no such file or directory",
	} {
		_, err := files.Open(path)
		require.EqualError(t, err, "open "+path+": "+says)
	}
	f, err := files.Open(in("file"))
	require.NoError(t, err)
	defer f.Close()
	data, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "text", string(data))
}
