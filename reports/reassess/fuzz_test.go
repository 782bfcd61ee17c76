package reassess

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of a whole document with one schema the answer is what JSON says; of whatever
// else there is one.
func FuzzDocumentSchema(f *testing.F) {
	for _, seed := range []string{
		`{"schema":"brimline.run/1"}`, `{"a":[{"schema":"x"}],"schema":"y"`, `{"schema":1}`, `[]`, `{`, "\xff", `{"schema":"a","schema":"b"}`, `  {"":null,"schema":""}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := documentSchema(data)
		var document struct {
			Schema json.RawMessage `json:"schema"`
		}
		if got == "" || json.Unmarshal(data, &document) != nil {
			return
		}
		require.NotEmpty(t, document.Schema)
	})
}
