package target_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

func TestOverTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+theKey {
			w.WriteHeader(401)
			return
		}
		body, err := io.ReadAll(r.Body) // sends 100 Continue
		w.Header().Set("RateLimit-Limit", "10")
		w.Header().Set("RateLimit-Remaining", "9")
		w.Header().Set("RateLimit-Reset", "6")
		if err == nil {
			w.Write(append([]byte(r.Proto+" "), body...))
		}
	}))
	defer s.Close()
	f := fileFor(s.URL)
	f.TLS = &target.TLS{CAFile: caFile(t, s)}
	f.Can.StalledUpload = true
	tg := open(t, f)
	u := lease(t, tg, "free", 1)
	e := tg.Send(t.Context(), u, tg.Valid())
	require.NoError(t, e.Err)
	require.Equal(t, `HTTP/1.1 {"a":1}`, string(e.Body))

	h, e := tg.Hold(t.Context(), u, tg.Valid(), target.PlaceUpload)
	require.NotNil(t, h, "%v", e.Err)
	e = h.Finish(t.Context())
	require.NoError(t, e.Err)
	require.Equal(t, `HTTP/1.1 {"a":1}`, string(e.Body))
	for _, leave := range []func(*target.Held){(*target.Held).Drop, (*target.Held).Reset} {
		h, e = tg.Hold(t.Context(), u, tg.Valid(), target.PlaceUpload)
		require.NotNil(t, h, "%v", e.Err)
		leave(h)
		require.Error(t, h.Await(t.Context()).Err)
	}
}

// caFile is a file with the certificate of s.
func caFile(t *testing.T, s *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	return path
}

// TestWhomToTrust: whom the target file names and nobody else, by the name that
// it says; without a word of it, whom this machine trusts.
func TestWhomToTrust(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{ownCertificate(t)}}
	s.StartTLS()
	defer s.Close()
	other := httptest.NewTLSServer(http.NotFoundHandler()) // this machine trusts it: see TestMain
	defer other.Close()
	const address, name, stranger = "https://127.0.0.1", "https://localhost", "certificate signed by unknown authority"
	for _, c := range []struct {
		does string
		host string
		tls  *target.TLS
		says string // empty: it opens
	}{
		{"says nothing", address, nil, stranger},
		{"trusts it", address, &target.TLS{CAFile: caFile(t, s)}, ""},
		{"trusts it under another name", name, &target.TLS{CAFile: caFile(t, s)}, "not localhost"},
		{"trusts it, and says its name", name, &target.TLS{CAFile: caFile(t, s), ServerName: "invoices.example"}, ""},
		{"says another name", address, &target.TLS{CAFile: caFile(t, s), ServerName: "other.example"}, "not other.example"},
		{"trusts another", address, &target.TLS{CAFile: caFile(t, other)}, stranger},
		{"says its name alone", address, &target.TLS{ServerName: "invoices.example"}, stranger},
	} {
		t.Run(c.does, func(t *testing.T) {
			f := fileFor(c.host + strings.TrimPrefix(s.URL, address))
			f.TLS = c.tls
			tg, err := target.Open(t.Context(), f, target.Options{Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret(theKey)}}})
			if c.says == "" {
				require.NoError(t, err)
				require.NoError(t, tg.Close())
				return
			}
			require.ErrorIs(t, err, target.ErrAway)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestACAFileThatIsNone: it is refused before anybody is asked.
func TestACAFileThatIsNone(t *testing.T) {
	f := fileFor("https://127.0.0.1:1")
	for content, says := range map[string]string{"": "no certificate in it; accepted: certificates in PEM", "-": "no such file"} {
		path := filepath.Join(t.TempDir(), "ca.pem")
		if content != "-" {
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		}
		f.TLS = &target.TLS{CAFile: path}
		_, err := target.Open(t.Context(), f, target.Options{Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret(theKey)}}})
		require.ErrorContains(t, err, path+": "+says)
		require.NotErrorIs(t, err, target.ErrAway)
	}
	f.TLS = &target.TLS{}
	_, err := target.Open(t.Context(), f, target.Options{})
	require.EqualError(t, err, "tls: empty; accepted: ca-file, server-name, client-certificate and client-key, or insecure")
	f.TLS, f.BaseURLs = &target.TLS{ServerName: "x"}, []string{"http://127.0.0.1:1"}
	_, err = target.Open(t.Context(), f, target.Options{})
	require.EqualError(t, err, "tls: no URL of base-urls is https; accepted: https URLs, or leave it out")
}

