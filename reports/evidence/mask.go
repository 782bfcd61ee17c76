package evidence

import (
	"net/netip"
	"regexp"
	"strings"
	"unicode"
)

// mask stands for a word that may lead to somebody.
const mask = "[…]"

// mostSymptom is how much of a symptom is kept, in characters.
const mostSymptom = 300

var (
	ticketID = regexp.MustCompile(`^[A-Za-z0-9_#/.-]{1,64}$`)
	secret   = regexp.MustCompile(`^[A-Za-z0-9_+/=.-]{20,}$`) // as long as keys are, and no word
)

// Masked is what a customer wrote, on one line, without mail and network
// addresses, long random-looking words such as keys, and the user's own name.
func Masked(text, user string) string {
	if user != "" {
		text = replaceFold(text, user)
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	for i, w := range words {
		bare := strings.Trim(w, `.,;:!?()[]<>"'`)
		if bare != "" && leads(bare) {
			words[i] = strings.Replace(w, bare, mask, 1)
		}
	}
	runes := []rune(strings.Join(words, " "))
	if len(runes) > mostSymptom {
		runes = append(runes[:mostSymptom], '…')
	}
	return string(runes)
}

// leads reports whether a word may lead to somebody.
func leads(word string) bool {
	if strings.Contains(word, "@") || strings.Contains(word, "://") {
		return true
	}
	for _, part := range strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(`=/,;()"'<>`, r) }) {
		if _, err := netip.ParseAddr(strings.Trim(part, "[]")); err == nil {
			return true
		}
		if _, err := netip.ParseAddrPort(part); err == nil {
			return true
		}
	}
	return secret.MatchString(word) && strings.ContainsAny(word, "0123456789")
}

// replaceFold masks a name in whatever case it is written, where it stands as a
// word of its own.
func replaceFold(text, name string) string {
	pattern, err := regexp.Compile(`(?i)(^|[^\pL\pN])(` + regexp.QuoteMeta(name) + `)($|[^\pL\pN])`)
	if err != nil {
		return mask // a name that cannot be looked for hides the text
	}
	for range 2 { // a mark between two names belongs to the first match alone
		text = pattern.ReplaceAllString(text, "${1}"+mask+"${3}")
	}
	return text
}
