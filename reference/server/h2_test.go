package server_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// writePair writes a certificate for 127.0.0.1 and its key to dir. Serial tells
// certificates apart.
func writePair(t *testing.T, dir string, serial int64) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "brimline test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"invoices.example"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		// Replaced as a whole, as a careful operator does.
		require.NoError(t, os.WriteFile(name+".new", pem.EncodeToMemory(block), 0o600))
		require.NoError(t, os.Rename(name+".new", name))
	}
	return cert, key
}

// dialTLS connects with TLS and asks for a protocol.
func (f *fixture) dialTLS(protocol string) *tls.Conn {
	f.Helper()
	c := tls.Client(f.dial(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	require.NoError(f, c.Handshake())
	require.Equal(f, protocol, c.ConnectionState().NegotiatedProtocol)
	return c
}

// fields are a request's header fields in their order, names and values in turn.
type fields []string

// h2 is an HTTP/2 client that sends what it is told.
type h2 struct {
	*testing.T
	conn   net.Conn
	framer *http2.Framer
	block  bytes.Buffer
	enc    *hpack.Encoder
	next   uint32
	seen   map[uint32]*h2answer

	goodbye bool   // a GOAWAY has come
	watched uint32 // a stream, and by how much its connection's window and its own were widened
	widened [2]int
}

// h2answer is what has come of a stream.
type h2answer struct {
	status string // of interim answers too, or how the stream was torn
	header map[string]string
	body   string
	ended  bool
	reset  string // code of a reset that came after the end
}

// newH2 begins HTTP/2 on a connection. A window of zero lets no body through.
func newH2(t *testing.T, c net.Conn, window uint32) *h2 {
	t.Helper()
	h := &h2{T: t, conn: c, framer: http2.NewFramer(c, c), next: 1, seen: map[uint32]*h2answer{}}
	h.enc = hpack.NewEncoder(&h.block)
	h.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.framer.AllowIllegalWrites = true
	_, err := c.Write([]byte(http2.ClientPreface))
	require.NoError(t, err)
	require.NoError(t, h.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
	return h
}

// operation is the fields of the valid operation.
func operation(key string, more ...string) fields {
	return append(fields{":method", "POST", ":scheme", "http", ":authority", "x", ":path", "/v1/invoice/calculate", "authorization", "Bearer " + key}, more...)
}

// open begins a stream, which ends at once unless a body follows.
func (h *h2) open(f fields, bodyFollows bool) uint32 {
	h.Helper()
	h.block.Reset()
	for i := 0; i < len(f); i += 2 {
		require.NoError(h, h.enc.WriteField(hpack.HeaderField{Name: f[i], Value: f[i+1]}))
	}
	id := h.next
	h.next += 2
	block, first := h.block.Bytes(), true
	for rest := block; first || len(rest) > 0; first = false {
		part := rest[:min(len(rest), 16<<10)]
		rest = rest[len(part):]
		if first {
			require.NoError(h, h.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: part, EndStream: !bodyFollows, EndHeaders: len(rest) == 0}))
		} else {
			require.NoError(h, h.framer.WriteContinuation(id, len(rest) == 0, part))
		}
	}
	return id
}

// send sends one request with a body.
func (h *h2) send(f fields, body string) uint32 {
	h.Helper()
	id := h.open(f, body != "")
	if body != "" {
		require.NoError(h, h.framer.WriteData(id, true, []byte(body)))
	}
	return id
}

func (h *h2) reset(id uint32) { require.NoError(h, h.framer.WriteRSTStream(id, http2.ErrCodeCancel)) }

// answer waits until a stream has ended, one way or the other.
func (h *h2) answer(id uint32) h2answer {
	h.Helper()
	for !h.of(id).ended {
		h.take()
	}
	return *h.of(id)
}

func (h *h2) of(id uint32) *h2answer {
	if h.seen[id] == nil {
		h.seen[id] = &h2answer{header: map[string]string{}}
	}
	return h.seen[id]
}

// take takes one frame in.
func (h *h2) take() {
	h.Helper()
	frame, err := h.framer.ReadFrame()
	require.NoError(h, err)
	a := h.of(frame.Header().StreamID)
	switch frame := frame.(type) {
	case *http2.MetaHeadersFrame:
		a.status = strings.TrimSpace(a.status + " " + frame.PseudoValue("status"))
		for _, f := range frame.RegularFields() {
			a.header[f.Name] = f.Value
		}
		a.ended = frame.StreamEnded()
	case *http2.DataFrame:
		a.body += string(frame.Data())
		a.ended = frame.StreamEnded()
	case *http2.RSTStreamFrame:
		if a.reset = frame.ErrCode.String(); !a.ended {
			a.status = strings.TrimSpace(a.status + " reset " + a.reset)
		}
		a.ended = true
	case *http2.GoAwayFrame:
		h.goodbye = true
		if frame.ErrCode != http2.ErrCodeNo {
			for id := uint32(1); id < h.next; id += 2 {
				if a := h.of(id); !a.ended {
					a.status, a.ended = strings.TrimSpace(fmt.Sprint(a.status, " goaway ", frame.ErrCode)), true
				}
			}
		}
	case *http2.WindowUpdateFrame:
		switch frame.StreamID {
		case 0:
			h.widened[0] += int(frame.Increment)
		case h.watched:
			h.widened[1] += int(frame.Increment)
		}
	case *http2.SettingsFrame:
		if !frame.IsAck() {
			require.NoError(h, h.framer.WriteSettingsAck())
		}
	case *http2.PingFrame:
		if !frame.IsAck() {
			require.NoError(h, h.framer.WritePing(true, frame.Data))
		}
	}
}
