// Package files opens files that somebody names to be read: regular ones alone.
// A pipe or a device would be waited for, perhaps for ever, and no signal would
// end that. All callers want [Open].
package files

import (
	"io/fs"
	"os"
	"syscall"
)

// Open opens the file at path. Its errors are of type [*fs.PathError]; what is
// there and is no file is said to be what it is.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe without a writer opens
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: notFile(info.Mode())}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// notFile is what is there in place of a file.
type notFile fs.FileMode

func (m notFile) Error() string {
	what := "no file"
	switch mode := fs.FileMode(m); {
	case mode.IsDir():
		what = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return what + "; accepted: a file"
}
