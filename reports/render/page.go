package render

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"strings"
)

//go:embed page.html.tmpl
var pageParts string

//go:embed page.css
var pageStyle string

// htmlPage is what the head of every page says. The style is inside the page and
// named by its digest in a policy that allows nothing else.
type htmlPage struct {
	Title  string
	Style  template.CSS
	Policy string
}

// newPage is a page in our style and its own.
func newPage(title string, styles ...string) htmlPage {
	style := "\n" + pageStyle + strings.Join(styles, "")
	digest := sha256.Sum256([]byte(style))
	return htmlPage{
		Title: title, Style: template.CSS(style),
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'; base-uri 'none'; form-action 'none'",
	}
}

// pageTemplate is the template of a page, with the parts that pages share.
func pageTemplate(name, text string, funcs template.FuncMap) *template.Template {
	return template.Must(template.Must(template.New(name).Funcs(funcs).Parse(text)).Parse(pageParts))
}
