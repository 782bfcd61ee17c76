package target

import (
	"encoding/base64"
	"encoding/binary"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// masks hides secrets in texts: each of them whole, as it is quoted and encoded in
// the usual ways, and every piece of a long one, since whoever quotes it may cut
// it, and a bad key that is sent may be all but one letter of a good one. Case does
// not matter: a header's name is written in another one.
type masks struct {
	mu     sync.Mutex
	new    []Secret // not yet spelled out
	seen   map[string]bool
	long   []masked           // of which pieces are known
	pieces map[uint64][]piece // eight bytes of them, in small letters
	short  []masked
}

// masked is one way to write a secret, and what stands there instead.
type masked struct{ text, shows string }

// piece is where eight bytes stand in one of the long ones.
type piece struct{ of, at int }

const (
	pieceLength  = 8
	pieceStride  = 4
	shortestSeen = pieceLength + pieceStride // every piece that long holds eight bytes that are known

	shortestSecret = 4 // what is shorter is not hidden
	shortestPart   = 8 // what is shorter is hidden as a word of its own
)

// add makes secrets known. They are spelled out when there is first something to
// hide: a load has a hundred thousand keys, and nothing to say of them.
func (m *masks) add(secrets ...Secret) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.new = append(m.new, secrets...)
}

// learn spells out what is new. The caller has the lock.
func (m *masks) learn() {
	for _, s := range m.new {
		if s.text == "" || m.seen[s.text] {
			continue
		}
		if m.seen == nil {
			m.seen = map[string]bool{}
		}
		m.seen[s.text] = true
		for _, text := range s.spellings() {
			m.spell(masked{text, s.String()})
		}
	}
	m.new = nil
}

// spellings are the ways in which a secret may come back, each once.
func (s Secret) spellings() []string {
	all := []string{s.text}
	quoted := strconv.Quote(s.text)
	for _, other := range []string{
		quoted[1 : len(quoted)-1], url.QueryEscape(s.text), url.PathEscape(s.text), html.EscapeString(s.text),
		base64.StdEncoding.EncodeToString([]byte(s.text)), base64.StdEncoding.EncodeToString([]byte("user:" + s.text)),
	} {
		if !slices.Contains(all, other) {
			all = append(all, other)
		}
	}
	return all
}

func (m *masks) spell(w masked) {
	low, own := folded(w.text), len(prefix.FindString(w.text))
	if len(low) < shortestSecret {
		return // it would be found in every other word
	}
	if len(low)-own < shortestSeen {
		m.short = append(m.short, w)
		return
	}
	if m.pieces == nil {
		m.pieces = map[uint64][]piece{}
	}
	for at := own; ; at += pieceStride {
		at = min(at, len(low)-pieceLength)
		k := binary.LittleEndian.Uint64(low[at:])
		m.pieces[k] = append(m.pieces[k], piece{len(m.long), at})
		if at == len(low)-pieceLength {
			break
		}
	}
	m.long = append(m.long, w)
}

// hide is text without what is known; of no masks, nothing is.
func (m *masks) hide(text string) string {
	if m == nil {
		return text
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.learn()
	for _, w := range m.short {
		text = w.replaced(text)
	}
	if len(m.pieces) == 0 || len(text) < shortestSeen {
		return text
	}
	low := folded(text)
	var b strings.Builder
	done := 0
	for i := 0; i+pieceLength <= len(low); i++ {
		from, to, w := m.longest(low, done, i)
		if to-from < shortestSeen {
			continue
		}
		b.WriteString(text[done:from])
		if strings.HasPrefix(string(folded(w.text)), string(low[from:min(to, from+shortestSeen)])) {
			b.WriteString(w.shows)
		} else {
			b.WriteString("…")
		}
		done, i = to, to-1
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}

// replaced is text with something else in place of a short secret.
func (w masked) replaced(text string) string {
	if len(w.text) >= shortestPart {
		return strings.ReplaceAll(text, w.text, w.shows)
	}
	var b strings.Builder
	for {
		i := strings.Index(text, w.text)
		if i < 0 {
			return b.String() + text
		}
		end := i + len(w.text)
		b.WriteString(text[:i])
		if i > 0 && isWord(text[i-1]) || end < len(text) && isWord(text[end]) {
			b.WriteString(w.text)
		} else {
			b.WriteString(w.shows)
		}
		text = text[end:]
	}
}

func isWord(c byte) bool { return 'a' <= small(c) && small(c) <= 'z' || '0' <= c && c <= '9' }

// longest is what of a text, not before start, is the same as in a secret around
// the eight bytes at i.
func (m *masks) longest(low []byte, start, i int) (from, to int, w masked) {
	for _, p := range m.pieces[binary.LittleEndian.Uint64(low[i:])] {
		whole := m.long[p.of].text
		l, r := 0, pieceLength
		for l < p.at && i-l > start && low[i-l-1] == small(whole[p.at-l-1]) {
			l++
		}
		for p.at+r < len(whole) && i+r < len(low) && low[i+r] == small(whole[p.at+r]) {
			r++
		}
		if l+r > to-from {
			from, to, w = i-l, i+r, m.long[p.of]
		}
	}
	return from, to, w
}

// folded is a text in small letters, byte by byte.
func folded(text string) []byte {
	low := make([]byte, len(text))
	for i := range len(text) {
		low[i] = small(text[i])
	}
	return low
}

func small(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// Mask hides every secret that this target knows in a text: keys, the control
// token, what stands in the connection string and in what commands are passed.
func (t *Target) Mask(text string) string { return t.secrets.hide(text) }

// Excerpt is as much of a text from outside as may be shown: masked, then cut.
func (t *Target) Excerpt(text string, most int) string {
	text = t.Mask(text)
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// mostError bounds the text of an error, which may quote what somebody answered.
const mostError = 2000

// Conceal is an error whose text has been through [Target.Excerpt]; what it wraps
// stays to be told apart.
func (t *Target) Conceal(err error) error {
	if err == nil {
		return nil
	}
	if text := t.Excerpt(err.Error(), mostError); text != err.Error() {
		return &concealed{text, err}
	}
	return err
}

type concealed struct {
	text string
	err  error
}

func (c *concealed) Error() string { return c.text }
func (c *concealed) Unwrap() error { return c.err }
