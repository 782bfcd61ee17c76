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

// Another is a text of the same form that is no such secret: its letters and
// digits but those of a well-known prefix are others, of the same kind each.
func (s Secret) Another() string {
	other := []byte(s.text)
	for i := len(prefix.FindString(s.text)); i < len(other); i++ {
		for _, kind := range []string{"0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"} {
			if strings.IndexByte(kind, other[i]) >= 0 {
				other[i] = kind[rand.IntN(len(kind))]
				break
			}
		}
	}
	return string(other)
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

// Key is one API key of a user.
type Key struct {
	User   string
	Plan   string
	Secret Secret
}
