package roster

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/invoicespec/brimline/internal/files"
)

// Pseudonyms stand for users wherever a report tells of one.
type Pseudonyms struct {
	Names []string // by user
	How   string   // in words, for a report
}

// Ranks are pseudonyms by attempts: u0001 has most of them. They hold for one
// report.
func Ranks(attempts []int64) Pseudonyms {
	order := make([]int, len(attempts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(attempts[b], attempts[a]) })
	p := Pseudonyms{Names: make([]string, len(attempts)), How: "ranks by attempts, u0001 has most; another report may give them to others"}
	for rank, i := range order {
		p.Names[i] = fmt.Sprintf("u%04d", rank+1)
	}
	return p
}

// Key makes pseudonyms that stay the same from report to report and that nobody
// without it can lead back to a user.
type Key struct{ secret []byte }

// Bounds of a key, in bytes.
const (
	minKey = 32
	maxKey = 4096
)

// ReadKey reads a key from a file that nobody but its owner may read.
func ReadKey(path string) (Key, error) {
	f, err := files.Open(path)
	if err != nil {
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
			err = pe.Err
		}
		return Key{}, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Key{}, fmt.Errorf("%s: %w", path, err)
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		return Key{}, fmt.Errorf("%s: others than its owner may use it (mode %04o); accepted: mode 0600 or 0400", path, info.Mode().Perm())
	}
	secret, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return Key{}, fmt.Errorf("%s: %w", path, err)
	}
	if len(secret) < minKey || len(secret) > maxKey {
		return Key{}, fmt.Errorf("%s: %d bytes; accepted: from %d to %d random bytes, such as of: head -c 32 /dev/urandom", path, len(secret), minKey, maxKey)
	}
	return Key{secret: secret}, nil
}

// digits of a keyed pseudonym, in hexadecimal: 64 bits.
const digits = 16

// Pseudonyms are the keyed pseudonyms of users. Two users whose pseudonyms are
// the same are refused.
func (k Key) Pseudonyms(ids []string) (Pseudonyms, error) {
	p := Pseudonyms{Names: make([]string, len(ids)), How: "by a key, the same from report to report"}
	whose := make(map[string]string, len(ids))
	for i, id := range ids {
		mac := hmac.New(sha256.New, k.secret)
		mac.Write([]byte(id))
		name := "u" + hex.EncodeToString(mac.Sum(nil))[:digits]
		if other, taken := whose[name]; taken && other != id {
			return Pseudonyms{}, errors.New("two users have the same pseudonym under this key; accepted: another key")
		}
		whose[name], p.Names[i] = id, name
	}
	return p, nil
}
