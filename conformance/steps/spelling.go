package steps

import (
	"context"
	"fmt"
	"strings"

	"github.com/invoicespec/brimline/conformance/oracle"
)

// spellings lists other ways to write a path, some of which a careless router
// takes for the same.
func spellings(path string) []string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if first == "" {
		return nil // the root has no other spelling that says the same
	}
	encoded := fmt.Sprintf("%%%02x", first[0])
	return []string{
		"/" + path,
		"/" + first + "//" + rest,
		"/." + path,
		"/" + first + "/./" + rest,
		"/x/.." + path,
		"/" + first + "/x/../" + rest,
		"/%2e" + path,
		"/x/%2e%2e" + path,
		"/" + encoded + path[2:],
		"/" + first + "%2F" + rest,
		"/" + first + "%2f" + rest,
		path + "/",
		path + "/.",
		strings.ToUpper(path),
		"http://brimline.example" + path,
	}
}

// spell sends the valid operation to every other spelling of its path, at an
// empty bucket. The answers say nothing of the bucket: some of these paths lie
// outside the scope, and others take a token that came back meanwhile.
func (s *Scenario) spell(ctx context.Context) error {
	return s.sends(func() (got []exchange, err error) {
		for _, path := range spellings(s.Valid().Path) {
			e, err := s.spelled(ctx, path)
			if err != nil {
				return got, err
			}
			got = append(got, e)
		}
		return got, nil
	})
}

// spelled sends one of them, again if a token may have come back meanwhile.
func (s *Scenario) spelled(ctx context.Context, path string) (exchange, error) {
	u, r := s.user(), s.Valid()
	r.Path = path
	var last exchange
	for range 5 {
		e, err := s.take(exchange{Exchange: s.SendUntold(ctx, u.User, r)})
		last = e
		if err != nil {
			return e, err
		}
		if _, hi := u.Bucket.LevelAt(e.Span.To); hi < oracle.Token || e.Status != s.ExpectValid() {
			return e, nil
		}
		if _, err := s.drain(ctx, u, s.Valid()); err != nil {
			return e, err
		}
	}
	return exchange{}, s.tooFast(u, last)
}

func (s *Scenario) noneGotThrough() error {
	for _, e := range s.got {
		if e.Status == s.ExpectValid() {
			return s.broken(e, "status of "+e.Path, "anything but success", statusAndCode(e))
		}
	}
	return s.verdict()
}
