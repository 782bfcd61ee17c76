//go:build unix && !linux

package target

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the first of a group of processes, so that its
// children can be ended with it, and a Ctrl-C reaches us and not it.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
