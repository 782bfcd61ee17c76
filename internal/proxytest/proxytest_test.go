package proxytest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/internal/proxytest"
)

// victim makes the test binary start both proxies, say where, and wait to be killed.
const victim = "PROXYTEST_VICTIM"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func nginx(t *testing.T, host, upstream string) string {
	return proxytest.Nginx(t, host, func(listen string) string {
		return fmt.Sprintf("server { listen %s; location / { proxy_pass http://%s; } }", listen, upstream)
	})
}

func haproxy(t *testing.T, host, upstream string) string {
	return proxytest.HAProxy(t, host, func(bind string) string {
		return fmt.Sprintf(`
defaults
  mode http
  timeout connect 10s
  timeout client 10s
  timeout server 10s
  retries 0
listen all
  bind %s
  server one %s
`, bind, upstream)
	})
}

func TestProxiesForward(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "asked for "+r.URL.Path)
	}))
	defer upstream.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for name, start := range map[string]func(*testing.T, string, string) string{"nginx": nginx, "haproxy": haproxy} {
		t.Run(name, func(t *testing.T) {
			addr := start(t, "127.0.0.1", upstream.Listener.Addr().String())
			for range 3 {
				resp, err := client.Get("http://" + addr + "/a/path")
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, "asked for /a/path", string(body))
			}
		})
	}
}

func TestProxiesEndWithTheirTest(t *testing.T) {
	var addrs []string
	t.Run("of its own", func(t *testing.T) {
		addrs = append(addrs, nginx(t, "127.0.0.1", "127.0.0.1:1"), haproxy(t, "127.0.0.1", "127.0.0.1:1"))
		for _, addr := range addrs {
			c, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			require.NoError(t, c.Close())
		}
	})
	for _, addr := range addrs {
		_, err := net.Dial("tcp", addr)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
}

func TestVictim(t *testing.T) {
	if os.Getenv(victim) == "" {
		t.Skip("a helper of TestNothingStaysBehindAKilledTest")
	}
	for _, start := range []func(*testing.T, string, string) string{nginx, haproxy} {
		fmt.Println(start(t, "127.0.0.1", "127.0.0.1:1"))
	}
	select {}
}

func TestNothingStaysBehindAKilledTest(t *testing.T) {
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestVictim$")
	c.Env = append(os.Environ(), victim+"=1", "TMPDIR="+t.TempDir())
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines := bufio.NewScanner(out)
	var addrs []string
	for range 2 {
		require.True(t, lines.Scan())
		addrs = append(addrs, lines.Text())
		answer(t, lines.Text())
	}
	require.NoError(t, c.Process.Signal(syscall.SIGKILL))
	require.Error(t, c.Wait())
	for _, addr := range addrs {
		require.Eventually(t, func() bool {
			c, err := net.Dial("tcp", addr)
			if err == nil {
				c.Close()
			}
			return err != nil
		}, 30*time.Second, 10*time.Millisecond, "%s is gone", addr)
	}
}

// answer returns once the proxy itself has answered: with a failure, since there
// is nothing behind it.
func answer(t *testing.T, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
	require.NoError(t, err)
	status, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.True(t, strings.Contains(status, "502") || strings.Contains(status, "503"), status)
}
