package target

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// problem is what makes no sense in a target file.
type problem struct{ key, problem, accepted string }

func (p *problem) Error() string {
	return fmt.Sprintf("%s: %s; accepted: %s", p.key, p.problem, p.accepted)
}

// check finds what is well-formed and makes no sense.
func (f File) check() *problem {
	if len(f.BaseURLs) == 0 {
		return &problem{"base-urls", "empty", "at least one URL"}
	}
	for i, u := range f.BaseURLs {
		if p := checkURL(fmt.Sprintf("base-urls[%d]", i), u); p != nil {
			return p
		}
	}
	if p := f.checkProtocol(); p != nil {
		return p
	}
	if p := f.checkTLS(); p != nil {
		return p
	}
	switch c := f.Credential; {
	case !isToken(c.Header):
		return &problem{"credential.header", fmt.Sprintf("%q is no header name", c.Header), "a name such as Authorization"}
	case strings.Count(c.Template, "{key}") != 1 || !isText(c.Template):
		return &problem{"credential.template", fmt.Sprintf("%q does not hold {key} once", maskWords(c.Template)), `a text such as "Bearer {key}"`}
	}
	if p := f.checkWording(); p != nil {
		return p
	}
	if p := f.checkOperation("operations.valid", f.Operations.Valid, 2); p != nil {
		return p
	}
	if o := f.Operations.Invalid; o != nil {
		if p := f.checkOperation("operations.invalid", *o, 4); p != nil {
			return p
		}
	}
	if o := f.Operations.Failing; o != nil {
		if p := f.checkOperation("operations.failing", *o, 5); p != nil {
			return p
		}
	}
	if o := f.Operations.Slow; o != nil {
		if p := f.checkOperation("operations.slow", o.Operation, 2); p != nil {
			return p
		}
		if o.Takes < leastTakes || o.Takes > mostTakes {
			return &problem{"operations.slow.takes", o.Takes.String(), fmt.Sprintf("%s to %s", leastTakes, mostTakes)}
		}
	}
	if p := f.checkScope(); p != nil {
		return p
	}
	for i, path := range f.OutsideQuotas {
		if !isPath(path) {
			return &problem{fmt.Sprintf("outside-quotas[%d]", i), fmt.Sprintf("%q is no path", path), "a path such as /health"}
		}
	}
	for i, r := range f.InternalRoutes {
		key := fmt.Sprintf("internal-routes[%d]", i)
		switch {
		case !isToken(r.Method) || r.Method != strings.ToUpper(r.Method):
			return &problem{key + ".method", fmt.Sprintf("%q is no method", r.Method), "a method such as PUT"}
		case !isPath(r.Path):
			return &problem{key + ".path", fmt.Sprintf("%q is no path", r.Path), "a path such as /internal/users/{user}"}
		}
	}
	if p := f.checkAllowances(); p != nil {
		return p
	}
	if p := f.checkUsers(); p != nil {
		return p
	}
	if p := f.checkAddresses(); p != nil {
		return p
	}
	if p := f.Can.Page; p != nil {
		switch {
		case !isPath(p.Path):
			return &problem{"can.page.path", fmt.Sprintf("%q is no path", p.Path), "a path such as /billing"}
		case !isPath(p.SignIn):
			return &problem{"can.page.sign-in", fmt.Sprintf("%q is no path", p.SignIn), "a path such as /sign-in"}
		case p.Field == "":
			return &problem{"can.page.field", "empty", "the name of the form's field for the key"}
		case p.Negotiated == "":
			return &problem{"can.page.negotiated", "empty", "what the page says beside a negotiated value"}
		}
	}
	if f.Can.Control != nil {
		if p := checkControl(*f.Can.Control); p != nil {
			return p
		}
		if u, _ := url.Parse(f.Can.Control.URL); f.unverified() && !isLoopback(u.Hostname()) {
			return &problem{"can.control.url", "tls.insecure would show the token to whoever answers", "a control server on loopback, or tls.ca-file"}
		}
	}
	if s := f.Can.SQL; s != nil {
		if p := f.checkSQL(*s); p != nil {
			return p
		}
	}
	if p := f.checkCommands(); p != nil {
		return p
	}
	if m := f.Can.Metrics; m != nil {
		if p := checkPage("can.metrics.url", m.URL); p != nil {
			return p
		}
	}
	if p := f.Can.Process; p != nil {
		if problem := f.checkProcess(*p); problem != nil {
			return problem
		}
	}
	if p := f.checkPatience(); p != nil {
		return p
	}
	if f.Limits.MaxOperations < 0 {
		return &problem{"limits.max-operations", fmt.Sprint(f.Limits.MaxOperations), "a positive number"}
	}
	return nil
}

