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
