//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// resizes tells when a terminal has another size. The caller ends it.
func resizes() (_ <-chan os.Signal, end func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
