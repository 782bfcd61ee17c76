package pgtest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// settings spare a server what a test does not need: the network, and safety
// from power cuts. What is committed still outlives an immediate stop.
const settings = `
listen_addresses = ''
max_connections = 200
shared_buffers = 32MB
fsync = off
full_page_writes = off
timezone = 'UTC'
`

// guard waits for the end of its input, which a test process that dies brings
// about as well, then stops the server, also one that is paused, and removes
// its directory, to which a program that was just starting may still be writing.
const guard = `
read -r _
if [ -f "$1/data/postmaster.pid" ]; then
  read -r pid <"$1/data/postmaster.pid"
  kill -CONT "$pid" $(cat "/proc/$pid/task/$pid/children")
  "$2/pg_ctl" -D "$1/data" -m immediate -w stop
fi
until rm -rf "$1"; do sleep 0.1; done
`

// Server is a PostgreSQL server of one test's own.
type Server struct {
	dir      string
	programs string // the directory of the installed binaries
	account  *syscall.Credential
	guard    *exec.Cmd
	lifeline io.Closer // the guard's input
}

func open() (*Server, error) {
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	account, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "brimline-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, programs: programs, account: account}
	if account != nil {
		if err := os.Chown(dir, int(account.Uid), int(account.Gid)); err != nil {
			return nil, errors.Join(err, os.Remove(dir))
		}
	}
	if err := s.startGuard(); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	if err := s.initialise(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *Server) startGuard() error {
	s.guard = s.command("/bin/sh", "-c", guard, "guard", s.dir, s.programs)
	s.guard.SysProcAttr.Setsid = true // an interrupt at the terminal is not for it
	input, err := s.guard.StdinPipe()
	if err != nil {
		return err
	}
	s.lifeline = input
	return s.guard.Start()
}

func (s *Server) initialise() error {
	if err := s.run("initdb", "-D", s.data(), "-U", superuser, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%sunix_socket_directories = '%s'\n", settings, s.dir)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.start()
}

func (s *Server) start() error {
	log := filepath.Join(s.dir, "log")
	err := s.run("pg_ctl", "-D", s.data(), "-l", log, "-s", "-w", "start")
	if err != nil {
		said, _ := os.ReadFile(log)
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

// close lets the guard end the server.
func (s *Server) close() error {
	s.lifeline.Close()
	return s.guard.Wait()
}

// Stop ends the server at once, as a crash would: every connection breaks.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := s.run("pg_ctl", "-D", s.data(), "-s", "-m", "immediate", "-w", "stop"); err != nil {
		t.Fatal(err)
	}
}

// Start starts the server again after a Stop, and returns once it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// Pause freezes the server: connections stay open and nothing answers.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP, "Tt")
}

// Resume ends a pause.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGCONT, "RSDI")
}

// signal reaches the server, then the processes that it has forked, and returns
// once each is in one of the states that follow; see proc(5).
func (s *Server) signal(t testing.TB, sig syscall.Signal, states string) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	parent, _, _ := strings.Cut(string(file), "\n")
	if err := signalled(parent, sig, states); err != nil {
		t.Fatal(err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%s/task/%[1]s/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(children)) {
		if err := signalled(pid, sig, states); err != nil {
			t.Fatal(err)
		}
	}
}

// signalled is content with a process that has ended meanwhile.
func signalled(pid string, sig syscall.Signal, states string) error {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	if err := syscall.Kill(n, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process %d: %w", n, err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			return nil
		}
		if err != nil {
			return err
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if strings.ContainsRune(states+"ZX", rune(after[0])) {
			return nil
		}
	}
	return fmt.Errorf("process %d has not followed %v in %v", n, sig, patience)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// command is a program in an environment that nothing of the caller's steers,
// in a directory that its user may enter.
func (s *Server) command(path string, args ...string) *exec.Cmd {
	c := exec.Command(path, args...)
	c.Dir = s.dir
	c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=" + s.dir}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.account}
	return c
}

func (s *Server) run(program string, args ...string) error {
	// Output goes by way of a file: a pipe would be inherited by the server and
	// never end.
	out, err := os.CreateTemp(s.dir, program)
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	c := s.command(filepath.Join(s.programs, program), args...)
	c.Stdout, c.Stderr = out, out
	if err := c.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w\n%s", c, err, said)
	}
	return nil
}

// findPrograms is the directory that has the server's programs: the one in PATH,
// else the newest that Debian's packages have installed.
func findPrograms() (string, error) {
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(installed, func(a, b string) int { return version(b) - version(a) })
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		installed = append(installed, strings.TrimSpace(string(out)))
	}
	for _, dir := range append(dirs, installed...) {
		if complete(dir) {
			return dir, nil
		}
	}
	return "", errors.New("this test needs PostgreSQL's programs (initdb, pg_ctl, postgres); install them and run it again, on Debian: apt-get update && apt-get install -y postgresql")
}

// version is the number in /usr/lib/postgresql/15/bin.
func version(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return n
}

func complete(dir string) bool {
	for _, program := range []string{"initdb", "pg_ctl", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, program)); err != nil {
			return false
		}
	}
	return true
}

// unprivileged is whom the server runs as; nil: whoever runs the test.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as")
}
