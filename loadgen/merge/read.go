package merge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/invoicespec/brimline/reports/record"
)

// Read reads run folders, and folders of run folders. One that cannot be read
// whole is an error that names it: a run is never merged in part.
func Read(folders ...string) ([]Part, error) {
	var parts []Part
	for _, folder := range folders {
		r, err := record.ReadRun(folder)
		if err == nil {
			parts = append(parts, Part{folder, r})
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		below, err := within(folder)
		if err != nil {
			return nil, err
		}
		parts = append(parts, below...)
	}
	return parts, nil
}

// within reads the run folders in a folder. One without a run in it is an error:
// a shard that was about to write is not one that was never there.
func within(folder string) ([]Part, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var parts []Part
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(folder, e.Name())
		r, err := record.ReadRun(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: no %s in it: it was left unfinished; take it away if it is not to count", path, record.RunFile)
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, Part{path, r})
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%s: neither a run nor a folder of runs", folder)
	}
	return parts, nil
}
