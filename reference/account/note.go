package account

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Note says who changed something at the operator boundary, and why. It is for
// the audit trail alone: no page and no answer to a user shows it.
type Note struct{ Author, Reason string }

// The longest texts of a note, in characters.
const (
	MaxAuthor = 200
	MaxReason = 1000
)

// PastChecks is the note of what was stored past every check.
func PastChecks() Note { return Note{Author: "unknown", Reason: "stored past every check"} }

// Check refuses, with [ErrRefused], a note that does not say both.
func (n Note) Check() error {
	for _, part := range []struct {
		name, text string
		most       int
	}{{"author", n.Author, MaxAuthor}, {"reason", n.Reason, MaxReason}} {
		switch {
		case strings.TrimSpace(part.text) == "":
			return fmt.Errorf("%w: the %s is missing", ErrRefused, part.name)
		case utf8.RuneCountInString(part.text) > part.most:
			return fmt.Errorf("%w: the %s is longer than %d characters", ErrRefused, part.name, part.most)
		case !utf8.ValidString(part.text) || strings.ContainsFunc(part.text, unicode.IsControl):
			return fmt.Errorf("%w: the %s %q has characters that are no text", ErrRefused, part.name, part.text)
		}
	}
	return nil
}
