package replay_test

import (
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
)

const invoice = `{"currency":"EUR","lines":[{"description":"x","quantity":"2","unitPrice":"1.50","taxRate":"19"}]}`

// storm sends requests of all users at once, with good and bad keys, good and
// bad bodies. It returns how many were sent, how many of them with a good key,
// and how many of these were refused.
func storm(t *testing.T, s *server.Server, each int) (sent, known, refused int64) {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	for i, u := range s.Users() {
		for k, key := range u.Keys {
			group.Go(func() {
				for n := range each {
					body, secret, good := invoice, key.Reveal(), true
					switch (i + k + n) % 7 {
					case 0:
						body = "{}"
					case 1:
						secret, good = "isk_free_wrong", false
					}
					status := post(t, s.URL()+"/v1/invoice/calculate", secret, body)
					mu.Lock()
					sent++
					if good {
						known++
					}
					if good && status == http.StatusTooManyRequests {
						refused++
					}
					mu.Unlock()
				}
			})
		}
	}
	group.Wait()
	return sent, known, refused
}

func post(t *testing.T, url, secret, body string) (status int) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Error(err)
	}
	return res.StatusCode
}

// Two runs of the real server over HTTP, one log: every decision of both comes
// out as recorded, and the log holds what the clients saw.
func TestServersOwnLogAgrees(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.jsonl")
	// Nobody's key is refused for the wrong ones that come from the same address.
	roomy, err := policy.NewAllowance(1_000_000, 1_000_000, 100_000)
	require.NoError(t, err)
	var sent, known, refused int64
	for range 2 {
		s, err := server.Open(t.Context(), server.Config{
			Listen: "127.0.0.1:0", Clock: control.ClockReal, Users: 2, APILog: path, Logger: slog.New(slog.DiscardHandler),
			Anonymous: anonymous.Config{Allowance: roomy},
		})
		require.NoError(t, err)
		n, k, r := storm(t, s, 40)
		sent, known, refused = sent+n, known+k, refused+r
		require.NoError(t, s.Close(t.Context()))
	}
	require.Positive(t, refused)

	log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.File(path)}, accesslog.Options{Scope: "/v1/invoice"})
	require.NoError(t, err)
	require.Empty(t, log.Quality.Dropped)
	r, err := replay.Run(t.Context(), log, replay.Question{})
	require.NoError(t, err)
	require.Equal(t, sent, r.Entries)
	require.Equal(t, known, r.Attempts)
	require.Equal(t, refused, r.Rejected)
	require.Nil(t, r.Agreement.First)
	require.Equal(t, record.Agreed{Compared: known, Agreed: known, Runs: 2}, *r.Agreement)
}
