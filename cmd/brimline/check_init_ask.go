package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/build"
)

// Bounds of what is asked.
const (
	askTimeout = 10 * time.Second
	// A server may know nothing of 100 Continue: a client sends its body all the same
	// after a while (RFC 9110 10.1.1).
	continueTimeout = time.Second
	mostAnswer      = 1 << 20
	mostBody        = 1 << 20
)

// seen is what was seen of a deployment.
type seen struct {
	base       string
	asked      int
	notes      []string
	credential target.Credential

	method, path, body string
	succeeds, invalid  int // statuses; 0: not seen
	outside            []string
	names              map[string]string
	resetIs            string
	burst              int64
	pathSeen           bool // somebody said so, or an answer did
	credentialSeen     bool
	unauthenticated    reply // where it is not the contract's
	http2              bool
	late               bool // 100 Continue does not come to whoever has no key
}

type reply struct {
	status int
	code   string
	header http.Header
	body   []byte
}

func (s *seen) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// asker sends requests, each once and to one place.
type asker struct {
	base   *url.URL
	config *tls.Config
	http1  *http.Transport
	asked  int
}

func newAsker(base *url.URL, caFile string) (*asker, error) {
	a := &asker{base: base}
	if caFile != "" {
		data, err := readFile(caFile, mostBody)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		a.config = &tls.Config{RootCAs: x509.NewCertPool()}
		if !a.config.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("--ca-file: %s: no certificate in it; accepted: certificates in PEM", caFile)
		}
	}
	a.http1 = a.transport(func(p *http.Protocols) { p.SetHTTP1(true) })
	return a, nil
}

func (a *asker) transport(speak func(*http.Protocols)) *http.Transport {
	t := &http.Transport{TLSClientConfig: a.config.Clone(), Protocols: new(http.Protocols), DisableKeepAlives: true, DisableCompression: true, ExpectContinueTimeout: continueTimeout}
	speak(t.Protocols)
	return t
}

func (a *asker) close() { a.http1.CloseIdleConnections() }

