package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/loadgen/attack"
	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/loadgen/spool"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reports/record"
)

// exports are the files beside a record with a line for each request.
type exports struct {
	rows, vegeta bool
	dir          string
	spools       []*spool.Spool
}

// open makes the files that were asked for. The caller closes or abandons them.
func (e *exports) open(dir string, members []traffic.Member, site attack.Site, started func() time.Time) error {
	e.dir = dir
	who := func(user int) (string, string) { return members[user].Name, members[user].Plan }
	encodings := map[string]spool.Encode{}
	if e.rows {
		rows, err := spool.Rows(who, started)
		if err != nil {
			return err
		}
		encodings[record.RowsFile] = rows
	}
	if e.vegeta {
		encodings[spool.VegetaFile] = spool.Vegeta(who, asked(site), started)
	}
	for _, name := range []string{record.RowsFile, spool.VegetaFile} {
		encode, ok := encodings[name]
		if !ok {
			continue
		}
		s, err := spool.Create(filepath.Join(dir, name), encode)
		if err != nil {
			e.close()
			return fmt.Errorf("--out: %s: %w", dir, err)
		}
		e.spools = append(e.spools, s)
	}
	return nil
}

// asked is what operations send, without what may be secret in it.
func asked(site attack.Site) map[string]spool.Asked {
	list := map[string]spool.Asked{}
	for operation, r := range site.Requests {
		path, _, _ := strings.Cut(r.Path, "?")
		a := spool.Asked{Method: r.Method, URL: path}
		if u, err := url.Parse(site.BaseURLs[0]); err == nil {
			a.URL = u.Scheme + "://" + u.Host + path
		}
		list[operation.String()] = a
	}
	return list
}

// each tells all files of an answer; nil: there are none.
func (e *exports) each() func(measure.Answer) {
	if !e.rows && !e.vegeta {
		return nil
	}
	return func(a measure.Answer) {
		for _, s := range e.spools {
			s.Add(a)
		}
	}
}

// close ends the files and says what became of them.
func (e *exports) close() (list []record.RunExport) {
	for _, s := range e.spools {
		list = append(list, s.Close())
	}
	e.spools = nil
	return list
}

// abandon ends what is still open, and takes away a file without a row, which
// would be in the way of the next run.
func (e *exports) abandon() {
	for _, x := range e.close() {
		if x.Rows == 0 {
			os.Remove(filepath.Join(e.dir, x.File))
		}
	}
}

// lost says of each file what is missing from it.
func lost(list []record.RunExport) (limits []string) {
	for _, e := range list {
		switch {
		case e.Error != "":
			limits = append(limits, fmt.Sprintf("%s ends early (%s): %s of %s are in it.", e.File, e.Error, figure.Grouped(e.Rows), figure.Count(e.Rows+e.Lost, "row")))
		case e.Lost > 0:
			limits = append(limits, fmt.Sprintf("%s lacks %s of %s: the disk was slower than the run.", e.File, figure.Grouped(e.Lost), figure.Count(e.Rows+e.Lost, "row")))
		}
	}
	return limits
}
