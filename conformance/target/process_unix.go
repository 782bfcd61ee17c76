//go:build unix

package target

import (
	"os/exec"
	"syscall"
)

func terminate(c *exec.Cmd) { syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
func kill(c *exec.Cmd)      { syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
