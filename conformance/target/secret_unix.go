//go:build unix

package target

import (
	"io/fs"
	"os"
	"syscall"
)

// kept reports whether a file is kept from others: read by its owner alone, or,
// where the system handed it to us, owned by root and readable by one group of
// ours. So Kubernetes mounts secrets for a process that is not root.
func kept(info fs.FileInfo) bool {
	owner := -1
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = int(s.Uid)
	}
	return keptBy(info.Mode().Perm(), owner, os.Geteuid())
}

func keptBy(mode fs.FileMode, owner, self int) bool {
	return mode&0o077 == 0 || mode&0o037 == 0 && owner == 0 && self != 0
}
