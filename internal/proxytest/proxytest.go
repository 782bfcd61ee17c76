// Package proxytest runs reverse proxies for tests: nginx and HAProxy, as they
// are installed, on loopback, with the configuration that a test gives them.
//
// Most callers want [Nginx] or [HAProxy]; [File] puts a file, such as a
// certificate, where a configuration can name it.
//
// A proxy listens on a socket that is handed to it, so that there is no port to
// lose to somebody else and none to wait for. Nothing stays behind: a guard
// process ends the proxy when the test ends, and also when the test process is
// gone, however it went. What a proxy says is in the log of a test that fails.
package proxytest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// Nginx starts nginx until the test ends, and returns the address it listens on,
// a free port of host, which is on loopback. http is the content of the http
// block, given what to write after "listen".
func Nginx(t testing.TB, host string, http func(listen string) string) (addr string) {
	t.Helper()
	l := listen(t, host)
	addr = l.Addr().String()
	dir := t.TempDir()
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // others may not enter the test's directory
	}
	file := File(t, "nginx.conf", fmt.Sprintf(`daemon off; worker_processes 1; error_log stderr warn; pid %[1]s/pid; %[2]s
events {}
http {
access_log off;
client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
scgi_temp_path %[1]s/scgi; uwsgi_temp_path %[1]s/uwsgi;
%[3]s
}
`, dir, user, http(addr)))
	run(t, l, "nginx", "-p", dir, "-e", "stderr", "-c", file)
	return addr
}

// HAProxy starts HAProxy until the test ends, and returns the address it listens
// on, a free port of host, which is on loopback. config is the configuration,
// given what to write after "bind".
func HAProxy(t testing.TB, host string, config func(bind string) string) (addr string) {
	t.Helper()
	l := listen(t, host)
	run(t, l, "haproxy", "-db", "-f", File(t, "haproxy.cfg", config("fd@3")))
	return l.Addr().String()
}

// File writes a file that lasts as long as the test, and returns its path.
func File(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func listen(t testing.TB, host string) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(host)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// guard starts a proxy, lets it have the socket alone, and waits for the end of
// its own input, which a test process that dies brings about as well. Both
// proxies take SIGTERM for "at once", and nginx then kills workers that linger.
const guard = `"$@" </dev/null & exec 3<&-; read -r _; kill -TERM $!; wait $!`

// run starts a program that takes connections from l, its descriptor 3.
func run(t testing.TB, l *net.TCPListener, program string, args ...string) {
	t.Helper()
	path, err := find(program)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	var said output
	c := exec.Command("/bin/sh", append([]string{"-c", guard, "guard", path}, args...)...)
	// NGINX is how nginx inherits sockets when it replaces itself. Nothing of the
	// caller's environment steers a proxy.
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "NGINX=3;"}
	c.ExtraFiles = []*os.File{socket}
	c.Stdout, c.Stderr = &said, &said
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt at the terminal is not for it
	lifeline, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end(lifeline, c)
		if t.Failed() {
			t.Logf("%s %v said:\n%s", program, args, said.text())
		}
	})
	if err := handOver(l, socket); err != nil {
		t.Fatal(err)
	}
}

// end returns when no process of the proxy is left: each holds the other end of
// the pipes that Wait reads from.
func end(lifeline io.Closer, c *exec.Cmd) {
	lifeline.Close()
	c.Wait() // how a proxy ends is not what a test is about
}

// handOver lets the proxy have the socket alone, so that clients of one that has
// died are refused. Starting a process makes its descriptors blocking, and nginx
// expects to inherit one that is not.
func handOver(l *net.TCPListener, socket *os.File) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) { set = syscall.SetNonblock(int(fd), true) })
	for _, e := range []error{set, socket.Close(), l.Close()} {
		if err == nil {
			err = e
		}
	}
	return err
}

// find is a program's path; Debian keeps those of services out of most PATHs.
func find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	if path, err := exec.LookPath("/usr/sbin/" + program); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("this test needs %s; install it and run it again, on Debian: apt-get update && apt-get install -y %[1]s", program)
}

// output is what a proxy has said so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
