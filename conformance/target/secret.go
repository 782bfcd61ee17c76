package target

import (
	"fmt"
	"strings"
)

// Secret is an API key or a token. It never prints itself.
type Secret struct{ text string }

// NewSecret wraps a secret.
func NewSecret(text string) Secret { return Secret{text} }

// String shows how the secret begins and nothing that would identify it.
func (s Secret) String() string { return "***" }

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// Format prints String whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText is String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// In reports whether text shows the secret.
func (s Secret) In(text string) bool { return s.text != "" && strings.Contains(text, s.text) }

// Reveal is the secret itself, for the wire and for keys files.
func (s Secret) Reveal() string { return s.text }

// Key is one API key of a user.
type Key struct {
	User   string
	Plan   string
	Secret Secret
}
