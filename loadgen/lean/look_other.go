//go:build !unix

package lean

// lookAt sees nothing here; what came meanwhile shows when the answer is read.
func (c *conn) lookAt(uintptr) bool {
	c.still = true
	return true
}
