package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/server"
)

// logTrials are of faults that show once a process has ended.
func logTrials() map[string]startTrial {
	const right = "1 of the success, 1 of the rejection"
	return map[string]startTrial{
		"entries-written-late":    {entriesAfterAStop, right, "0 of the success, 0 of the rejection"},
		"rejections-written-late": {entriesAfterAStop, right, "1 of the success, 0 of the rejection"},
		"log-begins-anew":         {entriesAfterAStop, right, "0 of the success, 0 of the rejection"},
		"entry-delivered-twice":   {entriesAfterAStop, right, "2 of the success, 2 of the rejection"},
	}
}

// entriesAfterAStop counts the entries of a success and of a rejection that the
// process before has answered.
func entriesAfterAStop(t *testing.T, f fault.Fault) string {
	k, err := account.NewKey("free")
	require.NoError(t, err)
	s := &site{T: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}}
	start := func(path string) {
		s.server, err = server.Open(t.Context(), server.Config{
			Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Clock: wire.ClockFrozen, APILog: path, Alter: f.Apply,
			Known: []server.User{{ID: "user-1", Plan: "free", Keys: []account.Key{k}}},
		})
		require.NoError(t, err)
	}
	stop := func() { require.NoError(t, s.server.Close(context.WithoutCancel(t.Context()))) }
	path := filepath.Join(t.TempDir(), "api.log")
	start(path)
	var ids []string
	for range 11 {
		ids = append(ids, s.send(valid, "Bearer "+k.Reveal()).show(requestID))
	}
	stop()
	start(path)
	defer stop()
	entries := func(id string) int {
		var a wire.Audit
		s.control(http.MethodGet, "/audit/requests/"+id, nil, &a)
		return len(a.Entries)
	}
	own := s.send(ask{path: "/v1/invoice/unknown"}, "Bearer "+k.Reveal()).show(requestID)
	s.until("the entry of a request of its own is there", func() bool { return entries(own) == 1 })
	return fmt.Sprintf("%d of the success, %d of the rejection", entries(ids[0]), entries(ids[10]))
}
