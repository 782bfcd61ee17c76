package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

func TestUsersToStartWith(t *testing.T) {
	f := start(t, server.Config{Users: 3})
	require.Len(t, f.Users(), 3*5)
	seen := map[string]bool{}
	for _, u := range f.Users() {
		require.Len(t, u.Keys, server.KeysPerUser)
		require.False(t, seen[u.ID])
		seen[u.ID] = true
		require.Contains(t, f.Plans(), u.Plan)
	}
	for _, k := range f.Users()[0].Keys {
		require.Equal(t, http.StatusOK, f.calculate(k.Reveal()).StatusCode)
	}
}

func TestOpenRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for name, c := range map[string]struct {
		cfg  server.Config
		want string
		is   error
	}{
		"a port in use":          {server.Config{Listen: taken.Addr().String()}, "address already in use", syscall.EADDRINUSE},
		"a control port in use":  {server.Config{Listen: "127.0.0.1:0", Control: taken.Addr().String()}, "control: ", syscall.EADDRINUSE},
		"every interface":        {server.Config{Listen: ":0"}, `address ":0"`, server.ErrRemote},
		"every interface, IPv4":  {server.Config{Listen: "0.0.0.0:0"}, "", server.ErrRemote},
		"another machine":        {server.Config{Listen: "192.0.2.1:0"}, "", server.ErrRemote},
		"control for everybody":  {server.Config{Listen: "127.0.0.1:0", Control: "[::]:0"}, "control: ", server.ErrRemote},
		"control, by word":       {server.Config{Listen: "127.0.0.1:0", Control: "0.0.0.0:0", AllowRemote: true}, "control: ", server.ErrRemote},
		"no address":             {server.Config{Listen: "nonsense"}, `address "nonsense"`, nil},
		"another clock":          {server.Config{Listen: "127.0.0.1:0", Clock: "broken"}, `clock "broken": want real, shifted or frozen`, nil},
		"a log in no folder":     {server.Config{Listen: "127.0.0.1:0", APILog: "/nonexistent/x"}, "open the API log", os.ErrNotExist},
		"a guard that is not in": {server.Config{Listen: "127.0.0.1:0", Alter: guarded}, "guard replicas: two of them", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := server.Open(context.Background(), c.cfg)
			require.Nil(t, s)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
		})
	}
}

func guarded(p *wiring.Parts) {
	p.Guards = append(p.Guards, wiring.Guard{Name: "replicas", Check: func() error { return errors.New("two of them") }})
}

func TestRemoteByWord(t *testing.T) {
	s, err := server.Open(context.Background(), server.Config{Listen: "0.0.0.0:0", AllowRemote: true})
	require.NoError(t, err)
	require.NoError(t, s.Close(context.Background()))
}

// TestCloseDrains: what is in flight ends, its entry is in the log, and gates do
// not hold anybody back (LOG-5).
func TestCloseDrains(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.jsonl")
	f := start(t, server.Config{APILog: path})
	var held []*net.TCPConn
	for _, place := range []wire.Place{wire.PlaceAuthentication, wire.PlaceEngine, wire.PlaceResponse} {
		u := f.newUser("free")
		f.gate(http.MethodPut, u, place)
		held = append(held, f.hold(u))
		f.waiting(u, place, 1)
	}
	require.NoError(t, f.Close(context.Background()))
	for _, c := range held {
		require.Equal(t, http.StatusOK, readAnswer(t, c).StatusCode)
	}
	log, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(log), "\n"))
	_, err = net.Dial("tcp", f.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// TestCloseCutsOff: what does not end in time is cut off, and Close says so.
func TestCloseCutsOff(t *testing.T) {
	f := start(t, server.Config{Alter: func(p *wiring.Parts) { p.Bounds.Stopped = 50 * time.Millisecond }})
	u := f.newUser("free")
	c := f.dial()
	_, err := io.WriteString(c, head(u.Keys[0], 1000)+"{")
	require.NoError(t, err)
	f.eventually("it is in flight", func() bool { return f.limiter.SubjectsInFlight() == 1 })
	f.cutOff = true
	err = f.Close(context.Background())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "cut off")
	require.Zero(t, f.limiter.SubjectsInFlight(), "its handler has ended")
	require.Equal(t, err, f.Close(context.Background()), "a second time changes nothing")
}

func TestReadPlans(t *testing.T) {
	const plan = "  free: { requests-per-minute: 10, burst: 10, concurrency: 2, operations: 100 }\n"
	for name, c := range map[string]struct{ text, want string }{
		"good":            {"plans:\n" + plan, ""},
		"no plan":         {"plans: {}\n", ":1: plans: "},
		"unknown key":     {"plans:\n" + strings.Replace(plan, "burst", "bursts", 1), ":2: "},
		"fraction":        {"plans:\n" + strings.Replace(plan, "burst: 10", "burst: 1.5", 1), ":2: plans.free.burst: "},
		"null":            {"plans:\n" + strings.Replace(plan, "burst: 10", "burst: null", 1), ":2: plans.free.burst: "},
		"zero":            {"plans:\n" + strings.Replace(plan, "burst: 10", "burst: 0", 1), ":2: plans.free.burst: 0 is out of range; accepted: 1 to 1000000"},
		"out of range":    {"plans:\n" + strings.Replace(plan, "concurrency: 2", "concurrency: 100001", 1), ":2: plans.free.concurrency: 100001 is out of range; accepted: 1 to 100000"},
		"operations":      {"plans:\n" + strings.Replace(plan, "operations: 100", "operations: -1", 1), ":2: plans.free.operations: -1 is out of range"},
		"name":            {"plans:\n" + strings.Replace(plan, "free", "Free Plan", 1), ":2: plans.Free Plan: "},
		"doubled":         {"plans:\n" + plan + plan, ":3: "},
		"second document": {"plans:\n" + plan + "---\nplans: {}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "plans.yaml")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			plans, err := server.ReadPlans(path)
			if name == "good" {
				require.NoError(t, err)
				require.EqualValues(t, 100, plans["free"].Operations)
				return
			}
			require.ErrorContains(t, err, path+c.want)
		})
	}
	_, err := server.ReadPlans("/nonexistent/plans.yaml")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestDefaultPlans are the numbers of the contract.
func TestDefaultPlans(t *testing.T) {
	var got []string
	for name, p := range server.DefaultPlans() {
		e := p.Entitlements
		got = append(got, fmt.Sprint(name, " ", e["requests-per-minute"], " ", e["burst"], " ", e["concurrency"], " ", p.Operations))
	}
	require.ElementsMatch(t, []string{
		"free 10 10 2 100", "starter 60 20 5 1000", "plus 120 40 10 5000", "pro 300 100 20 20000", "enterprise 300 100 20 100000",
	}, got)
}
