//go:build !unix

package target

import "os/exec"

// Where there are no groups of processes a server's children are its own to end.

func ownGroup(*exec.Cmd)    {}
func terminate(c *exec.Cmd) { c.Process.Kill() }
func kill(c *exec.Cmd)      { c.Process.Kill() }