func checkURL(key, text string) *problem {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return &problem{key, fmt.Sprintf("%q is no base URL", maskUser(text)), "http or https, host and port, such as https://staging.example"}
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return &problem{key, fmt.Sprintf("port %s of %q does not exist", port, text), "a port from 1 to 65535"}
		}
	}
	return nil
}

// maskUser is a URL for people, without what stands before its host.
func maskUser(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if at := strings.LastIndexByte(rest, '@'); found && at >= 0 {
		return scheme + "://…" + rest[at:]
	}
	return text
}

// checkOperation checks an operation that has to end with a status of a class.
func (f File) checkOperation(key string, o Operation, class int64) *problem {
	switch {
	case !isToken(o.Method) || o.Method != strings.ToUpper(o.Method):
		return &problem{key + ".method", fmt.Sprintf("%q is no method", o.Method), "a method such as POST"}
	case !isPath(o.Path):
		return &problem{key + ".path", fmt.Sprintf("%q is no path", o.Path), "a path that begins with /"}
	case o.Body != "" && o.BodyFile != "":
		return &problem{key + ".body-file", "given beside body", "one of the two"}
	case o.Expect != 0 && o.Expect/100 != class:
		return &problem{key + ".expect", fmt.Sprint(o.Expect), fmt.Sprintf("a status from %d to %d", class*100, class*100+99)}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		switch {
		case !isToken(name) || !isText(o.Headers[name]):
			return &problem{key + ".headers." + name, "no header", "a name and a line of text"}
		case isOurs(name) || strings.EqualFold(name, f.Credential.Header):
			return &problem{key + ".headers." + name, "set by brimline", "other headers"}
		}
	}
	body, err := f.body(o)
	if err != nil {
		return &problem{key + ".body-file", err.Error(), "a readable file of at most 1 MiB"}
	}
	if f.Can.StalledUpload && key == "operations.valid" && len(body) < 2 {
		return &problem{"can.stalled-upload", "the valid operation has no body that could be half sent", "true only with a body of two bytes or more"}
	}
	return nil
}

// The range of each dimension, as the contract has it.
const (
	mostTokens      = 1_000_000
	mostConcurrency = 100_000
)

func (f File) checkAllowances() *problem {
	if len(f.Allowances) == 0 {
		return &problem{"allowances", "empty", "at least one plan"}
	}
	for _, plan := range slices.Sorted(maps.Keys(f.Allowances)) {
		a := f.Allowances[plan]
		for _, d := range []struct {
			name    string
			n, most int64
		}{{"requests-per-minute", a.RequestsPerMinute, mostTokens}, {"burst", a.Burst, mostTokens}, {"concurrency", a.Concurrency, mostConcurrency}} {
			if d.n < 1 || d.n > d.most {
				return &problem{fmt.Sprintf("allowances.%s.%s", plan, d.name), fmt.Sprint(d.n), fmt.Sprintf("1 to %d", d.most)}
			}
		}
	}
	return nil
}

// checkControl refuses to send the control token over a network in the clear.
func checkControl(c ControlAddress) *problem {
	const key = "can.control.url"
	if p := checkURL(key, c.URL); p != nil {
		return p
	}
	if u, _ := url.Parse(c.URL); u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return &problem{key, fmt.Sprintf("%q would show the token to the network", c.URL), "https, or http on loopback"}
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// isPath reports whether s can be a request target as it is.
func isPath(s string) bool { return strings.HasPrefix(s, "/") && isTarget(s) }

func isTarget(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// isToken reports whether s can be a method or the name of a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// isText reports whether s can be the value of a header.
func isText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// isOurs reports whether a header is this package's own to set.
func isOurs(name string) bool {
	return slices.ContainsFunc([]string{"Host", "Content-Length", "Transfer-Encoding", "Expect", "Connection"},
		func(own string) bool { return strings.EqualFold(own, name) })
}

// hostPort is where to connect to for a URL that was checked.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
