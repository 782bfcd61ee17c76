package conformance_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/proxytest"
)

// foreignFolder is the module of other people's limiters; see docs/foreign.md.
const foreignFolder = "testdata/foreign"

// foreign is one of other people's limiters, by the name of its target file. A
// proxy stands before the application without a limiter.
type foreign struct {
	name   string
	module string                                       // of a library
	proxy  func(t testing.TB, app string) (addr string) // nil: it is a library
}

var foreigners = []foreign{
	{name: "httprate", module: "github.com/go-chi/httprate"},
	{name: "ulule", module: "github.com/ulule/limiter/v3"},
	{name: "throttled", module: "github.com/throttled/throttled/v2"},
	{name: "tollbooth", module: "github.com/didip/tollbooth/v7"},
	{name: "go-limiter", module: "github.com/sethvargo/go-limiter"},
	{name: "x-time", module: "golang.org/x/time"},
	{name: "nginx", proxy: func(t testing.TB, app string) string {
		return proxytest.Nginx(t, "127.0.0.1", func(listen string) string { return foreignConfig(t, "nginx.conf", listen, app) })
	}},
	{name: "haproxy", proxy: func(t testing.TB, app string) string {
		return proxytest.HAProxy(t, "127.0.0.1", func(bind string) string { return foreignConfig(t, "haproxy.cfg", bind, app) })
	}},
}

// buildForeign builds the program of the module.
func buildForeign(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "foreign")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", foreignFolder, "-o", path, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// open starts the limiter until the test ends, and opens it by its target file.
func (f foreign) open(t testing.TB, program string) *target.Target {
	t.Helper()
	library := f.name
	if f.proxy != nil {
		library = "plain"
	}
	url := startForeign(t, program, library)
	if f.proxy != nil {
		url = "http://" + f.proxy(t, strings.TrimPrefix(url, "http://"))
	}
	file, err := target.ReadFile(filepath.Join(foreignFolder, f.name+".yaml"))
	require.NoError(t, err)
	file.BaseURLs = []string{url}
	keys, err := os.ReadFile(filepath.Join(foreignFolder, "keys.csv"))
	require.NoError(t, err)
	mine, err := target.ReadKeys(proxytest.File(t, "keys.csv", string(keys))) // in a checkout anybody may read them
	require.NoError(t, err)
	tgt, err := target.Open(t.Context(), file, target.Options{Keys: mine})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tgt.Close()) })
	return tgt
}

// startForeign starts the program until the test ends, and returns its URL.
func startForeign(t testing.TB, program, library string) string {
	t.Helper()
	c := exec.Command(program, library, "-keys", filepath.Join(foreignFolder, "keys.csv"))
	c.Stderr = t.Output()
	lifeline, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		lifeline.Close()
		c.Wait() // it ends when its input does
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// foreignConfig is a proxy's configuration with the addresses filled in.
func foreignConfig(t testing.TB, name, listen, app string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(foreignFolder, name))
	require.NoError(t, err)
	_, config, _ := strings.Cut(string(text), "\n\n") // the remark at the top speaks of both
	return strings.NewReplacer("LISTEN", listen, "BACKEND", app).Replace(config)
}
