package measure

import "github.com/invoicespec/brimline/conformance/contract"

// errorCode finds the error code in a body of the usual form: one flat object of
// texts, whole numbers, true, false and null, in which the member's name and its
// text need no decoding. The code is empty if there is no such member. Not ok: the
// body is not of that form, and only the contract's parser can tell.
func errorCode(body []byte, member string) (code string, ok bool) {
	s := scanner{rest: body}
	if !s.take('{') {
		return "", false
	}
	var text []byte // of the member
	found := false
	for more := !s.take('}'); more; {
		name, plain := s.text()
		if !plain || !s.take(':') {
			return "", false
		}
		if string(name) == member {
			if text, plain = s.text(); found || !plain || len(text) == 0 {
				return "", false
			}
			found = true
		} else if !s.value() {
			return "", false
		}
		if more = s.take(','); !more && !s.take('}') {
			return "", false
		}
	}
	if s.space(); len(s.rest) > 0 {
		return "", false
	}
	return known(text), true
}

// known is a code that answers are told apart by, without a copy of it.
func known(text []byte) string {
	switch string(text) {
	case contract.CodeRateLimited:
		return contract.CodeRateLimited
	case contract.CodeConcurrencyLimited:
		return contract.CodeConcurrencyLimited
	case contract.CodeConfigUnavailable:
		return contract.CodeConfigUnavailable
	}
	return string(text)
}

// scanner takes JSON off the front of a text.
type scanner struct{ rest []byte }

func (s *scanner) space() {
	for len(s.rest) > 0 && (s.rest[0] == ' ' || s.rest[0] == '\n' || s.rest[0] == '\r' || s.rest[0] == '\t') {
		s.rest = s.rest[1:]
	}
}

func (s *scanner) take(b byte) bool {
	s.space()
	if len(s.rest) == 0 || s.rest[0] != b {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// text takes a text of ASCII without escapes.
func (s *scanner) text() (text []byte, ok bool) {
	text, ascii, ok := s.quoted()
	return text, ok && ascii
}

// quoted takes a text without escapes.
func (s *scanner) quoted() (text []byte, ascii, ok bool) {
	if !s.take('"') {
		return nil, false, false
	}
	ascii = true
	for i, b := range s.rest {
		switch {
		case b == '"':
			text, s.rest = s.rest[:i], s.rest[i+1:]
			return text, ascii, true
		case b == '\\' || b < ' ':
			return nil, false, false
		case b >= 0x80:
			ascii = false
		}
	}
	return nil, false, false
}

// value takes a value that has no others in it.
func (s *scanner) value() bool {
	s.space()
	if len(s.rest) == 0 {
		return false
	}
	switch b := s.rest[0]; {
	case b == '"':
		_, _, ok := s.quoted()
		return ok
	case b == 't':
		return s.word("true")
	case b == 'f':
		return s.word("false")
	case b == 'n':
		return s.word("null")
	case '1' <= b && b <= '9':
		n := 1
		for n < len(s.rest) && '0' <= s.rest[n] && s.rest[n] <= '9' {
			n++
		}
		s.rest = s.rest[n:]
		return true // what may not follow is found there
	}
	return false
}

func (s *scanner) word(w string) bool {
	if len(s.rest) < len(w) || string(s.rest[:len(w)]) != w {
		return false
	}
	s.rest = s.rest[len(w):]
	return true
}
