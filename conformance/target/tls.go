package target

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/internal/files"
)

// maxCAFile is the largest file of certificates that is read.
const maxCAFile = 1 << 20

// Insecure is the word that [TLS] asks for before anybody is believed.
const Insecure = "anyone-may-answer-and-read-the-keys"

// TLS says whom to trust at https URLs of the deployment, where that is not
// whoever this machine trusts, and what we show of ourselves.
type TLS struct {
	CAFile            string `yaml:"ca-file,omitempty"`            // PEM: trust these, and no others
	ServerName        string `yaml:"server-name,omitempty"`        // that the certificate must have, in place of the URL's host
	ClientCertificate string `yaml:"client-certificate,omitempty"` // PEM file: who we are, and the chain that says so
	ClientKey         string `yaml:"client-key,omitempty"`         // PEM file; nobody but its owner may read it
	Insecure          string `yaml:"insecure,omitempty"`           // [Insecure], or nothing: no certificate is looked at
}

// checkTLS finds what makes no sense in whom to trust.
func (f File) checkTLS() *problem {
	t := f.TLS
	switch {
	case t == nil:
		return nil
	case *t == (TLS{}):
		return &problem{"tls", "empty", "ca-file, server-name, client-certificate and client-key, or insecure"}
	case !slices.ContainsFunc(f.BaseURLs, func(u string) bool { return strings.HasPrefix(u, "https://") }):
		return &problem{"tls", "no URL of base-urls is https", "https URLs, or leave it out"}
	case t.ClientCertificate != "" && t.ClientKey == "":
		return &problem{"tls.client-key", "missing beside client-certificate", "the file with its key"}
	case t.ClientKey != "" && t.ClientCertificate == "":
		return &problem{"tls.client-certificate", "missing beside client-key", "the file with its certificate"}
	case t.Insecure != "" && t.Insecure != Insecure:
		return &problem{"tls.insecure", fmt.Sprintf("%q", t.Insecure), Insecure + ", in these words, or leave it out"}
	case t.Insecure != "" && t.CAFile != "":
		return &problem{"tls.insecure", "given beside ca-file", "one of the two"}
	}
	return nil
}

// unverified reports whether nobody's certificate is looked at.
func (f File) unverified() bool { return f.TLS != nil && f.TLS.Insecure == Insecure }

// trust is how TLS connections are made; nil: as this machine does.
func (f File) trust() (*tls.Config, error) {
	if f.TLS == nil {
		return nil, nil
	}
	c := &tls.Config{ServerName: f.TLS.ServerName, InsecureSkipVerify: f.unverified()}
	if f.TLS.CAFile != "" {
		pool, err := readCertificates(f.in(f.TLS.CAFile))
		if err != nil {
			return nil, f.at("tls.ca-file", err)
		}
		c.RootCAs = pool
	}
	if f.TLS.ClientCertificate != "" {
		own, err := f.clientCertificate()
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

func readCertificates(path string) (*x509.CertPool, error) {
	data, err := readPublic(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: no certificate in it; accepted: certificates in PEM", path)
	}
	return pool, nil
}

func (f File) clientCertificate() (tls.Certificate, error) {
	path := f.in(f.TLS.ClientCertificate)
	certificate, err := readPublic(path)
	if err != nil {
		return tls.Certificate{}, f.at("tls.client-certificate", err)
	}
	key, err := readSecret(f.in(f.TLS.ClientKey), maxCAFile)
	if err != nil {
		return tls.Certificate{}, f.at("tls.client-key", err)
	}
	own, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		err = fmt.Errorf("%s and %s: %w; accepted: a certificate and its key without a password, in PEM", path, f.in(f.TLS.ClientKey), err)
	}
	return own, f.at("tls.client-certificate", err)
}

// readPublic reads a file that anybody may read.
func readPublic(path string) ([]byte, error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCAFile))
	if err != nil {
		return nil, fileError(path, err)
	}
	return data, nil
}

// TLS is how TLS connections to the target are made; nil: as this machine does.
func (t *Target) TLS() *tls.Config { return t.trust.Clone() }