// ownCertificate is one that nobody trusts.
func ownCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"invoices.example"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestAServerThatAsksWhoWeAre: it is shown the client certificate of the target
// file, and lets nobody in without.
func TestAServerThatAsksWhoWeAre(t *testing.T) {
	own := ownCertificate(t)
	leaf, err := x509.ParseCertificate(own.Certificate[0])
	require.NoError(t, err)
	known := x509.NewCertPool()
	known.AddCert(leaf)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.TLS.PeerCertificates[0].DNSNames[0])
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known}
	s.StartTLS()
	defer s.Close()

	der, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	require.NoError(t, err)
	otherKey, err := x509.MarshalPKCS8PrivateKey(ownCertificate(t).PrivateKey)
	require.NoError(t, err)
	dir := folder(t, map[string]string{
		"c.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]})),
		"k.pem": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"o.pem": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: otherKey})),
		"e.pem": "",
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(in("w.pem"), nil, 0o644))
	for name, c := range map[string]struct {
		tls  target.TLS
		says string
	}{
		"with it":            {target.TLS{CAFile: caFile(t, s), ClientCertificate: in("c.pem"), ClientKey: in("k.pem")}, ""},
		"and trusting all":   {target.TLS{Insecure: target.Insecure, ClientCertificate: in("c.pem"), ClientKey: in("k.pem")}, ""},
		"without":            {target.TLS{CAFile: caFile(t, s)}, "certificate required"},
		"another's key":      {target.TLS{CAFile: caFile(t, s), ClientCertificate: in("c.pem"), ClientKey: in("o.pem")}, "private key does not match public key; accepted: a certificate and its key without a password, in PEM"},
		"no certificate":     {target.TLS{CAFile: caFile(t, s), ClientCertificate: in("gone.pem"), ClientKey: in("k.pem")}, "gone.pem: no such file"},
		"an empty file":      {target.TLS{CAFile: caFile(t, s), ClientCertificate: in("e.pem"), ClientKey: in("k.pem")}, "accepted: a certificate and its key"},
		"a key for everyone": {target.TLS{CAFile: caFile(t, s), ClientCertificate: in("c.pem"), ClientKey: in("w.pem")}, "mode 0644 lets others read it"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fileFor(s.URL)
			f.TLS, f.OutsideQuotas = &c.tls, []string{"/health"}
			tg, err := target.Open(t.Context(), f, target.Options{Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret(theKey)}}})
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				require.NotContains(t, err.Error(), "\n")
				return
			}
			require.NoError(t, err)
			defer tg.Close()
			e := tg.Send(t.Context(), lease(t, tg, "free", 1), tg.Valid())
			require.NoError(t, e.Err)
			require.Equal(t, "invoices.example", string(e.Body))
			require.Equal(t, c.tls.Insecure != "", strings.Contains(tg.Describe(), "whoever answers (tls.insecure)"), tg.Describe())
		})
	}
}

// TestTrustingAnybody: only where the target file says so in as many words.
func TestTrustingAnybody(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{ownCertificate(t)}}
	s.StartTLS()
	defer s.Close()
	f := fileFor(s.URL)
	f.TLS = &target.TLS{Insecure: target.Insecure}
	require.Contains(t, open(t, f).Describe(), "HTTP/1.1, whoever answers (tls.insecure)  ")
	f.Can.Control = &target.ControlAddress{URL: "https://control.example"}
	_, err := target.Open(t.Context(), f, target.Options{})
	require.EqualError(t, err, "can.control.url: tls.insecure would show the token to whoever answers; accepted: a control server on loopback, or tls.ca-file")
}
