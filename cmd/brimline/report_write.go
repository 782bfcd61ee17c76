package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// write leaves the files and says the verdicts, or prints the JSON.
func (f reportFlags) write(w io.Writer, r record.Report) error {
	var asJSON, asHTML, asMarkdown, asJUnit bytes.Buffer
	out := json.NewEncoder(&asJSON)
	out.SetIndent("", "  ")
	err := errors.Join(out.Encode(r), render.ReportHTML(&asHTML, r), render.ReportMarkdown(&asMarkdown, r), render.ReportJUnit(&asJUnit, r))
	if err != nil {
		return err
	}
	if f.out != "" {
		charts, err := render.ReportCSVs(r)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(f.out, 0o755); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		for _, file := range append(charts, render.File{Name: "report.json", Data: asJSON.Bytes()},
			render.File{Name: "report.md", Data: asMarkdown.Bytes()}, render.File{Name: "report.html", Data: asHTML.Bytes()}) {
			if err := replaceFile(filepath.Join(f.out, file.Name), file.Data); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
		}
	}
	if f.junit != "" {
		if err := replaceFile(f.junit, asJUnit.Bytes()); err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
	}
	if f.json {
		_, err := w.Write(asJSON.Bytes())
		return err
	}
	if err := render.Report(w, r); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\nreport: %s  (report.json, report.md and a CSV for each chart beside it)\n", filepath.Join(f.out, "report.html"))
	return err
}

// replaceFile writes a file whole or not at all, over an earlier one.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
