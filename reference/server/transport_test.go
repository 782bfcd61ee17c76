package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

// transcript is a log that can be read while it is written.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// serial is that of the certificate the server shows now.
func (f *fixture) serial() int64 {
	f.Helper()
	c := f.dialTLS("h2")
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// TestCertificateIsReadAgain when its files change, and not before both fit.
func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	cert, key := writePair(t, dir, 1)
	var log transcript
	f := start(t, server.Config{Transport: server.Transport{Certificate: cert, Key: key}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.EqualValues(t, 1, f.serial())
	require.Equal(t, []string{"invoices.example"}, f.Certificate().DNSNames)

	next := t.TempDir()
	nextCert, nextKey := writePair(t, next, 2)
	require.NoError(t, os.Rename(nextCert, cert))
	for range 3 {
		require.EqualValues(t, 1, f.serial(), "the key is still that of the old one")
	}
	require.Equal(t, 1, strings.Count(log.String(), "cannot be used"), "said once")
	require.NoError(t, os.Rename(nextKey, key))
	require.EqualValues(t, 2, f.serial())

	require.NoError(t, os.Remove(key))
	require.EqualValues(t, 2, f.serial())
	writePair(t, dir, 3)
	require.EqualValues(t, 3, f.serial())
	require.EqualValues(t, 3, f.Certificate().SerialNumber.Int64())
}

// TestCertificateThatCannotBeUsed: nothing is started with it.
func TestCertificateThatCannotBeUsed(t *testing.T) {
	cert, key := writePair(t, t.TempDir(), 1)
	_, other := writePair(t, t.TempDir(), 1)
	none := filepath.Join(t.TempDir(), "none.pem")
	for says, transport := range map[string]server.Transport{
		"private key does not match public key": {Certificate: cert, Key: other},
		none + ": no such file or directory":    {Certificate: none, Key: key},
		"certificate " + cert + " with key : ":  {Certificate: cert},
	} {
		_, err := server.Open(t.Context(), server.Config{Listen: "127.0.0.1:0", Transport: transport})
		require.ErrorContains(t, err, says)
	}
}

// TestOldTLSIsRefused: nothing below 1.2.
func TestOldTLSIsRefused(t *testing.T) {
	cert, key := writePair(t, t.TempDir(), 1)
	f := start(t, server.Config{Transport: server.Transport{Certificate: cert, Key: key}})
	for version, ok := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c := tls.Client(f.dial(), &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		require.Equal(t, ok, c.Handshake() == nil, tls.VersionName(version))
	}
}

// TestDrain: a stopping server says so where load balancers ask and goes on
// serving, on connections that end with their answer; then it accepts none, and
// what is in flight may end.
func TestDrain(t *testing.T) {
	f := start(t, server.Config{Transport: server.Transport{H2C: true, DrainDelay: time.Hour}})
	f.cutOff = true
	u := f.newUser("free")
	kept := f.h2("h2c")
	require.Equal(t, "200", kept.answer(kept.send(operation(u.Keys[0]), goodInvoice)).status)
	f.engine(u, wire.EngineOK)
	ready := f.send(http.MethodGet, "/ready", "", "")
	require.Equal(t, http.StatusOK, ready.StatusCode)

	ctx, enough := context.WithCancel(context.Background())
	defer enough()
	closed := make(chan error, 1)
	go func() { closed <- f.Close(ctx) }()
	f.eventually("it is not ready", func() bool {
		ready = f.send(http.MethodGet, "/ready", "", "")
		return ready.StatusCode == http.StatusServiceUnavailable
	})
	require.Equal(t, `{"status":"draining"}`, ready.body)
	require.Equal(t, http.StatusOK, f.send(http.MethodGet, "/health", "", "").StatusCode, "it is well")
	got, _ := f.converse(f.dial(), head(u.Keys[0], len(goodInvoice))+goodInvoice+"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, "200 closed", got)
	id := kept.send(operation(u.Keys[0]), goodInvoice)
	require.Equal(t, "200", kept.answer(id).status, "and so on HTTP/2")
	for !kept.goodbye {
		kept.take()
	}
	enough()
	<-closed // whether the connection that is left was seen to be idle before ctx ended does not matter
	_, err := http.Get(f.URL() + "/health")
	require.Error(t, err)
}

// TestDrainTimeout: what is in flight for longer is cut off, and that is said.
func TestDrainTimeout(t *testing.T) {
	f := start(t, server.Config{Transport: server.Transport{DrainTimeout: 20 * time.Millisecond}, Alter: func(p *wiring.Parts) { p.Bounds.Engine = time.Hour }})
	f.cutOff = true
	u := f.newUser("free")
	f.engine(u, wire.EngineTimeout)
	c := f.hold(u)
	f.eventually("it is in flight", func() bool { return f.limiter.SubjectsInFlight() == 1 })
	require.ErrorContains(t, f.Close(context.Background()), "were cut off")
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	require.Zero(t, f.limiter.SubjectsInFlight())
}

// TestDrainIsForServersThatServe: one that cannot start does not wait.
func TestDrainIsForServersThatServe(t *testing.T) {
	f := start(t, server.Config{})
	_, err := server.Open(t.Context(), server.Config{
		Listen: "127.0.0.1:0", Control: f.Addr().String(), Transport: server.Transport{DrainDelay: time.Hour},
	})
	require.ErrorContains(t, err, "address already in use")
}
