package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/server"
)

// pty is a terminal of this system's: what a program sees, and what a person has.
type pty struct {
	*os.File // the program's side

	mu   sync.Mutex
	said strings.Builder
}

func openPty(t *testing.T, columns, rows int) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	n, unlock := uint32(0), int32(0)
	ioctl(t, master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	ioctl(t, master, syscall.TIOCGPTN, unsafe.Pointer(&n))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	p := &pty{File: slave}
	p.resize(t, columns, rows)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			p.mu.Lock()
			p.said.Write(buffer[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		slave.Close() // the reader meets its end
		<-done
		master.Close()
	})
	return p
}

func ioctl(t *testing.T, f *os.File, what uintptr, with unsafe.Pointer) {
	t.Helper()
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), what, uintptr(with))
	require.Zero(t, errno)
}

func (p *pty) resize(t *testing.T, columns, rows int) {
	t.Helper()
	size := [4]uint16{uint16(rows), uint16(columns)}
	ioctl(t, p.File, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

func (p *pty) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// TestLoadOnARealTerminal: a run draws itself there, draws itself anew when told
// of another size, and leaves nothing but its table, in the scrollback.
func TestLoadOnARealTerminal(t *testing.T) {
	site := openLoadSite(t, server.Config{Users: 5}, nil)
	p := openPty(t, 100, 30)
	ended := make(chan struct{})
	var code int
	go func() {
		defer close(ended)
		code = site.loadTo(t.Context(), t, strings.Replace(shortLoad, "2s", "4s", 1), p.File, p.File)
	}()
	blocks := func() int { return strings.Count(p.text(), " / 0:04  ") }
	require.Eventually(t, func() bool { return blocks() >= 2 }, time.Minute, time.Millisecond)
	p.resize(t, 12, 3) // tiny
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGWINCH))
	require.Eventually(t, func() bool { return strings.Contains(p.text(), "\x1b[J0:0") }, time.Minute, time.Millisecond)
	p.resize(t, 100, 30)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGWINCH))
	<-ended
	require.Contains(t, []int{exitHolds, exitCannotTell}, code)
	require.Eventually(t, func() bool { return strings.Contains(p.text(), "run: ") }, time.Minute, time.Millisecond)

	screen := &paper{columns: 100, rows: 30}
	_, err := io.WriteString(screen, p.text())
	require.NoError(t, err)
	left := strings.Join(screen.lines, "\n")
	require.NotContains(t, left, " / 0:04", "the live view is gone")
	require.Equal(t, 1, strings.Count(left, "429 conc."), "the table is there once:\n%s", left)
	require.Contains(t, left, "what limits this")
}
