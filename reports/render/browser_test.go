package render_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browser opens a page in a browser of its own and says where it is.
func browser(t *testing.T, page string) (ctx context.Context, url string) {
	t.Helper()
	program, err := exec.LookPath("chromium")
	require.NoError(t, err, "install it with: sudo apt-get update && sudo apt-get install -y chromium")
	path := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(path, []byte(page), 0o600))

	const patience = 2 * time.Minute
	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Env("TMPDIR="+t.TempDir()), chromedp.WSURLReadTimeout(patience))...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	return ctx, "file://" + path
}
