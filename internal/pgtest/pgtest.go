// Package pgtest gives tests a real PostgreSQL that is theirs alone: a server of
// the installed binaries in a temporary directory, reached by a Unix socket, so
// that packages tested in parallel share neither port nor data. Most callers
// want [Database]; tests of outages want a server of their own, [Start].
//
// Nothing stays behind: each server has a guard process that stops it and
// removes its directory when the test process is gone, however it went. As root,
// which PostgreSQL refuses, the server runs as the user postgres or nobody.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser = "brimline"
	patience  = 30 * time.Second // with a server that is busy or away
)

// shared is the server of this test process; it starts with the first that asks
// and ends with the process.
var shared = sync.OnceValues(open)

// number makes the names of databases differ.
var number atomic.Int64

// Database creates an empty database on the server that the tests of this
// process share, drops it when the test ends, and returns its URL.
func Database(t testing.TB) string {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	name := s.create(t)
	t.Cleanup(func() {
		if err := s.exec("drop database if exists " + name + " with (force)"); err != nil {
			t.Error(err)
		}
	})
	return s.url(name)
}

// Start starts a server that only this test uses, and ends it with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Database creates an empty database that lives as long as the server, and
// returns its URL, which outlives a stop and a start.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.url(s.create(t))
}

func (s *Server) create(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", number.Add(1))
	if err := s.exec("create database " + name); err != nil {
		t.Fatal(err)
	}
	return name
}

func (s *Server) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

func (s *Server) url(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(superuser),
		Path:     "/" + database,
		RawQuery: url.Values{"host": {s.dir}}.Encode(),
	}
	return u.String()
}
