package steps

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

func TestChangedValuesAreOthersInRange(t *testing.T) {
	for name, c := range map[string]struct {
		d    target.Dimension
		old  int64
		how  string
		want int64 // 0: there is none
	}{
		"set":                  {target.Burst, 10, "set", 20},
		"raised":               {target.RequestsPerMinute, 300, "raised", 600},
		"lowered":              {target.RequestsPerMinute, 5, "lowered", 2},
		"a cap raised":         {target.Concurrency, 2, "raised", 4},
		"a cap lowered":        {target.Concurrency, 2, "lowered", 1},
		"nothing below one":    {target.Concurrency, 1, "lowered", 0},
		"nor half of one":      {target.Burst, 1, "lowered", 0},
		"nothing above all":    {target.Burst, 500_001, "raised", 0},
		"nor of a cap":         {target.Concurrency, 99_999, "raised", 0},
		"the largest there is": {target.Burst, 500_000, "raised", 1_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := changed(c.d, c.old, c.how)
			if c.want == 0 {
				require.ErrorIs(t, err, ErrRoom)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// Whatever is stored as broken must be that in every dimension.
func TestBrokenTextsAreNoEntitlements(t *testing.T) {
	for _, word := range []string{"empty", "zero", "negative", "fractional", "written with a leading zero", "written with a plus sign",
		"written with a space", "in words", "a sentinel", "above the range", "huge", "an exponent", "not a number"} {
		for _, d := range target.Dimensions() {
			text, err := brokenText(word, d)
			require.NoError(t, err)
			n, err := strconv.ParseInt(text, 10, 64)
			require.True(t, err != nil || n < 1 || n > d.Most() || strconv.FormatInt(n, 10) != text, "%s: %q", word, text)
		}
	}
	_, err := brokenText("fine", target.Burst)
	require.Error(t, err)
}

func TestWhatAReaderSeesOfAPage(t *testing.T) {
	page := `<!doctype html><head><title>300</title><style>p{width:100px}</style></head><header>h</header>
<!-- reason --><p>Burst <data value="1000000">1,000` + "\u202f" + `000</data> &amp; <b>negotiated</b></p><script>7</script>`
	require.Equal(t, "h Burst 1000000 & negotiated", text(page))
	require.Equal(t, "10, 20", text("10, 20"))
	require.False(t, strings.Contains(text(`<p title="x">y`), "x"))
}

// A command that refuses has no status to say so with.
func TestRefusalsOfAnOperator(t *testing.T) {
	for name, c := range map[string]struct {
		by    *target.ControlError
		clear bool
	}{
		"by a status":        {&target.ControlError{Request: "PUT", Status: 422, Code: "invalid", Message: "no"}, true},
		"by a command":       {&target.ControlError{Request: "can.commands.set-override", Code: "exit code 1", Message: "no"}, true},
		"by a broken server": {&target.ControlError{Request: "PUT", Status: 500, Code: "internal", Message: "no"}, false},
		"without a reason":   {&target.ControlError{Request: "PUT", Status: 422}, false},
		"not at all":         {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Scenario{Target: &target.Target{}, suite: &Suite{}, refusals: []refusal{{what: "zero as burst", by: c.by}}, they: []*subject{{}}}
			err := s.refusedClearly()
			require.Equal(t, c.clear, err == nil, "%v", err)
		})
	}
}
