package settings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/settings"
	"github.com/invoicespec/brimline/internal/strictyaml"
)

type tree struct {
	Shop struct {
		Doors   int64         `yaml:"doors,omitempty" usage:"how many" range:"1 4"`
		Opening time.Duration `yaml:"opening,omitempty" range:"1s 24h"`
		Kind    string        `yaml:"kind,omitempty" one-of:"big small"`
		Sign    string        `yaml:"sign,omitempty"`
		Till    struct {
			Code  string   `yaml:"code,omitempty" secret:"true"`
			Open  bool     `yaml:"open-now,omitempty"`
			Names []string `yaml:"names,omitempty"`
		} `yaml:"till,omitempty"`
	} `yaml:"shop,omitempty"`
}

func fresh() *tree {
	var t tree
	t.Shop.Doors, t.Shop.Opening, t.Shop.Kind = 2, time.Hour, "big"
	t.Shop.Sign = "open"
	return &t
}

func file(text string) func(any) (settings.Document, error) {
	return func(v any) (settings.Document, error) { return strictyaml.Parse("shop.yaml", []byte(text), v) }
}

func none(string) (string, bool) { return "", false }

func TestNamesFollowFromThePlace(t *testing.T) {
	var got []string
	for _, x := range settings.Of(fresh()).All() {
		got = append(got, x.Key+" "+x.Env)
	}
	require.Equal(t, []string{
		"shop.doors SHOP_DOORS", "shop.opening SHOP_OPENING", "shop.kind SHOP_KIND", "shop.sign SHOP_SIGN", "shop.till.code SHOP_TILL_CODE",
		"shop.till.open-now SHOP_TILL_OPEN_NOW", "shop.till.names SHOP_TILL_NAMES",
	}, got)
}

func TestTheLaterOriginWins(t *testing.T) {
	v := fresh()
	s := settings.Of(v)
	path := file("shop:\n  doors: 1\n  opening: 2s\n  kind: small\n  till: { names: [a, b] }\n")
	env := map[string]string{"SHOP_OPENING": "3s", "SHOP_KIND": "big", "SHOP_TILL_CODE": "hush"}
	require.NoError(t, s.Load(path, func(name string) (string, bool) { text, ok := env[name]; return text, ok }, map[string]string{"shop.kind": "small", "shop.till.open-now": "true"}))
	require.Equal(t, int64(1), v.Shop.Doors)
	require.Equal(t, 3*time.Second, v.Shop.Opening)
	require.Equal(t, "small", v.Shop.Kind)
	require.Equal(t, "hush", v.Shop.Till.Code)
	require.Equal(t, []string{"a", "b"}, v.Shop.Till.Names)

	var shown strings.Builder
	require.NoError(t, s.Print(&shown))
	require.Equal(t, ""+
		"shop.doors          1            file\n"+
		"shop.opening        3s           environment\n"+
		"shop.kind           small        flag\n"+
		"shop.sign           open         default\n"+
		"shop.till.code      (not shown)  environment\n"+
		"shop.till.open-now  true         flag\n"+
		"shop.till.names     a,b          file\n", shown.String())
}

func TestWithoutAnythingTheDefaultsStay(t *testing.T) {
	v := fresh()
	s := settings.Of(v)
	require.NoError(t, s.Load(nil, none, nil))
	require.Equal(t, fresh(), v)
	for _, x := range s.All() {
		require.Equal(t, settings.Default, x.Origin)
	}
}

func TestNonsenseIsRefusedByTheNameItCameUnder(t *testing.T) {
	for name, tc := range map[string]struct {
		file, env, flag string // file text, NAME=value, key=value
		want            string
	}{
		"range in a file":     {file: "shop:\n  doors: 5\n", want: "shop.yaml:2: shop.doors: 5 is out of range; accepted: a whole number from 1 to 4"},
		"kind in a file":      {file: "shop:\n  doors: 1.5\n", want: "shop.yaml:2: shop.doors: got 1.5; accepted: a whole number"},
		"unknown in a file":   {file: "shop: { dors: 1 }\n", want: "shop.yaml:1: shop.dors: unknown key; accepted: doors, opening, kind, sign, till"},
		"word in a variable":  {env: "SHOP_DOORS=many", want: `SHOP_DOORS (shop.doors): got "many"; accepted: a whole number from 1 to 4`},
		"zero in a variable":  {env: "SHOP_DOORS=0", want: "SHOP_DOORS (shop.doors): 0 is out of range; accepted: a whole number from 1 to 4"},
		"sign in a variable":  {env: "SHOP_DOORS=+1", want: `SHOP_DOORS (shop.doors): got "+1"; accepted: a whole number from 1 to 4`},
		"lost in a variable":  {env: "SHOP_DOORS=", want: `SHOP_DOORS (shop.doors): got ""; accepted: a whole number from 1 to 4`},
		"lost duration":       {env: "SHOP_OPENING=", want: `SHOP_OPENING (shop.opening): got ""; accepted: a duration from 1s to 24h`},
		"lost choice":         {env: "SHOP_KIND=", want: `SHOP_KIND (shop.kind): got ""; accepted: big or small`},
		"lost text":           {env: "SHOP_SIGN= ", want: `SHOP_SIGN (shop.sign): empty`},
		"lost text in a file": {file: "shop:\n  sign: \"\"\n", want: "shop.yaml:2: shop.sign: empty"},
		"duration in a flag":  {flag: "shop.opening=12", want: `shop.opening: got "12"; accepted: a duration from 1s to 24h`},
		"too long in a flag":  {flag: "shop.opening=25h", want: "shop.opening: 25h0m0s is out of range; accepted: a duration from 1s to 24h"},
		"choice in a flag":    {flag: "shop.kind=huge", want: `shop.kind: got "huge"; accepted: big or small`},
		"bool in a flag":      {flag: "shop.till.open-now=yes", want: `shop.till.open-now: got "yes"; accepted: true or false`},
		"fraction in a flag":  {flag: "shop.doors=1.0", want: `shop.doors: got "1.0"; accepted: a whole number from 1 to 4`},
		"too large in a flag": {flag: "shop.doors=99999999999999999999", want: `shop.doors: got "99999999999999999999"; accepted: a whole number from 1 to 4`},
	} {
		t.Run(name, func(t *testing.T) {
			var read func(any) (settings.Document, error)
			flags := map[string]string{}
			if tc.file != "" {
				read = file(tc.file)
			}
			if key, value, ok := strings.Cut(tc.flag, "="); ok {
				flags[key] = value
			}
			variable, value, _ := strings.Cut(tc.env, "=")
			err := settings.Of(fresh()).Load(read, func(n string) (string, bool) { return value, tc.env != "" && n == variable }, flags)
			require.EqualError(t, err, tc.want)
		})
	}
}

func TestAMistakeOfTheProgramPanics(t *testing.T) {
	require.PanicsWithValue(t, "settings: a: no way to read a float64", func() {
		settings.Of(&struct {
			A float64 `yaml:"a"`
		}{})
	})
	require.PanicsWithValue(t, "settings: no setting shop.window", func() { _ = settings.Of(fresh()).Refuse("shop.window", "", "") })
}
