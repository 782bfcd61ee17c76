package account_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
)

func TestNewKey(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		k, err := account.NewKey("free")
		require.NoError(t, err)
		require.Regexp(t, `^isk_free_[0-9A-Za-z]{32}$`, k.Reveal())
		require.False(t, seen[k.Reveal()], "the same key twice")
		seen[k.Reveal()] = true
		parsed, err := account.ParseKey(k.Reveal())
		require.NoError(t, err)
		require.Equal(t, k, parsed)
	}
}

func TestNewKeyRefusesAPlanThatCannotBeInAKey(t *testing.T) {
	_, err := account.NewKey("Not A Plan")
	require.ErrorIs(t, err, account.ErrMalformedKey)
}

func TestParseKeyRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"empty":             "",
		"another prefix":    "sk_free_0123456789abcdef",
		"no plan":           "isk__0123456789abcdef",
		"short secret":      "isk_free_0123456789abcde",
		"long secret":       "isk_free_" + strings.Repeat("a", 65),
		"oversize":          "isk_free_" + strings.Repeat("a", 1<<20),
		"space behind":      "isk_free_0123456789abcdef ",
		"newline behind":    "isk_free_0123456789abcdef\n",
		"two keys":          "isk_free_0123456789abcdef isk_free_0123456789abcdef",
		"comma":             "isk_free_0123456789abcdef,",
		"letters beyond":    "isk_free_0123456789abcdéf",
		"upper-case plan":   "isk_FREE_0123456789abcdef",
		"underscore inside": "isk_free_01234567_9abcdef",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := account.ParseKey(text)
			require.ErrorIs(t, err, account.ErrMalformedKey)
			if text != "" {
				require.NotContains(t, err.Error(), text)
			}
		})
	}
}

func TestKeyNeverShowsItself(t *testing.T) {
	k, err := account.NewKey("pro")
	require.NoError(t, err)
	secret := strings.TrimPrefix(k.Reveal(), "isk_pro_")
	inside := struct {
		Key  account.Key
		Keys []account.Key
		Map  map[string]account.Key
		Any  any
	}{k, []account.Key{k}, map[string]account.Key{"k": k}, &k}

	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %[1]v"} {
		fmt.Fprintf(&shown, verb+"\n", k)
		fmt.Fprintf(&shown, verb+"\n", &k)
		fmt.Fprintf(&shown, verb+"\n", inside)
	}
	require.NoError(t, json.NewEncoder(&shown).Encode(inside))
	slog.New(slog.NewJSONHandler(&shown, nil)).Info("a key", "key", k, "inside", inside, "error", fmt.Errorf("with %v", k))
	slog.New(slog.NewTextHandler(&shown, nil)).Info("a key", "key", k, "inside", inside)
	require.NotContains(t, shown.String(), secret)
	require.NotContains(t, shown.String(), fmt.Sprintf("%x", secret))
	require.Contains(t, shown.String(), "isk_pro_…")
	require.Equal(t, "no key", account.Key{}.String())
}

func TestMaskKeys(t *testing.T) {
	k, err := account.NewKey("free")
	require.NoError(t, err)
	for name, text := range map[string]string{
		"whole":      k.Reveal(),
		"in a path":  "/v1/invoice/" + k.Reveal() + "/x",
		"cut short":  k.Reveal()[:20],
		"twice":      k.Reveal() + k.Reveal(),
		"with noise": "x" + k.Reveal() + "!",
	} {
		t.Run(name, func(t *testing.T) {
			masked := account.MaskKeys(text)
			require.NotContains(t, masked, k.Reveal()[9:20])
			require.Contains(t, masked, "isk_free_…")
		})
	}
	require.Equal(t, "/v1/invoice/calculate", account.MaskKeys("/v1/invoice/calculate"))
}

func TestDigest(t *testing.T) {
	a, err := account.NewKey("free")
	require.NoError(t, err)
	b, err := account.NewKey("free")
	require.NoError(t, err)
	one, other := account.NewDigester(), account.NewDigester()
	require.Equal(t, one.Of(a), one.Of(a))
	require.NotEqual(t, one.Of(a), one.Of(b))
	require.NotEqual(t, one.Of(a), other.Of(a), "a digest is good for its own process alone")
}

func TestPrefix(t *testing.T) {
	k, err := account.ParseKey("isk_a-b_0123456789abcdef")
	require.NoError(t, err)
	require.Equal(t, "isk_a-b_0123", k.Prefix())
	require.Empty(t, account.Key{}.Prefix())
}

func TestDigesterFrom(t *testing.T) {
	k, err := account.NewKey("free")
	require.NoError(t, err)
	secret := bytes.Repeat([]byte{1}, account.MinSecret)
	one, err := account.DigesterFrom(secret)
	require.NoError(t, err)
	same, err := account.DigesterFrom(secret)
	require.NoError(t, err)
	require.Equal(t, one.Of(k), same.Of(k))
	want := one.Of(k)
	secret[0] = 2
	require.Equal(t, want, one.Of(k), "the caller's slice is the caller's")
	other, err := account.DigesterFrom(secret)
	require.NoError(t, err)
	require.NotEqual(t, want, other.Of(k))
	_, err = account.DigesterFrom(secret[1:])
	require.ErrorContains(t, err, "31 bytes")
}

func FuzzParseKey(f *testing.F) {
	f.Add("isk_free_0123456789abcdef0123456789ABCDEF")
	f.Add("isk_a-b_" + strings.Repeat("0", 64))
	f.Add("isk__")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := account.ParseKey(text)
		if err != nil {
			require.Zero(t, k)
			return
		}
		require.Equal(t, text, k.Reveal())
		require.NotContains(t, account.MaskKeys("/"+text+"/"), text)
	})
}