// send sends one request and reads its answer.
func (a *asker) send(ctx context.Context, over *http.Transport, method, path, body string, header http.Header) (reply, error) {
	within, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	a.asked++
	req, err := http.NewRequestWithContext(within, method, a.base.String()+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("User-Agent", "brimline/"+build.Version()+" init")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := over.RoundTrip(req)
	if err != nil {
		return reply{}, fmt.Errorf("%s does not answer: %w", a.base, without(header, plain(err)))
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, header: resp.Header}
	r.body, err = io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	return r, without(header, plain(err))
}

// without is an error that does not say what was sent: a server may say back a key
// in a head that cannot be read, which is what the error quotes.
func without(sent http.Header, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, lines := range sent {
		for _, word := range strings.Fields(strings.Join(lines, " ")) {
			text = strings.ReplaceAll(text, word, "…")
		}
	}
	return errors.New(text)
}

// plain is an error in one line.
func plain(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}

// everything asks all there is to ask. The key, if there is one, goes with two
// requests and no others.
func (a *asker) everything(ctx context.Context, key string, s seen) (seen, error) {
	s.base = a.base.String()
	root, err := a.send(ctx, a.http1, http.MethodGet, "/", "", nil)
	if err != nil {
		return s, err
	}
	s.note("GET / answered %d", root.status)
	for _, path := range []string{"/health", "/healthz", "/ready", "/readyz", "/openapi.json", "/swagger.json"} {
		r, err := a.send(ctx, a.http1, http.MethodGet, path, "", nil)
		if err != nil || r.status != http.StatusOK {
			continue
		}
		s.outside = append(s.outside, path)
		if strings.HasSuffix(path, ".json") {
			s.learn(path, r.body)
		}
	}
	if len(s.outside) == 0 {
		s.note("none of the usual paths of health, readiness and OpenAPI answered 200: outside-quotas is left out")
	}
	if s.path == "" {
		s.path = contract.ScopePrefix + "/calculate"
	}
	a.twoProtocols(ctx, &s)
	if err := a.withoutKey(ctx, &s); err != nil {
		return s, err
	}
	if key != "" {
		err = a.withKey(ctx, &s, key)
	} else {
		s.note("no --key-env: RateLimit headers were not looked at")
	}
	s.asked = a.asked
	return s, err
}

func (a *asker) twoProtocols(ctx context.Context, s *seen) {
	over := a.transport(func(p *http.Protocols) {
		if a.base.Scheme == "https" {
			p.SetHTTP2(true)
		} else {
			p.SetUnencryptedHTTP2(true)
		}
	})
	defer over.CloseIdleConnections()
	r, err := a.send(ctx, over, http.MethodGet, "/", "", nil)
	s.http2 = err == nil && r.status != http.StatusHTTPVersionNotSupported
	s.note("HTTP/2 is spoken: %t", s.http2)
}

// codeLike is what an error code looks like. Anything else is left out.
var codeLike = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// withoutKey sends the operation without a key, and waits with its body.
func (a *asker) withoutKey(ctx context.Context, s *seen) error {
	early, began := false, time.Now()
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { early = true }})
	r, err := a.send(traced, a.http1, s.method, s.path, cmp.Or(s.body, "{}"), http.Header{"Expect": {"100-continue"}})
	if err != nil {
		return err
	}
	var body map[string]any
	_ = json.Unmarshal(r.body, &body) // what is no object has no code
	code, _ := body[contract.MemberErrorCode].(string)
	if !codeLike.MatchString(code) {
		code = ""
	}
	s.note("%s %s without a key answered %d %s", s.method, s.path, r.status, code)
	usual := contract.Wording{}.Reply(http.StatusUnauthorized)
	refused := r.status == http.StatusUnauthorized || r.status == http.StatusForbidden
	if refused && (r.status != usual.Status || code != "" && code != usual.Code) {
		s.unauthenticated = reply{status: r.status, code: code}
	}
	if s.unauthenticated.status == 0 && !refused {
		s.note("which is no refusal of somebody without a key: method and path may be others")
	}
	slow := time.Since(began) >= continueTimeout // and had the whole body
	s.late = refused && !early && !slow
	if wait := r.header.Get("Retry-After"); r.status == http.StatusTooManyRequests {
		n, err := strconv.ParseUint(wait, 10, 31)
		if err != nil {
			s.note("429: rate limited, as an address without a good key; try again later")
		} else {
			s.note("429: rate limited, as an address without a good key; try again in %d s", n)
		}
	}
	if slow && !early {
		s.note("the answer came no sooner than the whole body: 100 Continue is not spoken")
	}
	s.note("100 Continue came to somebody without a key: %t", early)
	return nil
}

// withKey sends the operation, and one that fails validation, as a user.
func (a *asker) withKey(ctx context.Context, s *seen, key string) error {
	header := http.Header{s.credential.Header: {strings.Replace(s.credential.Template, "{key}", key, 1)}}
	valid := reply{}
	if s.body != "" {
		r, err := a.send(ctx, a.http1, s.method, s.path, s.body, header)
		if err != nil {
			return err
		}
		valid = r
		s.note("the same with a key answered %d", r.status)
		if r.status/100 == 2 {
			s.pathSeen, s.credentialSeen = true, true
		}
		if r.status/100 == 2 {
			s.succeeds = r.status
		}
	}
	invalid, err := a.send(ctx, a.http1, s.method, s.path, "{}", header)
	if err != nil {
		return err
	}
	s.note("the body {} with a key answered %d", invalid.status)
	if c := invalid.status; c/100 == 4 && c != http.StatusUnauthorized && c != http.StatusForbidden && c != http.StatusNotFound && c != http.StatusMethodNotAllowed && c != http.StatusTooManyRequests {
		s.invalid = c
	}
	if valid.status == 0 {
		valid = invalid
	}
	s.headers(valid.header)
	return nil
}

