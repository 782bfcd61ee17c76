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
	Script template.JS // none: the page has no script
	Policy string
}

// newPage is a page in our style and its own.
func newPage(title string, styles ...string) htmlPage {
	style := "\n" + pageStyle + strings.Join(styles, "")
	return htmlPage{
		Title: title, Style: template.CSS(style),
		Policy: "default-src 'none'; style-src " + digest(style) + "; base-uri 'none'; form-action 'none'",
	}
}

// with is the page with one script, which the policy names by its digest.
func (p htmlPage) with(script string) htmlPage {
	p.Script = template.JS(script)
	p.Policy += "; script-src " + digest(script)
	return p
}

// digest is a text as a policy names it.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pageTemplate is the template of a page, with the parts that pages share.
func pageTemplate(name, text string, funcs template.FuncMap) *template.Template {
	return template.Must(template.Must(template.New(name).Funcs(funcs).Parse(text)).Parse(pageParts))
}
