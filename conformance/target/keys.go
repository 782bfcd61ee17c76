package target

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/internal/files"
)

// Bounds of the files that a target file names.
const (
	maxKeysFile  = 16 << 20
	maxTokenFile = 4 << 10
	maxBody      = 1 << 20
)

var keysHeader = []string{"user", "plan", "key"}

// ReadKeys reads a keys file: CSV with the header user,plan,key and a line for
// each key. Nobody but its owner may be able to read it.
func ReadKeys(path string) ([]Key, error) {
	data, err := readSecret(path, maxKeysFile)
	if err != nil {
		return nil, err
	}
	return parseKeys(path, data)
}

func parseKeys(path string, data []byte) ([]Key, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	r.FieldsPerRecord = len(keysHeader)
	refuse := func(line int, problem, accepted string) error {
		return fmt.Errorf("%s:%d: %s; accepted: %s", path, line, problem, accepted)
	}
	var keys []Key
	plans, seen := map[string]string{}, map[string]int{}
	for first := true; ; first = false {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if pe := (*csv.ParseError)(nil); errors.As(err, &pe) {
			return nil, refuse(pe.Line, pe.Err.Error(), strings.Join(keysHeader, ",")) // never the line itself
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		line, _ := r.FieldPos(0)
		if first {
			if !slices.Equal(record, keysHeader) {
				return nil, refuse(line, "not the header of a keys file", strings.Join(keysHeader, ","))
			}
			continue
		}
		k := Key{User: record[0], Plan: record[1], Secret: NewSecret(record[2]), From: fmt.Sprintf("%s:%d", filepath.Base(path), line)}
		switch plan, known := plans[k.User]; {
		case k.User == "" || k.Plan == "":
			return nil, refuse(line, "a user or plan without a name", strings.Join(keysHeader, ","))
		case !isTarget(record[2]) || len(record[2]) > 4096:
			return nil, refuse(line, "no key that could be sent", "a key of up to 4096 characters without spaces")
		case seen[record[2]] > 0:
			return nil, refuse(line, fmt.Sprintf("the key of line %d again", seen[record[2]]), "each key once")
		case known && plan != k.Plan:
			return nil, refuse(line, fmt.Sprintf("user %q is on plan %q as well as %q", k.User, plan, k.Plan), "one plan a user")
		}
		plans[k.User], seen[record[2]] = k.Plan, line
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: no keys; accepted: lines of %s below that header", path, strings.Join(keysHeader, ","))
	}
	return keys, nil
}

func encodeKeys(keys []Key) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(keysHeader) // a buffer takes everything
	for _, k := range keys {
		_ = w.Write([]string{k.User, k.Plan, k.Secret.Reveal()})
	}
	w.Flush()
	return b.Bytes()
}

// readToken reads a file that holds a token and nothing else.
func readToken(path string) (Secret, error) {
	data, err := readSecret(path, maxTokenFile)
	if err != nil {
		return Secret{}, err
	}
	token := strings.TrimSpace(string(data))
	if !isTarget(token) {
		return Secret{}, fmt.Errorf("%s: no token; accepted: one line that is a token", path)
	}
	return NewSecret(token), nil
}

// readSecret reads a file that nobody but its owner may read.
func readSecret(path string, most int64) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fileError(path, err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: a folder; accepted: a file", path)
	}
	if mode := info.Mode().Perm(); !kept(info) {
		return nil, fmt.Errorf("%s: mode %04o lets others read it; accepted: 0600 (chmod 600 %s)", path, mode, path)
	}
	return readBounded(path, f, most)
}

func readBounded(path string, r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fileError(path, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s: too large; accepted: at most %d bytes", path, most)
	}
	return data, nil
}

func fileError(path string, err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err // the path comes first anyway
	}
	return fmt.Errorf("%s: %w", path, err)
}

// body is what an operation sends.
func (f File) body(o Operation) ([]byte, error) {
	if o.BodyFile == "" {
		return []byte(o.Body), nil
	}
	path := f.in(o.BodyFile)
	r, err := files.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer r.Close()
	return readBounded(path, r, maxBody)
}
