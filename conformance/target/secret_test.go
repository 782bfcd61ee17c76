package target_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

// Another secret is of the same form, and another one each time.
func TestAnotherSecret(t *testing.T) {
	const text = "isk_free_0123456789abcdefABCDEF-xyz"
	seen := map[string]bool{text: true}
	for range 1000 {
		other := target.NewSecret(text).Another()
		require.Regexp(t, `^isk_free_[0-9]{10}[a-z]{6}[A-Z]{6}-[a-z]{3}$`, other)
		require.False(t, seen[other])
		seen[other] = true
	}
	require.Empty(t, target.Secret{}.Another())
	twisted := target.NewSecret(text).Twisted()
	require.Regexp(t, `^isk_free_0123456789abcdefABCDEF-xy[0-9]$`, twisted, "it begins like the secret")
	require.NotContains(t, target.NewSecret("pk_basic_6_1").Twisted(), "pk_basic_6")
	require.NotEqual(t, text, twisted)
	for _, short := range []string{"pk_basic_6_1", "k1", "12345678", "sk_live_7", "user-1-key"} {
		far := 0
		for range 200 {
			other := target.NewSecret(short).Another()
			require.Len(t, other, len(short))
			for i := range other {
				if other[i] != short[i] {
					far++
				}
			}
		}
		require.Greater(t, far, 200*len(short)/2, "%s: most letters are others", short)
	}
}

func TestSecretsDoNotShow(t *testing.T) {
	const hidden = "0123456789abcdefABCDEF"
	for text, want := range map[string]string{
		"isk_free_" + hidden:                     "isk_free_…",
		"sk_" + hidden:                           "sk_…",
		hidden:                                   "…",
		"isk_free_short":                         "…",
		"correct_horse_battery_staple_" + hidden: "correct_horse_…",
		"":                                       "no key",
	} {
		s := target.NewSecret(text)
		shown := []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q %x %d", s, s, s, s, s, s, s), fmt.Sprintf("%+v", struct{ S target.Secret }{s})}
		data, err := json.Marshal(map[string]any{"s": s, "k": target.Key{User: "u", Secret: s}})
		require.NoError(t, err)
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "s", s)
		shown = append(shown, string(data), log.String())
		require.Equal(t, want, s.String())
		for _, line := range shown {
			require.NotContains(t, line, hidden)
			require.NotContains(t, line, fmt.Sprintf("%x", hidden))
		}
		require.Equal(t, text, s.Reveal())
		require.Equal(t, text != "", s.In("before "+text+" after"))
		require.False(t, s.In("before after"))
	}
}
