//go:build unix

package lean

import (
	"errors"
	"syscall"
)

// lookAt reads without waiting. Whatever comes ends the connection's use, so
// nothing is lost by taking it off.
func (c *conn) lookAt(fd uintptr) bool {
	var one [1]byte
	n, err := syscall.Read(int(fd), one[:])
	c.still = n < 0 && (errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR))
	return true
}
