//go:build !unix

package target

import "io/fs"

// kept reports whether a file is read by its owner alone.
func kept(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }
