package accesslog

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/internal/strictyaml"
	"github.com/invoicespec/brimline/reports/record"
)

// Mapping says how to read lines of CSV or JSON of which nothing is known: which
// field is what. It is made by [ReadMapping].
type Mapping struct {
	Lines     string          `yaml:"lines"`               // csv, tsv or json
	Separator string          `yaml:"separator,omitempty"` // of csv: a comma unless it says otherwise
	Time      MappedTime      `yaml:"time"`
	Client    string          `yaml:"client,omitempty"` // the field with the address
	Forwarded string          `yaml:"forwarded,omitempty"`
	User      string          `yaml:"user,omitempty"` // whose bucket it is; in place of client
	Status    string          `yaml:"status,omitempty"`
	Duration  *MappedDuration `yaml:"duration,omitempty"`
	Method    string          `yaml:"method,omitempty"`
	Path      string          `yaml:"path,omitempty"`
	Code      string          `yaml:"error-code,omitempty"`

	zone *time.Location
}

// MappedTime is the time of an entry.
type MappedTime struct {
	Field  string `yaml:"field"`
	Is     string `yaml:"is"`               // received or finished
	Format string `yaml:"format,omitempty"` // of [timeFormats], or a layout of Go's
	Zone   string `yaml:"zone,omitempty"`   // of a time that names none, such as Europe/Berlin
}

// MappedDuration is how long an entry's request took.
type MappedDuration struct {
	Field string `yaml:"field"`
	Unit  string `yaml:"unit"`
}

// The lines and times that a mapping may name.
const (
	csvLines, tsvLines, jsonLines = "csv", "tsv", "json"

	rfc3339, clfTime               = "rfc3339", "clf"
	unix, unixMS, unixUS, unixNano = "unix", "unix-ms", "unix-us", "unix-ns"
)

const timeFormats = "rfc3339, clf, unix, unix-ms, unix-us, unix-ns, or a layout such as 2006-01-02 15:04:05"

// ReadMapping reads a mapping. Its error names file, line, key and what is
// accepted.
func ReadMapping(path string) (*Mapping, error) {
	var m Mapping
	doc, err := strictyaml.Read(path, &m)
	if err != nil {
		return nil, err
	}
	return m.checked(doc)
}

// ParseMapping is [ReadMapping] for a mapping in memory; file is what errors call it.
func ParseMapping(file string, data []byte) (*Mapping, error) {
	var m Mapping
	doc, err := strictyaml.Parse(file, data, &m)
	if err != nil {
		return nil, err
	}
	return m.checked(doc)
}

func (m *Mapping) checked(doc *strictyaml.Document) (*Mapping, error) {
	switch m.Lines {
	case csvLines, tsvLines, jsonLines:
	default:
		return nil, doc.Refuse("lines", fmt.Sprintf("got %q", m.Lines), "csv, tsv, json")
	}
	if m.Separator != "" && (m.Lines != csvLines || len(m.Separator) != 1 || strings.ContainsAny(m.Separator, "\"\r\n")) {
		return nil, doc.Refuse("separator", "it is for csv alone, and one character of ASCII that is no quote", ", or ; or | for example")
	}
	if m.Time.Is != string(record.StampReceived) && m.Time.Is != string(record.StampFinished) {
		return nil, doc.Refuse("time.is", fmt.Sprintf("got %q", m.Time.Is), "received, finished: what the time means")
	}
	var u Unit
	if d := m.Duration; d != nil && u.Set(d.Unit) != nil {
		return nil, doc.Refuse("duration.unit", fmt.Sprintf("got %q", d.Unit), "s, ms, us, ns")
	}
	if m.Client == "" && m.User == "" {
		return nil, doc.Refuse("client", "neither client nor user is given: nobody would be told from anybody", "the field with the client's address, or that with the user")
	}
	if m.Method == "" && m.Path != "" {
		return nil, doc.Refuse("method", "path is given, and the method is not", "the field with the method")
	}
	m.zone = time.UTC
	if m.Time.Zone != "" {
		zone, err := time.LoadLocation(m.Time.Zone)
		if err != nil || m.Time.Zone == "Local" {
			return nil, doc.Refuse("time.zone", fmt.Sprintf("%q is no zone that is known", m.Time.Zone), "a name such as UTC or Europe/Berlin")
		}
		m.zone = zone
	}
	switch m.Time.Format {
	case "", rfc3339, clfTime, unix, unixMS, unixUS, unixNano:
	default: // a layout: it must tell a time that it writes itself
		probe := time.Date(2026, 11, 22, 13, 14, 15, 0, time.UTC)
		back, err := time.Parse(m.Time.Format, probe.Format(m.Time.Format))
		if err != nil || back.Year() != 2026 || back.YearDay() != probe.YearDay() || back.Hour() != 13 || back.Minute() != 14 {
			return nil, doc.Refuse("time.format", fmt.Sprintf("%q tells no day and time", m.Time.Format), timeFormats)
		}
	}
	return m, nil
}

// CSV reports whether the first line names the fields.
func (m *Mapping) CSV() bool { return m.Lines != jsonLines }

func (m *Mapping) stamp() record.LogStamp { return record.LogStamp(m.Time.Is) }

// fields are the fields that every line has to have.
func (m *Mapping) fields() (list []string) {
	for _, f := range []string{m.Time.Field, m.Client, m.Forwarded, m.User, m.Status, m.Method, m.Path, m.Code} {
		if f != "" {
			list = append(list, f)
		}
	}
	if m.Duration != nil {
		list = append(list, m.Duration.Field)
	}
	return list
}

// is tells a line that the mapping fits: the heading with every field, or an
// object with the time.
func (m *Mapping) is(text []byte) bool {
	if !m.CSV() {
		o, ok := parseObject(text)
		return ok && o.has(m.Time.Field)
	}
	have, ok := m.split(text)
	if !ok {
		return false
	}
	for _, f := range m.fields() {
		if !slices.Contains(have, f) {
			return false
		}
	}
	return true
}

// split splits a line of CSV.
func (m *Mapping) split(text []byte) ([]string, bool) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	switch {
	case m.Lines == tsvLines:
		r.Comma = '\t'
	case m.Separator != "":
		r.Comma = rune(m.Separator[0])
	}
	list, err := r.Read()
	return list, err == nil
}

func (m *Mapping) dialect(heading []byte, trusted []netip.Prefix) dialect {
	d := mapped{Mapping: m, trusted: trusted}
	if m.CSV() {
		d.place = map[string]int{}
		names, _ := m.split(heading)
		for i, name := range names {
			if _, ok := d.place[name]; !ok {
				d.place[name] = i
			}
		}
		d.width = len(names)
	}
	return d
}

// mapped reads lines by a mapping.
type mapped struct {
	*Mapping
	trusted []netip.Prefix
	place   map[string]int // of the fields, in CSV
	width   int
}

func (d mapped) read(text []byte, l *line) reason {
	var field func(name string) string
	if d.CSV() {
		list, ok := d.split(text)
		if !ok || len(list) != d.width {
			return badFields
		}
		field = func(name string) string {
			if i, ok := d.place[name]; ok && list[i] != "-" {
				return list[i]
			}
			return ""
		}
	} else {
		o, ok := parseObject(text)
		if !ok {
			return badJSON
		}
		field = func(name string) string {
			if name == "" {
				return ""
			}
			return o.text(name)
		}
	}
	if !d.time(field(d.Time.Field), l) {
		return badTime
	}
	if !l.setStatus(field(d.Status)) {
		return truncated
	}
	if d.Duration != nil {
		if text := field(d.Duration.Field); text != "" {
			l.hold = Unit(d.Duration.Unit).parse([]byte(text))
		}
	}
	if user := field(d.User); d.User != "" {
		if user == "" || len(user) > maxName {
			return noClient
		}
		l.client, l.named = []byte(user), true
	} else {
		l.client, l.list = clientName(field(d.Forwarded), field(d.Client), d.trusted)
	}
	switch {
	case d.Path != "":
		l.request(field(d.Method), field(d.Path))
	case d.Method != "":
		l.request(field(d.Method), "/")
	default:
		l.request("-", "/")
	}
	l.code = []byte(field(d.Code))
	return kept
}

// time reads the time of an entry.
func (d mapped) time(text string, l *line) bool {
	scale := map[string]float64{unixMS: 1e3, unixUS: 1, unixNano: 1e-3}
	switch f := d.Time.Format; f {
	case "", rfc3339, clfTime, unix:
		return l.at(text)
	case unixMS, unixUS, unixNano:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0 && x*scale[f] < 253402300800e6) {
			return false
		}
		return l.instant(time.UnixMicro(int64(x * scale[f])).UTC())
	default:
		t, err := time.ParseInLocation(f, text, d.zone)
		return err == nil && l.instant(t)
	}
}
