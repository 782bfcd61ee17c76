package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
)

const initHelp = `Init asks a deployment what can be seen of it, in fewer than twenty requests,
and writes a first target file. Comments in it say what was seen; what has to be
filled in says FILL-IN, and "brimline check --target" names the first such place.
What was neither seen nor given by a flag is marked "not seen: assumed".

An OpenAPI document at /openapi.json or /swagger.json tells where a key goes, and
the first POST with its path and an example of its body; --path, --method, --header
and --body come before it.

With a key, which it takes from a variable of the environment, it sends two
requests as that user: they spend two tokens, and one operation may be charged.`

// initFlags are what init was asked for.
type initFlags struct {
	url, out, keyEnv, plan, body, caFile string
	path, method, header                 string
	overwrite                            bool
}

func initVerb(w world) *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use:   "init --url URL",
		Short: "Ask a deployment what can be seen of it, and write a first target file",
		Long:  initHelp,
		Example: `  brimline check init --url https://staging.invoices.example
  ADA_KEY=... brimline check init --url https://staging.invoices.example --key-env ADA_KEY --plan free --body ok.json`,
		Args: noArguments("the deployment's address goes behind --url"),
		RunE: func(c *cobra.Command, _ []string) error { return f.init(c.Context(), w) },
	}
	flags := c.Flags()
	flags.StringVar(&f.url, "url", "", "ask the deployment at `URL`")
	flags.StringVar(&f.out, "out", "target.yaml", "write `FILE`")
	flags.BoolVar(&f.overwrite, "overwrite", false, "write it in place of a file that is there")
	flags.StringVar(&f.keyEnv, "key-env", "", "a key is in the environment's variable `NAME`")
	flags.StringVar(&f.plan, "plan", "", "that key's user is on the plan `NAME`")
	flags.StringVar(&f.body, "body", "", "`FILE` holds the body of an operation that succeeds (default: the example of the OpenAPI document)")
	flags.StringVar(&f.path, "path", "", "the operation is at `PATH`, such as /api/price")
	flags.StringVar(&f.method, "method", "", "the operation's `METHOD` (default: POST)")
	flags.StringVar(&f.header, "header", "", "a key goes into the header `NAME`, by itself; Authorization: behind Bearer")
	flags.StringVar(&f.caFile, "ca-file", "", "trust the certificates in `FILE`, and no others")
	return c
}

