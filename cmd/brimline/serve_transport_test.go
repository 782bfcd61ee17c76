package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

// pairFor writes a certificate for hosts and its key.
func pairFor(t *testing.T, hosts ...string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}

// TestServeOverTLS: the target file that serve writes is enough to judge it and
// to load it, whatever hosts its certificate is for.
func TestServeOverTLS(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "invoices.example"} {
		t.Run(host, func(t *testing.T) {
			cert, key := pairFor(t, host)
			file := filepath.Join(t.TempDir(), "target.yaml")
			s := runServe(t, "--tls-cert", cert, "--tls-key", key, "--write-target", file, "--users", "1")
			out := s.stdout.String()
			require.Contains(t, out, "listening on https://127.0.0.1:")
			require.Contains(t, out, "curl -i --cacert "+cert+" ")
			require.Equal(t, host != "127.0.0.1", strings.Contains(out, "--resolve "+host+":"))
			f, err := target.ReadFile(file)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(f.BaseURLs[0], "https://"))

			var stdout, stderr bytes.Buffer
			w := world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr}
			require.Zero(t, run(t.Context(), []string{"check", "--target", file, "--clauses", "AUTH-1"}, w), stderr.String()+stdout.String())

			scenario := filepath.Join(t.TempDir(), "load.yaml")
			require.NoError(t, os.WriteFile(scenario, []byte("duration: 1s\nseed: 1\npopulations:\n  - { plan: pro, users: 1, arrival: constant, rate: 1x, on-429: ignore }\n"), 0o600))
			require.Zero(t, run(t.Context(), []string{"load", scenario, "--target", file, "--out", t.TempDir()}, w), stderr.String()+stdout.String())
			require.NotContains(t, stdout.String(), "tls", "no request failed for its certificate")
			require.Zero(t, s.ended())
		})
	}
}

// TestServeTransportThatMakesNoSense is refused before anything listens.
func TestServeTransportThatMakesNoSense(t *testing.T) {
	cert, key := pairFor(t, "127.0.0.1")
	_, other := pairFor(t, "127.0.0.1")
	const pair = "; accepted: a file with a certificate (PEM), and one with its private key"
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no key":          {[]string{"--tls-cert", cert}, "brimline.tls-cert: there is no brimline.tls-key beside it" + pair},
		"no certificate":  {[]string{"--tls-key", key}, "brimline.tls-key: there is no brimline.tls-cert beside it" + pair},
		"another's key":   {[]string{"--tls-cert", cert, "--tls-key", other}, "brimline.tls-cert: " + cert + ": tls: private key does not match public key" + pair},
		"no such key":     {[]string{"--tls-cert", cert, "--tls-key", key + "x"}, "brimline.tls-key: stat " + key + "x: no such file or directory" + pair},
		"no such file":    {[]string{"--tls-cert", cert + "x", "--tls-key", key}, cert + "x: no such file or directory" + pair},
		"h2c beside TLS":  {[]string{"--tls-cert", cert, "--tls-key", key, "--h2c"}, "brimline.h2c: with TLS clients choose HTTP/2 by themselves; accepted: false, or no brimline.tls-cert"},
		"no connection":   {[]string{"--max-connections", "0"}, "brimline.max-connections: 0 is out of range; accepted: a whole number from 1 to 1000000"},
		"a drain too far": {[]string{"--drain-delay", "1h"}, "brimline.drain-delay: 1h0m0s is out of range; accepted: a duration from 0s to 10m"},
		"no time":         {[]string{"--drain-timeout", "0s"}, "brimline.drain-timeout: 0s is out of range; accepted: a duration from 1s to 1h"},
		"beyond loopback": {[]string{"--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key}, "not a loopback address: other machines could reach it"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), append([]string{"serve", "--listen", "127.0.0.1:0"}, c.args...), world{
				getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
			})
			require.Equal(t, exitUsage, code)
			require.Contains(t, stderr.String(), c.says)
			require.Equal(t, 1, strings.Count(stderr.String(), "\n"))
			require.Empty(t, stdout.String())
		})
	}
}
