package target

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// SQL reads from the deployment's own PostgreSQL what requests have left behind,
// in transactions that can only read. In each query $1 is the id that it asks
// about, as text. The connection string is in a variable or in a file, never in
// the target file.
type SQL struct {
	DSNVariable string        `yaml:"dsn-variable,omitempty"`
	DSNFile     string        `yaml:"dsn-file,omitempty"` // nobody but its owner may be able to read it
	Timeout     time.Duration `yaml:"timeout,omitempty"`  // of one statement; 0: not given, so 5 seconds

	Request    *Queries `yaml:"request,omitempty"`    // $1: a request's id
	User       *Queries `yaml:"user,omitempty"`       // $1: a user's id
	Operations string   `yaml:"operations,omitempty"` // $1: a user's id; columns left and used
}

// Queries is what is asked about a request or a user. Entries has the columns
// request_id, user_id, status, rejected, error_code and raw, the oldest first; the
// others have one column, count, and one row.
type Queries struct {
	Entries     string `yaml:"entries"`
	EngineCalls string `yaml:"engine-calls"`
	Charges     string `yaml:"charges"`
	KeyLookups  string `yaml:"key-lookups,omitempty"` // empty: nobody counts them
}

const (
	usualStatementTime = 5 * time.Second
	mostStatementTime  = time.Minute
	maxQuery           = 16 << 10
)

func (s SQL) timeout() time.Duration { return cmp.Or(s.Timeout, usualStatementTime) }

func (s SQL) can(a action) bool {
	switch a {
	case readAudit:
		return s.Request != nil
	case readUserAudit:
		return s.User != nil
	case readOperations:
		return s.Operations != ""
	}
	return false
}

// checkSQL finds what is well-formed and makes no sense.
func (f File) checkSQL(s SQL) *problem {
	const key = "can.sql"
	switch {
	case (s.DSNVariable == "") == (s.DSNFile == ""):
		return &problem{key, "dsn-variable and dsn-file are both given, or neither is", "one of the two"}
	case s.DSNVariable != "" && !isVariable(s.DSNVariable):
		return &problem{key + ".dsn-variable", fmt.Sprintf("%q is no variable", maskName(s.DSNVariable)), "letters, digits and _"}
	case s.Timeout < 0 || s.Timeout > mostStatementTime:
		return &problem{key + ".timeout", s.Timeout.String(), "a duration up to " + mostStatementTime.String()}
	case (s.Request == nil) != (s.User == nil):
		return &problem{key, "only one of request and user is given", "both, or neither"}
	case s.Request == nil && s.Operations == "":
		return &problem{key, "asks for nothing", "request and user, operations or all of them"}
	}
	type query struct{ key, text string }
	var all []query
	for _, of := range []struct {
		key string
		*Queries
	}{{key + ".request", s.Request}, {key + ".user", s.User}} {
		if q := of.Queries; q != nil {
			all = append(all, query{of.key + ".entries", q.Entries}, query{of.key + ".engine-calls", q.EngineCalls}, query{of.key + ".charges", q.Charges})
			if q.KeyLookups != "" {
				all = append(all, query{of.key + ".key-lookups", q.KeyLookups})
			}
		}
	}
	if s.Operations != "" {
		all = append(all, query{key + ".operations", s.Operations})
	}
	for _, q := range all {
		switch {
		case !strings.Contains(q.text, "$1"):
			return &problem{q.key, "does not ask about $1", "a query with $1 for the id"}
		case strings.Contains(q.text, "$2") || len(q.text) > maxQuery || strings.ContainsRune(q.text, 0):
			return &problem{q.key, "no query that could be asked", fmt.Sprintf("up to %d bytes, and $1 alone for what varies", maxQuery)}
		}
	}
	return nil
}