// headers looks for what tells of the bucket, under the names there are for it.
func (s *seen) headers(h http.Header) {
	for contracts, names := range map[string][]string{
		contract.HeaderLimit:     {contract.HeaderLimit, "X-RateLimit-Limit", "X-Rate-Limit-Limit"},
		contract.HeaderRemaining: {contract.HeaderRemaining, "X-RateLimit-Remaining", "X-Rate-Limit-Remaining"},
		contract.HeaderReset:     {contract.HeaderReset, "X-RateLimit-Reset", "X-Rate-Limit-Reset"},
		contract.HeaderRequestID: {contract.HeaderRequestID, "X-Correlation-Id", "Request-Id"},
	} {
		i := slices.IndexFunc(names, func(n string) bool { return h.Get(n) != "" })
		switch {
		case i < 0:
			s.note("no header was seen that could be %s", contracts)
			continue
		case i > 0:
			s.names[contracts] = names[i]
		}
		value := h.Get(names[i])
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case contracts == contract.HeaderLimit && err == nil && n > 0:
			s.burst = n
		case contracts == contract.HeaderReset && err == nil && n > 1_000_000_000:
			s.resetIs = string(contract.ResetUnixTime)
		case contracts == contract.HeaderReset && err != nil:
			s.resetIs = string(contract.ResetDate)
		}
		if err == nil { // anything else might be what was sent
			s.note("%s: %d", names[i], n)
		}
	}
	slices.Sort(s.notes[len(s.notes)-min(len(s.notes), 4):])
}

// openAPI is as much of an OpenAPI document as tells how to send an operation.
type openAPI struct {
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Example json.RawMessage `json:"example"`
		} `json:"schemas"`
		Security map[string]struct {
			Type, Scheme, In, Name string
		} `json:"securitySchemes"`
	} `json:"components"`
}

// learn takes the operation and the way of a key from an OpenAPI document: the
// first that has a body, below the contract's prefix if there is one.
func (s *seen) learn(path string, data []byte) {
	var doc openAPI
	if err := json.Unmarshal(data, &doc); err != nil {
		s.note("%s is no OpenAPI document", path)
		return
	}
	paths := slices.SortedFunc(maps.Keys(doc.Paths), func(a, b string) int {
		inScope := func(p string) int { return map[bool]int{true: 0, false: 1}[strings.HasPrefix(p, contract.ScopePrefix)] }
		return cmp.Or(inScope(a)-inScope(b), cmp.Compare(a, b))
	})
	for _, p := range paths {
		var op struct {
			Body struct {
				Content map[string]struct {
					Example json.RawMessage `json:"example"`
					Schema  struct {
						Ref string `json:"$ref"`
					} `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
		}
		raw, ok := doc.Paths[p]["post"]
		if !ok || json.Unmarshal(raw, &op) != nil || strings.ContainsAny(p, "{ \r\n") || !strings.HasPrefix(p, "/") {
			continue
		}
		if s.path != "" && s.path != p {
			continue // a flag says another
		}
		s.path, s.pathSeen = p, true
		content := op.Body.Content["application/json"]
		example := content.Example
		if example == nil {
			example = doc.Components.Schemas[strings.TrimPrefix(content.Schema.Ref, "#/components/schemas/")].Example
		}
		if s.body == "" {
			s.body = string(example)
		}
		s.note("%s names POST %s, with an example of its body: %t", path, p, example != nil)
		break
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Security)) {
		switch x := doc.Components.Security[name]; {
		case x.Type == "http" && strings.EqualFold(x.Scheme, "bearer"):
			if !s.credentialSeen {
				s.credential, s.credentialSeen = target.Credential{Header: "Authorization", Template: "Bearer {key}"}, true
			}
			return
		case x.Type == "apiKey" && x.In == "header" && x.Name != "":
			if !s.credentialSeen {
				s.credential, s.credentialSeen = target.Credential{Header: x.Name, Template: "{key}"}, true
			}
			return
		}
	}
}
