//go:build unix

package attack

import (
	"syscall"
	"time"
)

// cpuTime is what the process has computed, in user and system mode.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
