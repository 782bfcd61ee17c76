//go:build unix

package machine

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

// DescriptorLimit is how many file descriptors the process may have open; 0: this
// system does not tell.
func DescriptorLimit() int64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || l.Cur > 1<<40 {
		return 0
	}
	return int64(l.Cur)
}
