package dashboard

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"

	"github.com/invoicespec/brimline/internal/figure"
)

//go:embed page.html.tmpl
var layout string

//go:embed page.css
var style string

var pages = template.Must(template.New("page").Funcs(template.FuncMap{"grouped": figure.Grouped}).Parse(layout))

// view is what the layout shows: one of the three pointers is set.
type view struct {
	Style   template.CSS
	Title   string
	User    string // signed in; empty: nobody is known to be
	SignIn  *signInView
	Billing *billingView
	Notice  *noticeView
}

func (h *page) notice(w http.ResponseWriter, n noticeView) {
	h.write(w, n.status, view{Title: n.Title, User: n.user, Notice: &n})
}

// write composes a whole page before it sends a byte of it.
func (h *page) write(w http.ResponseWriter, status int, v view) {
	v.Style = template.CSS(style)
	var b bytes.Buffer
	if err := pages.Execute(&b, v); err != nil {
		h.Logger.Error("a page was not written", "title", v.Title, "error", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	w.Write(b.Bytes())
}

// protect sets what every answer has, whatever it is. A page may use its own
// style, named by its digest, and post forms to this server; nothing else.
func protect(h http.Header) {
	digest := sha256.Sum256([]byte(style))
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(digest[:])+
		"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	// Nobody else learns an address. With "no-referrer" a browser would not name
	// the origin of our own forms either, by which they are told from others'.
	h.Set("Referrer-Policy", "same-origin")
}
