package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// form is one of the files that a result is left in.
type form struct {
	name  string
	write func(io.Writer, record.Conformance) error
}

// forms lists all of them, the one for people first.
func forms() []form {
	return []form{
		{"index.html", render.ConformanceHTML},
		{"conformance.json", func(w io.Writer, c record.Conformance) error { return printJSON(w, c) }},
		{"junit.xml", render.JUnit},
		{"summary.md", render.ConformanceMarkdown},
		{"badge.json", render.Badge},
	}
}

// trialSize is about as much as a result takes.
const trialSize = 512 << 10

// claim makes a folder ready for a result, before anything is sent: that something
// can be written shows now and not after minutes, and what an earlier run has left
// is gone, since this one may end without a result.
func claim(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range forms() {
		if path := filepath.Join(dir, f.name); isFolder(path) {
			return fmt.Errorf("%s: a folder; accepted: a place where a file can be written", path)
		}
	}
	trial := filepath.Join(dir, ".trial")
	if err := replaceFile(trial, make([]byte, trialSize)); err != nil {
		return err
	}
	return errors.Join(os.Remove(trial), discard(dir))
}

func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// discard removes the files of a result.
func discard(dir string) (err error) {
	for _, f := range forms() {
		if gone := os.Remove(filepath.Join(dir, f.name)); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// leave writes a result into a folder in every form there is, and says where; or
// none of them is there.
func leave(dir string, c record.Conformance) (where string, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, discard(dir))
		}
	}()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	var names []string
	for _, f := range forms() {
		var b bytes.Buffer
		if err := f.write(&b, c); err != nil {
			return "", err
		}
		if err := replaceFile(filepath.Join(dir, f.name), b.Bytes()); err != nil {
			return "", err
		}
		names = append(names, f.name)
	}
	return fmt.Sprintf("%s  (%s beside it)", filepath.Join(dir, names[0]), strings.Join(names[1:], ", ")), nil
}
