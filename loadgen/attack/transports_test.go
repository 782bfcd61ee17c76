package attack_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/attack"
	"github.com/invoicespec/brimline/reports/record"
)

// spoken is a way to speak with a server.
type spoken struct {
	tls      bool
	protocol target.Protocol
	name     string // in the record
	proto    string // as the server sees it
}

func ways() map[string]spoken {
	return map[string]spoken{
		"HTTP/1.1":            {false, "", record.TransportLean, "HTTP/1.1"},
		"HTTP/1.1, said so":   {false, target.HTTP1, record.TransportLean, "HTTP/1.1"},
		"HTTP/1.1 over TLS":   {true, "", record.TransportHTTP1, "HTTP/1.1"},
		"HTTP/2 in the clear": {false, target.HTTP2, record.TransportHTTP2, "HTTP/2.0"},
		"HTTP/2 over TLS":     {true, target.HTTP2, record.TransportHTTP2, "HTTP/2.0"},
	}
}

// speaks starts a server of one kind, which takes both versions.
func speaks(t *testing.T, w spoken, h http.HandlerFunc) func(*attack.Site) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetHTTP2(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	var trust *tls.Config
	if w.tls {
		s.StartTLS()
		trust = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return func(o *attack.Site) { o.BaseURLs, o.TLS, o.Protocol = []string{s.URL}, trust, w.protocol }
}

// TestTransportsAreChosenByTheTarget: named, and over each of them all is admitted
// that was sent, with and without a body.
func TestTransportsAreChosenByTheTarget(t *testing.T) {
	for name, w := range ways() {
		for _, method := range []string{"POST", "GET"} {
			t.Run(name+", "+method, func(t *testing.T) {
				var mu sync.Mutex
				protos, bodies := map[string]bool{}, map[int64]bool{}
				change := speaks(t, w, func(_ http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					protos[r.Proto], bodies[r.ContentLength] = true, true
				})
				r, p := over(t.Context(), t, func(o *attack.Site) {
					change(o)
					alter(o, func(q *attack.Request) {
						if q.Method = method; method == "GET" {
							q.Body = nil
						}
					})
				})
				require.Equal(t, w.name, r.Generator.Transport)
				require.Equal(t, map[string]bool{w.proto: true}, protos)
				require.Len(t, bodies, 1)
				require.Positive(t, p.Admitted)
				require.Equal(t, p.Sent, p.Admitted)
				require.Equal(t, r.Generator.Results, r.Generator.Attempts)
				require.Positive(t, r.Generator.Connections)
				require.LessOrEqual(t, r.Generator.Connections, r.Generator.Workers, "over HTTP/2 one is enough, but others may be on their way before it is there")
			})
		}
	}
}

// TestStopOverEveryTransport: a run that is stopped ends, whoever does not answer,
// and accounts for all of it.
func TestStopOverEveryTransport(t *testing.T) {
	for name, w := range ways() {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			hang := make(chan struct{})
			change := speaks(t, w, func(http.ResponseWriter, *http.Request) {
				stop()
				<-hang
			})
			t.Cleanup(func() { close(hang) }) // before the server is closed
			o := site()
			change(&o)
			const d = time.Minute // it is stopped by the first request
			a, err := attack.New(attack.Config{Members: members(arrival.Constant(perSecond(t, 50)), 4, d), Duration: d, Seed: seed, Site: o})
			require.NoError(t, err)
			r, err := a.Run(ctx)
			require.NoError(t, err)
			r.Schema = record.RunSchema
			require.NoError(t, r.Check())
			p := r.Plans[0]
			require.True(t, r.Interrupted)
			require.Positive(t, p.Sent)
			require.Equal(t, []record.Count{{Name: "cut off", N: p.Sent}}, p.TransportErrors)
			require.Positive(t, p.Unsent)
		})
	}
}
