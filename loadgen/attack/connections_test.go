package attack_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/attack"
)

// TestTheNextAttackIsWarm: requests that never overlap need one connection, and
// the next attack finds it open.
func TestTheNextAttackIsWarm(t *testing.T) {
	stub := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer stub.Close()
	s := site()
	s.BaseURLs = []string{stub.URL}
	c := attack.Config{Members: members(arrival.Constant(perSecond(t, 4)), 1, time.Second), Duration: time.Second, Site: s}
	kept := attack.Connect(c)
	defer kept.Close()
	for _, want := range []struct {
		over   *attack.Connections
		opened int64
	}{{kept, 1}, {kept, 0}, {nil, 1}} {
		c.Over = want.over
		a, err := attack.New(c)
		require.NoError(t, err)
		r, err := a.Run(t.Context())
		require.NoError(t, err)
		require.Positive(t, r.Generator.Results)
		require.Equal(t, want.opened, r.Generator.Connections)
	}
}
