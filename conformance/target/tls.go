package target

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
)

// maxCAFile is the largest file of certificates that is read.
const maxCAFile = 1 << 20

// TLS says whom to trust at https URLs of the deployment, where that is not
// whoever this machine trusts.
type TLS struct {
	CAFile     string `yaml:"ca-file,omitempty"`     // PEM: trust these, and no others
	ServerName string `yaml:"server-name,omitempty"` // that the certificate must have, in place of the URL's host
}

// trust is how TLS connections are made; nil: as this machine does.
func (f File) trust() (*tls.Config, error) {
	if f.TLS == nil {
		return nil, nil
	}
	c := &tls.Config{ServerName: f.TLS.ServerName}
	if f.TLS.CAFile == "" {
		return c, nil
	}
	path := f.in(f.TLS.CAFile)
	file, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCAFile))
	if err != nil {
		return nil, fileError(path, err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: no certificate in it; accepted: certificates in PEM", path)
	}
	return c, nil
}

// TLS is how TLS connections to the target are made; nil: as this machine does.
func (t *Target) TLS() *tls.Config { return t.trust.Clone() }
