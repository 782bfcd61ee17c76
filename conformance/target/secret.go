package target

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strings"
)

// Secret is an API key or a token. However it is printed, logged or encoded, it
// shows no more than how it begins.
type Secret struct{ text string }

// NewSecret wraps a secret.
func NewSecret(text string) Secret { return Secret{text} }

// prefix is what tells kinds of keys apart and nothing more, such as isk_free_
// or sk_live_.
var prefix = regexp.MustCompile(`^([a-z]{1,10}_){1,2}`)

// String shows a well-known kind of prefix, and no other part of the secret.
func (s Secret) String() string {
	if s.text == "" {
		return "no key"
	}
	p := prefix.FindString(s.text)
	if len(s.text)-len(p) < 16 {
		p = "" // too much of it would show
	}
	return p + "…"
}

// Format prints String whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText is String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// The kinds of letters that keys are made of.
const (
	digits = "0123456789"
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// Another is a text of the same form that is no such secret: its letters and
// digits but those of a well-known prefix are others, of the same kind each. Of a
// text with so few of them that somebody else's may be met, all are any letters and
// digits, and the prefix goes as far as it has to.
func (s Secret) Another() string {
	for _, begin := range []int{len(prefix.FindString(s.text)), strings.IndexByte(s.text, '_') + 1, 0} {
		for _, kinds := range [][]string{{digits, lower, upper}, {lower + digits + upper}} {
			if other, of := s.drawn(begin, kinds); of > 1e12 || begin == 0 && len(kinds) == 1 {
				return other
			}
		}
	}
	return ""
}

// Twisted is Another that begins like the secret, where nobody can have a key so
// much like it: one of many letters that ends in another kind of letter, and so is
// no next one of those that are numbered.
func (s Secret) Twisted() string {
	all := []string{digits, lower, upper}
	if _, of := s.drawn(len(prefix.FindString(s.text)), all); of < 1e24 {
		return s.Another()
	}
	last := len(s.text) - 1
	kind := "abcdef"
	if strings.IndexByte(digits, s.text[last]) < 0 {
		kind = digits
	}
	return s.text[:last] + string(kind[rand.IntN(len(kind))])
}

// drawn is the text with what is of some kinds drawn anew from a place on, and of
// how many such texts it is one.
func (s Secret) drawn(begin int, kinds []string) (string, float64) {
	other, of := []byte(s.text), 1.0
	for i := begin; i < len(other); i++ {
		for _, kind := range kinds {
			if strings.IndexByte(kind, other[i]) >= 0 {
				other[i], of = kind[rand.IntN(len(kind))], of*float64(len(kind))
				break
			}
		}
	}
	return string(other), of
}

// In reports whether text shows the secret.
func (s Secret) In(text string) bool { return s.text != "" && strings.Contains(text, s.text) }

// Reveal is the secret itself, for the wire and for keys files.
func (s Secret) Reveal() string { return s.text }

// maskWords masks each word that is long enough to be a secret. A bad key may be
// all but one letter of a good one.
func maskWords(text string) string {
	words := strings.Split(text, " ")
	for i, w := range words {
		if len(w) > 12 {
			words[i] = NewSecret(w).String()
		}
	}
	return strings.Join(words, " ")
}

// maskCredential masks what stands in a credential line where a key does, however
// short it is, as long as it may be one: a made-up key may be somebody's.
func (t *Target) maskCredential(line string) string {
	before, after, _ := strings.Cut(t.file.Credential.Template, "{key}")
	key, fits := strings.CutPrefix(line, before)
	if key, ends := strings.CutSuffix(key, after); fits && ends && len(key) > len("unknown") {
		return before + NewSecret(key).String() + after
	}
	return maskWords(line)
}

// Key is one API key of a user.
type Key struct {
	User   string
	Plan   string
	Secret Secret
	From   string // where it is, for people; empty: nowhere that has a name
}