func (f initFlags) init(ctx context.Context, w world) error {
	base, err := f.base()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(f.out); err == nil && !f.overwrite {
		return fmt.Errorf("--out: %s is there already; accepted: another name, or --overwrite", f.out)
	}
	if f.path != "" && (!strings.HasPrefix(f.path, "/") || strings.ContainsAny(f.path, " \r\n\t#")) {
		return fmt.Errorf("--path: %q is no path; accepted: a path such as /api/price", f.path)
	}
	key := ""
	if f.keyEnv != "" {
		if key = w.env(f.keyEnv); key == "" || strings.ContainsAny(key, " \r\n\t") {
			return fmt.Errorf("--key-env: the variable %s holds no key; accepted: the name of one that does", f.keyEnv)
		}
	}
	example := ""
	if f.body != "" {
		data, err := readFile(f.body, mostBody)
		if err != nil {
			return fmt.Errorf("--body: %w", err)
		}
		example = string(data)
	}
	ask, err := newAsker(base, f.caFile)
	if err != nil {
		return err
	}
	defer ask.close()
	s, err := ask.everything(ctx, key, f.given(example))
	if err != nil {
		return exitWith(exitCannotTell, err)
	}
	text := f.file(s)
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if f.overwrite {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	out, err := os.OpenFile(f.out, flags, 0o644)
	if err == nil {
		_, err = out.WriteString(text)
		err = errors.Join(err, out.Close())
	}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	if err != nil {
		return fmt.Errorf("--out: %s: %w", f.out, err)
	}
	left := strings.Count(text, fillIn) + strings.Count(text, assumed)
	fmt.Fprintf(w.stdout, "%s: written after %d requests; %d places to fill in\n", f.out, ask.asked, left)
	if left == 0 {
		fmt.Fprintf(w.stdout, "next: brimline check --target %s --plan\n", f.out)
	}
	return nil
}

func (f initFlags) base() (*url.URL, error) {
	u, err := url.Parse(f.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("--url: %q is no base URL; accepted: http or https, host and port, such as https://staging.example", f.url)
	}
	u.Path = ""
	return u, nil
}

// fillIn stands where nothing was seen, and noText where that is a text: no key
// of a target file takes them there.
const (
	fillIn = target.FillIn
	noText = "[" + fillIn + "]"
	// assumed marks what stands in the file though nothing showed that it is so.
	assumed = " # not seen: assumed"
)

// document writes a target file line by line.
type document struct{ strings.Builder }

func (d *document) say(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

// note is a comment; what others sent cannot end it.
func (d *document) note(format string, args ...any) {
	d.say("# %s", strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

// word is a text as YAML takes it; JSON's is.
func word(s string) string {
	quoted, _ := json.Marshal(s) // a string always encodes
	return string(quoted)
}

// file is the target file.
func (f initFlags) file(s seen) string {
	var d document
	d.note("A first target file, by what was seen of %s in %d requests.", s.base, s.asked)
	d.note("Every key is explained by: brimline check --explain-target")
	for _, line := range s.notes {
		d.note("%s", line)
	}
	d.say("\nbase-urls: [%s]", word(s.base))
	if f.caFile != "" {
		d.say("tls: { ca-file: %s }", word(f.besideOut(f.caFile)))
	}
	d.say("credential: { header: %s, template: %s }%s", word(s.credential.Header), word(s.credential.Template), unseen(s.credentialSeen))
	env, plan, onPlan := f.keyEnv, f.plan, word(f.plan)
	if env == "" {
		env = fillIn
	}
	if plan == "" {
		plan, onPlan = fillIn, noText
	}
	d.say("\n# Keys are never in this file: each is in a variable of the environment or in a file.")
	d.say("users:\n  - { id: %s, plan: %s, keys: [{ env: %s }] }", word("first"), onPlan, word(env))
	d.say("\noperations:")
	body := word(s.body)
	if s.body == "" {
		body = noText + " # of a request that succeeds; or body-file"
	}
	d.say("  valid:\n    method: %s\n    path: %s%s", word(s.method), word(s.path), unseen(s.pathSeen))
	if f.body != "" {
		d.say("    body-file: %s", word(f.besideOut(f.body)))
	} else {
		d.say("    body: %s", body)
	}
	if s.succeeds != 0 {
		d.say("    expect: %d", s.succeeds)
	}
	if s.invalid != 0 {
		d.say("  invalid: { method: %s, path: %s, body: \"{}\", expect: %d }", word(s.method), word(s.path), s.invalid)
	}
	if !s.late {
		d.say("  # 100 Continue may come to everybody here, and a stalled upload show nothing: an operation\n  # that takes its time has requests in flight as well, if there is one.")
		d.say("  # slow: { method: %s, path: %s, body: \"\", takes: 3s }", word(s.method), word(s.path))
	}
	f.words(&d, s)
	if len(s.outside) > 0 {
		d.say("\noutside-quotas:")
		for _, path := range s.outside {
			d.say("  - %s", word(path))
		}
	}
	f.allowance(&d, s, plan)
	d.say("\ncan:\n  http2: %t\n  stalled-upload: %t", s.http2, s.late)
	d.say("\nlimits: { max-operations: 1000 }")
	return d.String()
}

// unseen is the mark behind a line, unless it says what was seen or given.
func unseen(seen bool) string {
	if seen {
		return ""
	}
	return assumed
}

// given is what flags say of the operation; the rest is looked for.
func (f initFlags) given(example string) seen {
	s := seen{method: cmp.Or(f.method, http.MethodPost), path: f.path, pathSeen: f.path != "", body: example, names: map[string]string{}}
	switch {
	case strings.EqualFold(f.header, "Authorization") || f.header == "":
		s.credential = target.Credential{Header: "Authorization", Template: "Bearer {key}"}
	default:
		s.credential = target.Credential{Header: f.header, Template: "{key}"}
	}
	s.credentialSeen = f.header != ""
	return s
}

// besideOut is a file as the target file names it, whose paths are relative to
// its own folder.
func (f initFlags) besideOut(path string) string {
	if rel, err := filepath.Rel(filepath.Dir(f.out), path); err == nil && !filepath.IsAbs(path) {
		return filepath.ToSlash(rel)
	}
	return path
}

// words writes how the deployment says what the contract says.
func (f initFlags) words(d *document, s seen) {
	if len(s.names) > 0 {
		d.say("\nheaders:")
		for _, name := range slices.Sorted(maps.Keys(s.names)) {
			d.say("  %s: %s", name, word(s.names[name]))
		}
	}
	if s.resetIs != "" {
		d.say("reset-is: %s", s.resetIs)
	}
	if s.unauthenticated.status != 0 {
		d.say("\nanswers:\n  UNAUTHENTICATED: { status: %d%s }", s.unauthenticated.status, map[bool]string{true: ", code: " + word(s.unauthenticated.code)}[s.unauthenticated.code != ""])
	}
}

// allowance writes what the key's plan allows: what was seen of its burst, and
// the rest where the contract has a plan of this name and burst.
func (f initFlags) allowance(d *document, s seen, plan string) {
	d.say("\nallowances:\n  %s:", word(plan))
	number := func(n int64) string {
		if n == 0 {
			return fillIn
		}
		return fmt.Sprint(n)
	}
	var rate, concurrency int64
	if p, ok := server.DefaultPlans()[plan]; ok && s.burst > 0 {
		eff, err := policy.Resolve(map[string]policy.Plan{plan: p}, policy.Subscription{Plan: plan}, nil, time.Time{})
		if err == nil && eff.Allowance.Burst() == s.burst {
			rate, concurrency = eff.Allowance.RequestsPerMinute(), eff.Allowance.Concurrency()
			d.say("    # rate and concurrency cannot be seen: these are the reference's, whose plan of this name has the same burst")
		}
	}
	d.say("    requests-per-minute: %s\n    burst: %s\n    concurrency: %s", number(rate), number(s.burst), number(concurrency))
}
