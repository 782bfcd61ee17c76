// Package account is who may ask: API keys, their form and digests, and the
// record that one store lookup returns for a key (AUTH-1, AUTH-2).
//
// Most callers want [ParseKey] and [Digester.Of]. A [Key] shows its text in one
// place alone, [Key.Reveal]; printed, logged or encoded it is masked.
package account

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"time"
)

// MaxKeyBytes is the longest text that is looked at as a key.
const MaxKeyBytes = 128

// secretLength is the random part of a new key: 32 characters of 62, 190 bits.
const secretLength = 32

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// keyWithin is a key, what is left of one, or several in a row, inside other text.
var keyWithin = regexp.MustCompile(`isk_([a-z0-9-]{1,32})_[0-9A-Za-z_]+`)

var keyForm = regexp.MustCompile(`^isk_([a-z0-9-]{1,32})_[0-9A-Za-z]{16,64}$`)

// ErrMalformedKey says that a text is no key. It never quotes the text.
var ErrMalformedKey = errors.New("malformed API key: want isk_PLAN_RANDOM")

// Key is an API key. The plan in it is a hint for its owner: what it may do is
// what the store says.
type Key struct{ text string }

// NewKey mints a key for a user of plan.
func NewKey(plan string) (Key, error) {
	secret := make([]byte, 0, secretLength)
	// A byte below 248 maps evenly to 62 characters; the others are thrown away.
	for chunk := [64]byte{}; len(secret) < secretLength; {
		rand.Read(chunk[:])
		for _, b := range chunk {
			if b < 248 && len(secret) < secretLength {
				secret = append(secret, base62[b%62])
			}
		}
	}
	return ParseKey("isk_" + plan + "_" + string(secret))
}

// ParseKey reads a key from its text.
func ParseKey(text string) (Key, error) {
	if len(text) > MaxKeyBytes || !keyForm.MatchString(text) {
		return Key{}, ErrMalformedKey
	}
	return Key{text: text}, nil
}

// Reveal is the text of the key, for handing it to its owner and nothing else.
func (k Key) Reveal() string { return k.text }

// MaskKeys is text with every key in it masked, for text that a client wrote.
func MaskKeys(text string) string { return keyWithin.ReplaceAllString(text, "isk_${1}_…") }

// String is the key with its secret part masked.
func (k Key) String() string {
	if m := keyForm.FindStringSubmatch(k.text); m != nil {
		return "isk_" + m[1] + "_…"
	}
	return "no key"
}

// Format masks the key whatever the verb.
func (k Key) Format(s fmt.State, _ rune) { io.WriteString(s, k.String()) }

// MarshalText masks the key in every encoding.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// LogValue masks the key in structured logs.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// shown is how much of the random part of a key its prefix shows.
const shown = 4

// Prefix is the beginning of the key, by which its owner tells it from others.
// What it leaves out is still too much to be guessed.
func (k Key) Prefix() string {
	m := keyForm.FindStringSubmatchIndex(k.text)
	if m == nil {
		return ""
	}
	return k.text[:m[3]+1+shown]
}

// KeyInfo is what a store knows of a key: not the key.
type KeyInfo struct {
	ID      string // names the key in an audit; opens nothing
	Prefix  string
	Created time.Time
	Revoked time.Time // zero: it is good
}

// Digest is what is stored of a key.
type Digest [sha256.Size]byte

// Digester makes digests with a secret of its own, so that a digest that leaks
// says nothing about the key and cannot be computed by anybody else.
type Digester struct{ secret []byte }

// NewDigester returns a digester with a random secret: its digests are good for
// one process.
func NewDigester() Digester {
	secret := make([]byte, sha256.Size)
	rand.Read(secret)
	return Digester{secret: secret}
}

// MinSecret is the least length of a secret for [DigesterFrom], in bytes.
const MinSecret = sha256.Size

// DigesterFrom returns a digester with a given secret, for digests that outlive
// the process.
func DigesterFrom(secret []byte) (Digester, error) {
	if len(secret) < MinSecret {
		return Digester{}, fmt.Errorf("a key secret of %d bytes: want %d or more", len(secret), MinSecret)
	}
	return Digester{secret: bytes.Clone(secret)}, nil
}

// Of is the digest of k: HMAC-SHA-256.
func (d Digester) Of(k Key) Digest {
	mac := hmac.New(sha256.New, d.secret)
	io.WriteString(mac, k.text)
	return Digest(mac.Sum(nil))
}
