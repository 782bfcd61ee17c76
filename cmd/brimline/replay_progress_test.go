package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReplayProgress(t *testing.T) {
	var out bytes.Buffer
	p := newReplayProgress(&out)
	clock := p.shown
	p.now = func() time.Time { return clock }
	p.show(1, 12_000)
	require.Empty(t, out.String(), "a short replay says nothing")
	clock = clock.Add(inALog)
	p.show(4_096, 12_000)
	p.show(8_192, 12_000)
	p.end()
	require.Equal(t, "replayed 4,096 of 12,000 attempts\n", out.String())

	var drawn bytes.Buffer
	p.screen = &screen{w: &drawn, size: func() (int, int) { return 80, 24 }}
	clock = clock.Add(inALog)
	p.show(9_000, 12_000)
	p.end()
	require.Equal(t, "replayed 9,000 of 12,000 attempts\n\r\x1b[1A\x1b[J", drawn.String())
}
