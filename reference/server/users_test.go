package server_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/server"
)

// TestUsersOfAnotherProcess: their keys open what they opened there, and users
// made later get other names.
func TestUsersOfAnotherProcess(t *testing.T) {
	open := func(cfg server.Config) (*server.Server, error) {
		cfg.Listen = "127.0.0.1:0"
		s, err := server.Open(t.Context(), cfg)
		if err == nil {
			t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
		}
		return s, err
	}
	first, err := open(server.Config{Users: 1})
	require.NoError(t, err)
	second, err := open(server.Config{Known: first.Users()[:2], Users: 1})
	require.NoError(t, err)
	require.Equal(t, first.Users()[:2], second.Users()[:2])
	names := map[string]bool{}
	for _, u := range second.Users() {
		require.False(t, names[u.ID], "%s is there twice", u.ID)
		names[u.ID] = true
	}
	require.Len(t, names, 2+len(second.Plans()))

	k, err := account.NewKey("free")
	require.NoError(t, err)
	for says, known := range map[string][]server.User{
		`user "a": refused: user "a" is there already`:          {{ID: "a", Plan: "free"}, {ID: "a", Plan: "free"}},
		`user "b": refused: a key of user "b" is there already`: {{ID: "a", Plan: "free", Keys: []account.Key{k}}, {ID: "b", Plan: "free", Keys: []account.Key{k}}},
		`user "a": unknown plan "golden"`:                       {{ID: "a", Plan: "golden"}},
	} {
		_, err := open(server.Config{Known: known})
		require.ErrorContains(t, err, says)
	}
}
