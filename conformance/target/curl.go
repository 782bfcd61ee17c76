package target

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// curl is a command that sends a request again, in a protocol that is its own
// choice where none is named. Keys are not in it.
func curl(base *url.URL, r Request, credential [][2]string, bodyFile string, p Protocol) string {
	var b strings.Builder
	b.WriteString("curl -i")
	switch {
	case p == HTTP2 && base.Scheme == "https":
		b.WriteString(" --http2")
	case p == HTTP2:
		b.WriteString(" --http2-prior-knowledge")
	}
	switch {
	case r.Method == http.MethodHead:
		b.WriteString(" -I")
	case r.Method != get || len(r.Body) > 0:
		b.WriteString(" -X " + quoteWord(r.Method, quote))
	}
	if strings.HasPrefix(r.Path, "/") {
		if strings.Contains(r.Path, "/.") || strings.Contains(r.Path, "//") {
			b.WriteString(" --path-as-is")
		}
		b.WriteString(" " + quoteWord(base.Scheme+"://"+base.Host+r.Path, quote))
	} else {
		b.WriteString(" --request-target " + quote(r.Path) + " " + base.Scheme + "://" + base.Host)
	}
	for _, c := range credential {
		b.WriteString(" -H " + quote(c[0]+": "+c[1]))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, v := range r.Header[name] {
			b.WriteString(" -H " + quote(name+": "+v))
		}
	}
	switch {
	case len(r.Body) == 0:
		return b.String()
	case len(r.Header.Values("Content-Type")) == 0:
		b.WriteString(" -H 'Content-Type: application/json'")
	}
	const most = 400
	switch {
	case bodyFile != "":
		b.WriteString(" --data-binary @" + quoteWord(bodyFile, quote))
	case len(r.Body) > most:
		b.WriteString(fmt.Sprintf(" --data-binary @body  # %d bytes", len(r.Body)))
	default:
		b.WriteString(" -d " + quote(string(r.Body)))
	}
	return b.String()
}

// quote makes one word of s for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quoteWord leaves alone what a shell would.
func quoteWord(s string, quote func(string) string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/:.-_@%+,", r))
	}) {
		return s
	}
	return quote(s)
}
