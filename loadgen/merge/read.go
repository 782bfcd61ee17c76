package merge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/invoicespec/brimline/reports/record"
)

// Read reads run folders, and folders of run folders. One whose run cannot be read
// whole is an error that names it: a run is never merged in part. What lies in a
// folder of run folders and holds no run is left: a shard that ended before it
// could write, whose place another try took or which is missing.
func Read(folders ...string) (parts []Part, left []string, err error) {
	for _, folder := range folders {
		r, err := record.ReadRun(folder)
		if err == nil {
			parts = append(parts, Part{folder, r})
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		below, empty, err := within(folder)
		if err != nil {
			return nil, nil, err
		}
		parts, left = append(parts, below...), append(left, empty...)
	}
	return parts, left, nil
}

// within reads the run folders in a folder.
func within(folder string) (parts []Part, left []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(folder, e.Name())
		r, err := record.ReadRun(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			left = append(left, path)
		case err != nil:
			return nil, nil, err
		default:
			parts = append(parts, Part{path, r})
		}
	}
	if len(parts) == 0 {
		return nil, nil, fmt.Errorf("%s: neither a run nor a folder of runs", folder)
	}
	return parts, left, nil
}
