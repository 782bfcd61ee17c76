package target

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// maxOutput is how much of what a server prints is kept.
const maxOutput = 16 << 10

// output keeps the beginning and the end of what a server prints: why it ends may
// be the last that it says.
type output struct {
	most int

	mu    sync.Mutex
	first []byte
	last  []byte // of what did not go into first
	cut   bool   // something between them is not kept
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(p), o.most/2-len(o.first))
	o.first = append(o.first, p[:n]...)
	o.last = append(o.last, p[n:]...)
	if over := len(o.last) - o.most/2; over > 0 {
		o.last, o.cut = slices.Delete(o.last, 0, over), true
	}
	return len(p), nil
}

// String is what was kept: whole lines, where something is missing between them,
// since a part of one may be a part of a key, which nobody would know for one.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, between, last := o.first, "", o.last
	if o.cut {
		first, between = first[:bytes.LastIndexByte(first, '\n')+1], "…"
		if n := bytes.IndexByte(last, '\n'); n >= 0 {
			last = last[n:]
		} else {
			last = nil
		}
	}
	return strings.ToValidUTF8(string(first)+between+string(last), "")
}
