package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/strictjson"
)

// order is what the tests read: every kind of value, two levels deep.
type order struct {
	Name  string
	Count int64
	Items []string
}

func shape(o *order) strictjson.Value {
	return strictjson.Object(map[string]strictjson.Value{
		"name":  strictjson.Text(&o.Name, 10),
		"count": strictjson.Int(&o.Count, 1, 9),
		"items": strictjson.Array(2, func(i int) strictjson.Value {
			o.Items = append(o.Items, "")
			return strictjson.Object(map[string]strictjson.Value{
				"price": strictjson.Decimal(func(text string) error {
					if strings.Contains(text, "e") {
						return errors.New("no exponents")
					}
					o.Items[i] = text
					return nil
				}),
			})
		}),
	}, "count")
}

func TestParseTakes(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want order
	}{
		"everything":        {`{"name":"a","count":9,"items":[{"price":1.50},{"price":"2"}]}`, order{"a", 9, []string{"1.50", "2"}}},
		"another order":     {` {"items" : [ {"price":-0} ] , "name":"ü"} `, order{"ü", 0, []string{"-0"}}},
		"an escaped name":   {`{"n\u0061me":"a","items":[{"price":1}]}`, order{"a", 0, []string{"1"}}},
		"text at its limit": {`{"name":"0123456789","items":[{"price":1}]}`, order{"0123456789", 0, []string{"1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got order
			require.NoError(t, strictjson.Parse([]byte(c.text), shape(&got)))
			require.Equal(t, c.want, got)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const item = `"items":[{"price":1}]`
	for name, c := range map[string]struct{ text, want string }{
		"nothing":             {``, "the JSON text ends too early"},
		"half":                {`{"name":`, "name: the JSON text ends too early"},
		"no JSON":             {`{name:1}`, "not JSON near byte 1"},
		"not UTF-8":           {"{\"name\":\"\xff\"}", "the text is not UTF-8"},
		"null":                {`null`, "want an object"},
		"an array":            {`[]`, "want an object"},
		"a second value":      {`{"name":"a",` + item + `} {}`, "something follows the JSON value"},
		"rubbish behind":      {`{"name":"a",` + item + `}x`, "something follows the JSON value"},
		"an unknown member":   {`{"nmae":"a"}`, `unknown member "nmae"; known: count, items, name`},
		"another case":        {`{"Name":"a"}`, `unknown member "Name"; known: count, items, name`},
		"a long unknown":      {`{"` + strings.Repeat("x", 5000) + `":1}`, `unknown member "` + strings.Repeat("x", 40) + `…"; known: count, items, name`},
		"a doubled member":    {`{"name":"a","name":"b"}`, "name: given twice"},
		"a missing member":    {`{"name":"a"}`, "items: missing"},
		"deep unknown":        {`{"name":"a","items":[{"price":1,"x":1}]}`, `items[0]: unknown member "x"; known: price`},
		"deep missing":        {`{"name":"a","items":[{"price":1},{}]}`, "items[1].price: missing"},
		"deep null":           {`{"name":"a","items":[{"price":null}]}`, "items[0].price: want a number"},
		"deep own error":      {`{"name":"a","items":[{"price":1e9}]}`, "items[0].price: no exponents"},
		"an empty array":      {`{"name":"a","items":[]}`, "items: empty"},
		"a long array":        {`{"name":"a","items":[{"price":1},{"price":1},{"price":1}]}`, "items: more than 2"},
		"a trailing comma":    {`{"name":"a","items":[{"price":1},]}`, "items[1]: not JSON near byte 33"},
		"no comma":            {`{"name":"a" "count":1}`, "not JSON near byte 12"},
		"deep nesting":        {strings.Repeat(`[`, 1_000_000), "want an object"},
		"deep inside":         {`{"name":` + strings.Repeat(`[`, 1_000_000), "name: want a string"},
		"a number for text":   {`{"name":1}`, "name: want a string"},
		"text too long":       {`{"name":"01234567890"}`, "name: longer than 10 bytes"},
		"a fraction":          {`{"count":1.5}`, "count: want a whole number from 1 to 9"},
		"a whole fraction":    {`{"count":1.0}`, "count: want a whole number from 1 to 9"},
		"an exponent":         {`{"count":1e0}`, "count: want a whole number from 1 to 9"},
		"text for a number":   {`{"count":"1"}`, "count: want a whole number from 1 to 9"},
		"null for a number":   {`{"count":null}`, "count: want a whole number from 1 to 9"},
		"too small":           {`{"count":0}`, "count: want a whole number from 1 to 9"},
		"too large":           {`{"count":10}`, "count: want a whole number from 1 to 9"},
		"far too large":       {`{"count":99999999999999999999}`, "count: want a whole number from 1 to 9"},
		"an object for text":  {`{"name":{}}`, "name: want a string"},
		"unfinished object":   {`{"name":"a",` + item, "the JSON text ends too early"},
		"brackets that cross": {`{"name":"a","items":[{"price":1]}`, "items[0]: not JSON near byte 31"},
	} {
		t.Run(name, func(t *testing.T) {
			var got order
			err := strictjson.Parse([]byte(c.text), shape(&got))
			require.EqualError(t, err, c.want)
			require.IsType(t, &strictjson.Error{}, err)
		})
	}
}

// FuzzParse compares with encoding/json: whatever is taken here is JSON there,
// and means the same.
func FuzzParse(f *testing.F) {
	f.Add(`{"name":"a","count":9,"items":[{"price":1.50},{"price":"2"}]}`)
	f.Add(`{"items":[{"price":1},]}`)
	f.Add(`{"name":"\ud800","items":[{"price":"x"}]} `)
	f.Fuzz(func(t *testing.T, text string) {
		var got order
		if strictjson.Parse([]byte(text), shape(&got)) != nil {
			return
		}
		var want struct {
			Name  string
			Count int64
			Items []struct{ Price any }
		}
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		require.NoError(t, dec.Decode(&want))
		require.Equal(t, want.Name, got.Name)
		require.Equal(t, want.Count, got.Count)
		require.Len(t, got.Items, len(want.Items))
		for i, item := range want.Items {
			require.Equal(t, fmt.Sprint(item.Price), got.Items[i])
		}
	})
}

func TestScalarIsWhatIsSpelled(t *testing.T) {
	for text, want := range map[string]string{
		`7`: "7", `1e99`: "1e99", `-0.50`: "-0.50", `"7"`: `"7"`, `null`: "null", `true`: "true", `""`: `""`,
	} {
		var got string
		require.NoError(t, strictjson.Parse([]byte(text), strictjson.Scalar(&got, 8)), text)
		require.Equal(t, want, got)
	}
	for text, want := range map[string]string{
		`[7]`: "want a single value", `{}`: "want a single value", `"0123456"`: "longer than 8 bytes", ``: "ends too early",
	} {
		var got string
		require.EqualError(t, strictjson.Parse([]byte(text), strictjson.Scalar(&got, 8)), map[bool]string{true: "the JSON text " + want, false: want}[text == ""])
		require.Empty(t, got)
	}
}

// TestNothingNestsDeeperThanTheShape: a document that does is refused where it
// does, however deep it goes on.
func TestNothingNestsDeeperThanTheShape(t *testing.T) {
	const deep = 1 << 20
	for text, want := range map[string]string{
		strings.Repeat("[", deep):                                        "want an object",
		`{"items":` + strings.Repeat("[", deep):                          "items[0]: want an object",
		`{"name":` + strings.Repeat(`{"name":`, deep):                    "name: want a string",
		`{"items":[{"price":` + strings.Repeat("[", deep):                "items[0].price: want a number",
		`{"other":` + strings.Repeat("[", deep):                          `unknown member "other"; known: count, items, name`,
		`{"name":"x","items":[{"price":1}]}` + strings.Repeat("[", deep): "something follows the JSON value",
	} {
		allocated := testing.AllocsPerRun(1, func() {
			err := strictjson.Parse([]byte(text), shape(&order{}))
			require.EqualError(t, err, want)
		})
		require.Less(t, allocated, float64(deep/100), "its depth costs nothing")
	}
}
