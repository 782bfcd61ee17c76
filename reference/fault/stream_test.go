package fault_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"

	"github.com/stretchr/testify/require"
)

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(into []byte) (int, error) { return len(into), nil }

// resets sends half a body over HTTP/2 and resets the stream.
func (u *user) resets() {
	u.Helper()
	only2 := new(http.Protocols)
	only2.SetUnencryptedHTTP2(true)
	network := &http.Transport{Protocols: only2, ExpectContinueTimeout: patience}
	defer network.CloseIdleConnections()
	ctx, reset := context.WithCancel(u.Context())
	defer reset()
	body, more := io.Pipe()
	defer more.Close()
	inFlight := make(chan struct{})
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { close(inFlight) }}),
		http.MethodPost, u.server.URL()+"/v1/invoice/calculate", body)
	require.NoError(u, err)
	req.Header.Set("Authorization", "Bearer "+u.Keys[0])
	req.Header.Set("Expect", "100-continue")
	go func() {
		<-inFlight
		more.Write([]byte("{"))
		reset()
	}()
	_, err = network.RoundTrip(req)
	require.ErrorIs(u, err, context.Canceled)
}
