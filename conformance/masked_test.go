package conformance_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/target"
)

// parrot is a server that answers with whatever it makes of the credential it was
// sent, byte for byte; health it answers well.
func parrot(t *testing.T, answer func(credential string) string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(10 * time.Second))
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				if r.URL.Path == "/health" {
					fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
					return
				}
				fmt.Fprint(c, answer(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestNoAnswerBringsAKeyIntoAResult: whatever part of an answer a server hides a
// key in, and wherever the text is cut that quotes it.
func TestNoAnswerBringsAKeyIntoAResult(t *testing.T) {
	body := func(text string) string {
		return fmt.Sprintf("HTTP/1.1 429 no\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
	}
	for name, answer := range map[string]func(key string) string{
		"a malformed version":  func(k string) string { return "HTTP/9." + k + " 200 ok\r\n\r\n" },
		"a malformed status":   func(k string) string { return "HTTP/1.1 " + k + " ok\r\n\r\n" },
		"a malformed header":   func(k string) string { return "HTTP/1.1 429 ok\r\nX " + k + ": b\r\n\r\n" },
		"a malformed length":   func(k string) string { return "HTTP/1.1 429 ok\r\nContent-Length: " + k + "\r\n\r\n" },
		"a malformed encoding": func(k string) string { return "HTTP/1.1 429 ok\r\nTransfer-Encoding: " + k + "\r\n\r\n" },
		"a header's name":      func(k string) string { return "HTTP/1.1 401 ok\r\nX-" + k + ": b\r\nContent-Length: 0\r\n\r\n" },
		"where a body is cut":  func(k string) string { return body(strings.Repeat("x", 302-len(k)) + k + " tail") },
		"a header of half a megabyte": func(k string) string {
			return "HTTP/1.1 200 OK\r\nRateLimit-Limit: " + strings.Repeat("9", 500_000) + k + "\r\nContent-Length: 0\r\n\r\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			var keys []target.Key
			for i := range 3 {
				keys = append(keys, target.Key{User: fmt.Sprint("u", i), Plan: "free", Secret: target.NewSecret(fmt.Sprintf("isk_free_%dR7mZk2VtQ9xWb4LpN8cYd", i))})
			}
			tg, err := target.Open(t.Context(), target.File{
				BaseURLs:      []string{parrot(t, answer)},
				Credential:    target.Credential{Header: "Authorization", Template: "Bearer {key}"},
				Operations:    target.Operations{Valid: target.Operation{Method: "POST", Path: "/v1/invoice/calculate", Body: `{"a":1}`}},
				OutsideQuotas: []string{"/health"},
				Allowances:    map[string]target.Allowance{"free": {RequestsPerMinute: 6000, Burst: 5, Concurrency: 2}},
			}, target.Options{Keys: keys})
			require.NoError(t, err)
			defer tg.Close()
			c, err := conformance.Run(t.Context(), tg, conformance.Options{Clauses: []string{"RATE-1"}})
			require.NoError(t, err)
			data, err := json.Marshal(c)
			require.NoError(t, err)
			text := string(data)
			require.Contains(t, text, "isk_free_…", "keys are masked, so there was something to mask")
			for _, k := range keys {
				for _, piece := range []string{k.Secret.Reveal()[9:21], k.Secret.Reveal()[19:31]} {
					require.NotContains(t, strings.ToLower(text), strings.ToLower(piece))
				}
			}
			require.Less(t, len(data), 1<<20)
		})
	}
}
