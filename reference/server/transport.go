package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultConnections is the most connections open at once where nothing is said.
const DefaultConnections = 10_000

// Transport says how connections of the API are taken, secured and let go. Its
// zero value is HTTP/1.1 in the clear, which stops at once. With a certificate
// the API speaks TLS 1.2 or later, and HTTP/2 to clients that choose it.
// Metrics and control have no TLS.
type Transport struct {
	Certificate  string        // PEM file, the server's own first; read again when it changes
	Key          string        // PEM file of its private key
	H2C          bool          // HTTP/2 without TLS as well, to clients that begin with it
	Connections  int           // most open at once, on each listener; 0: [DefaultConnections]
	DrainDelay   time.Duration // from /ready saying 503 until connections are refused
	DrainTimeout time.Duration // for requests in flight to end after that; 0: that of the bounds
}

// secure makes h speak what t says, and returns the certificate, if there is one.
func (t Transport) secure(h *http.Server, logger *slog.Logger) (*certificate, error) {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(t.H2C)
	h.Protocols = p
	if t.Certificate == "" && t.Key == "" {
		return nil, nil
	}
	c, err := newCertificate(t.Certificate, t.Key, logger)
	if err != nil {
		return nil, err
	}
	p.SetHTTP2(true)
	h.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
	return c, nil
}

// connections is how many may be open on one listener.
func (t Transport) connections() int {
	if t.Connections == 0 {
		return DefaultConnections
	}
	return t.Connections
}

// certificate is a pair of files that is read again when either has changed. A
// new pair that does not fit together leaves the old one in use: the two files
// are replaced one after the other.
type certificate struct {
	cert, key string
	logger    *slog.Logger

	mu    sync.Mutex
	tried [2]os.FileInfo // the files read last, whether they were good or not
	good  *tls.Certificate
}

func newCertificate(cert, key string, logger *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, logger: logger, tried: files(cert, key)}
	pair, err := c.read()
	c.good = pair
	return c, err
}

// files are the files there are; nil: none of that name, for the moment.
func files(cert, key string) (f [2]os.FileInfo) {
	f[0], _ = os.Stat(cert)
	f[1], _ = os.Stat(key)
	return f
}

func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (c *certificate) read() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", c.cert, c.key, err)
	}
	return &pair, nil
}

// say tells whose certificate is in use, and for how long.
func (c *certificate) say() {
	leaf := c.good.Leaf
	c.logger.Info("certificate", "file", c.cert, "names", leaf.DNSNames, "addresses", leaf.IPAddresses, "until", leaf.NotAfter)
}

// get looks at the files at each handshake, which costs far more than that.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := files(c.cert, c.key)
	if same(now[0], c.tried[0]) && same(now[1], c.tried[1]) {
		return c.good, nil
	}
	c.tried = now
	pair, err := c.read()
	if err != nil {
		c.logger.Error("the certificate has changed and cannot be used: the one before stays", "error", err)
		return c.good, nil
	}
	c.good = pair
	c.say()
	return pair, nil
}

// HTTP2 reports whether the API speaks HTTP/2, by TLS or without.
func (s *Server) HTTP2() bool {
	p := s.api.http.Protocols
	return p.HTTP2() || p.UnencryptedHTTP2()
}

// Certificate is the certificate that the API shows, as it is now, and nil
// without TLS.
func (s *Server) Certificate() *x509.Certificate {
	if s.certificate == nil {
		return nil
	}
	pair, _ := s.certificate.get(nil) // there always is one
	return pair.Leaf
}

// front is what every request to the API passes first. It ends the connection
// after a request that a proxy may have framed otherwise, so that what follows
// is never read as a request of its own: one in chunks, beside which net/http
// drops a Content-Length without a trace, and one of HTTP/1.0, of which it drops
// Transfer-Encoding (RFC 9112, 6.1). While the server drains it ends every
// connection, so that clients go elsewhere; net/http makes a GOAWAY of that on
// HTTP/2.
func front(draining *atomic.Bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) || draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// ready is the readiness route: it fails while the server drains, so that a load
// balancer sends nobody here any more.
func ready(draining *atomic.Bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !draining.Load() {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		w.Write([]byte(`{"status":"draining"}`))
	})
}
