package target_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

func TestScopeOfATargetFile(t *testing.T) {
	for name, tc := range map[string]struct {
		limited, valid string
		prefix         string
		holds, leaves  []string
	}{
		"the contract's own":   {"", "/v1/invoice/calculate", "/v1/invoice", []string{"/v1/invoice", "/v1/invoice?x", "/v1/invoice/a/b"}, []string{"/v1/invoices", "/v1", "/health"}},
		"deep below it":        {"", "/v1/invoice/a/b", "/v1/invoice", nil, nil},
		"the operation's":      {"", "/api/price?x=/a/b", "/api", []string{"/api", "/api/price", "/api/a/b"}, []string{"/apis", "/v1/invoice", "/"}},
		"beside it":            {"", "/v1/invoices/x", "/v1/invoices", nil, []string{"/v1/invoice"}},
		"at the root":          {"", "/price", "/price", []string{"/price", "/price/x"}, []string{"/prices", "/"}},
		"as the file says":     {"/api", "/api/v2/price", "/api", []string{"/api/v1"}, []string{"/ap"}},
		"the whole host":       {"/", "/price", "/", []string{"/", "/price"}, []string{"/health"}},
		"more than the prefix": {"/v1", "/v1/invoice/calculate", "/v1", []string{"/v1/x"}, []string{"/v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(goodFile, "/v1/invoice/calculate", tc.valid, 1)
			if tc.limited != "" {
				text = strings.Replace(text, "limits:", "limited: "+tc.limited+"\nlimits:", 1)
			}
			f, err := target.ReadFile(filepath.Join(folder(t, map[string]string{"t.yaml": text, "ok.json": `{"a":1}`}), "t.yaml"))
			require.NoError(t, err)
			s := f.Scope()
			require.Equal(t, tc.prefix, s.Prefix)
			for _, path := range tc.holds {
				require.True(t, s.Holds(path), path)
			}
			for _, path := range tc.leaves {
				require.False(t, s.Holds(path), path)
			}
			require.True(t, s.Holds(s.Below("x")))
			require.NotContains(t, s.Below("x"), "//")
		})
	}
	_, err := target.ReadFile(filepath.Join(folder(t, map[string]string{"t.yaml": strings.Replace(goodFile, "limits:", "limited: /api\nlimits:", 1), "ok.json": `{"a":1}`}), "t.yaml"))
	require.ErrorContains(t, err, `limited: "/api" does not hold operations.valid.path`)
}
