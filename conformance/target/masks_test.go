package target

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	known  = "isk_free_Q7mZk2VtR9xWb4LpN8cYd5Hj"
	twin   = "isk_free_Q7mZk2VtR9xWb4LpN8cYd5Hk" // a bad key that is nearly it
	spiked = `sk_live_a"b<c>&d\e+f/g=h0123456789xyz`
)

// TestNothingOfASecretIsLeft: however a secret is written or cut.
func TestNothingOfASecretIsLeft(t *testing.T) {
	var m masks
	m.add(NewSecret(known), NewSecret(spiked), NewSecret("hunter2!"), NewSecret("pg-pw"), NewSecret("abc"), NewSecret(""))
	m.add(NewSecret(known))
	for name, c := range map[string]struct{ text, want string }{
		"alone":                    {known, "isk_free_…"},
		"in a sentence":            {"Bearer " + known + " is it", "Bearer isk_free_… is it"},
		"twice":                    {known + known, "isk_free_…isk_free_…"},
		"in small letters":         {"X-" + strings.ToLower(known) + ": v", "X-isk_free_…: v"},
		"in capitals":              {strings.ToUpper(known), "isk_free_…"},
		"its beginning":            {"got " + known[:24], "got isk_free_…"},
		"its end":                  {known[12:] + " tail", "… tail"},
		"a piece of it":            {"<" + known[11:23] + ">", "<…>"},
		"all but a letter":         {twin + ".", "isk_free_…k."},
		"too short a piece":        {"isk_free_Q7m", "isk_free_Q7m"},
		"another key":              {"isk_free_AAAAAAAAAAAAAAAAAAAAAAAA", "isk_free_AAAAAAAAAAAAAAAAAAAAAAAA"},
		"quoted":                   {fmt.Sprintf("%q", spiked), `"sk_live_…"`},
		"in base64":                {base64.StdEncoding.EncodeToString([]byte("user:" + known)), "isk_free_…"},
		"a short one":              {"pw=hunter2!", "pw=…"},
		"a word":                   {"password pg-pw, pg-pwd", "password …, pg-pwd"},
		"too short to be a secret": {"abc", "abc"},
		"beside other letters":     {"é" + known + "é", "éisk_free_…é"},
	} {
		t.Run(name, func(t *testing.T) {
			got := m.hide(c.text)
			require.Equal(t, c.want, got)
			require.Equal(t, got, m.hide(got), "what is hidden stays as it is")
		})
	}
}

// TestMaskedBeforeItIsCut: at no place can a cut leave what a mask does not know.
func TestMaskedBeforeItIsCut(t *testing.T) {
	tg := &Target{secrets: &masks{}}
	tg.secrets.add(NewSecret(known))
	for before := range 320 {
		got := tg.Excerpt(strings.Repeat("x", before)+known+" tail", 300)
		require.NotContains(t, got, known[9:13], before)
		require.LessOrEqual(t, len(got), 303)
	}
}

func TestConcealedErrorsStayWhatTheyAre(t *testing.T) {
	tg := &Target{secrets: &masks{}}
	tg.secrets.add(NewSecret(known))
	require.NoError(t, tg.Conceal(nil))
	require.Equal(t, io.EOF, tg.Conceal(io.EOF))
	err := tg.Conceal(fmt.Errorf("%w: malformed %q %s", ErrAway, known, strings.Repeat("y", 1<<20)))
	require.ErrorIs(t, err, ErrAway)
	require.NotContains(t, err.Error(), known[9:])
	require.Less(t, len(err.Error()), 2100)
	require.False(t, errors.Is(err, ErrUntrue))
}

// FuzzMasks: whatever stands around a key, and wherever a text with it ends, no
// dozen of its bytes is left.
func FuzzMasks(f *testing.F) {
	f.Add("Bearer ", "\r\n", uint8(3))
	f.Add(known[:20], known[5:], uint8(40))
	f.Fuzz(func(t *testing.T, before, after string, cut uint8) {
		var m masks
		m.add(NewSecret(known))
		text := before + known + after
		got := m.hide(text[:max(0, len(text)-int(cut))])
		for i := len("isk_free_"); i+shortestSeen <= len(known); i++ {
			require.NotContains(t, strings.ToLower(got), strings.ToLower(known[i:i+shortestSeen]))
		}
	})
}

func BenchmarkMasks(b *testing.B) {
	var m masks
	for range 10_000 {
		m.add(NewSecret(NewSecret(known).Another()))
	}
	text := strings.Repeat("some text of a server ", 20)
	for b.Loop() {
		m.hide(text)
	}
}
