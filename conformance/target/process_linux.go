package target

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the first of a group of processes, so that its
// children can be ended with it, and a Ctrl-C reaches us and not it. Should we be
// killed outright, it is as well.
func ownGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
