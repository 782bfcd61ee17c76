package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/settings"
	"github.com/invoicespec/brimline/reference/server"
)

// transport is what the settings say of connections.
func (s *serveSettings) transport(names *settings.Settings) (server.Transport, error) {
	b := s.Brimline
	t := server.Transport{
		Certificate: b.TLSCert, Key: b.TLSKey, H2C: b.H2C,
		Connections: int(b.MaxConnections), DrainDelay: b.DrainDelay, DrainTimeout: b.DrainTimeout,
	}
	const pair = "a file with a certificate (PEM), and one with its private key"
	switch {
	case b.TLSCert == "" && b.TLSKey == "":
		return t, nil
	case b.TLSKey == "":
		return t, names.Refuse("brimline.tls-cert", "there is no brimline.tls-key beside it", pair)
	case b.TLSCert == "":
		return t, names.Refuse("brimline.tls-key", "there is no brimline.tls-cert beside it", pair)
	case b.H2C:
		return t, names.Refuse("brimline.h2c", "with TLS clients choose HTTP/2 by themselves", "false, or no brimline.tls-cert")
	}
	if _, err := os.Stat(b.TLSKey); err != nil {
		return t, names.Refuse("brimline.tls-key", err.Error(), pair)
	}
	if _, err := tls.LoadX509KeyPair(b.TLSCert, b.TLSKey); err != nil {
		return t, names.Refuse("brimline.tls-cert", fmt.Sprintf("%s: %v", b.TLSCert, err), pair)
	}
	return t, nil
}

// trust is what a target file says of a server's certificate: to trust it and no
// other and, where it names only other hosts, by which of its names.
func trust(s *server.Server, file string) (*target.TLS, error) {
	leaf := s.Certificate()
	if leaf == nil {
		return nil, nil
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	t := &target.TLS{CAFile: path}
	if at := s.Addr().(*net.TCPAddr); leaf.VerifyHostname(at.IP.String()) != nil && len(leaf.DNSNames) > 0 {
		t.ServerName = leaf.DNSNames[0]
	}
	return t, nil
}

// curl is how a command reaches a server that is to be trusted so.
func curl(s *server.Server, t *target.TLS) (options, base string) {
	if t == nil {
		return "", s.URL()
	}
	options = " --cacert " + t.CAFile
	if t.ServerName == "" {
		return options, s.URL()
	}
	at := s.Addr().(*net.TCPAddr)
	return fmt.Sprintf("%s --resolve %s:%d:%s", options, t.ServerName, at.Port, at.IP), fmt.Sprintf("https://%s:%d", t.ServerName, at.Port)
}
