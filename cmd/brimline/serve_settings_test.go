package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
)

// noEnvironment is an environment without variables.
func noEnvironment(string) (string, bool) { return "", false }

// printConfig is a row of "serve --print-config", and the exit code with what
// was said where there is none.
func printConfig(t *testing.T, key string, env map[string]string, args ...string) (row []string, code int, said string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"serve", "--print-config"}, args...), world{
		getenv: func(name string) (string, bool) { text, ok := env[name]; return text, ok },
		stdin:  strings.NewReader(""), stdout: &out, stderr: &errs,
	})
	for line := range strings.Lines(out.String()) {
		if words := strings.Fields(line); words[0] == key {
			return words, code, errs.String()
		}
	}
	return nil, code, errs.String()
}

// settingFile is a settings file with one setting in it.
func settingFile(t *testing.T, key, value string) string {
	t.Helper()
	var text strings.Builder
	parts := strings.Split(key, ".")
	for depth, part := range parts {
		fmt.Fprintf(&text, "%s%s:", strings.Repeat("  ", depth), part)
		if depth < len(parts)-1 {
			text.WriteString("\n")
		}
	}
	text.WriteString(" " + value + "\n")
	path := filepath.Join(t.TempDir(), "brimline.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	return path
}

// TestEverySettingOfTheContractHasItsThreeNames: each key of the contract can be
// set in a file, in the environment and by a flag, the later over the earlier,
// and --print-config shows its value and where that came from.
func TestEverySettingOfTheContractHasItsThreeNames(t *testing.T) {
	values := map[string][4]string{ // the default, and what file, environment and flag say
		"replicas":                      {"1", "2", "3", "4"},
		"storage":                       {"local", "one", "two", "three"},
		"cache.maximum-size":            {"100000", "2", "3", "4"},
		"cache.idle-expiry":             {"15m0s", "2m0s", "3m0s", "4m0s"},
		"anonymous.requests-per-minute": {"30", "2", "3", "4"},
		"anonymous.burst":               {"10", "2", "3", "4"},
		"anonymous.concurrency":         {"5", "2", "3", "4"},
		"anonymous.trusted-proxies":     {"", "[10.0.0.0/8]", "10.0.0.0/9", "10.0.0.0/10"},
		"anonymous.client-header":       {"X-Forwarded-For", "Forwarded", "X-Real-IP", "Forwarded"},
		"anonymous.ipv6-prefix":         {"64", "48", "56", "128"},
	}
	for _, s := range contract.Settings() {
		t.Run(s.Key, func(t *testing.T) {
			v, ok := values[s.Key]
			require.True(t, ok, "a setting without values to try")
			key := contract.SettingsPrefix + s.Key
			file := settingFile(t, key, v[1])
			env := map[string]string{s.Variable(): v[2]}
			flag := "--rate-limit." + s.Key + "=" + v[3]
			for _, tc := range []struct {
				name, value string
				env         map[string]string
				args        []string
			}{
				{"default", v[0], nil, nil},
				{"file", strings.Trim(v[1], "[]"), nil, []string{"--config", file}},
				{"environment", v[2], env, []string{"--config", file}},
				{"flag", v[3], env, []string{"--config", file, flag}},
			} {
				row, code, said := printConfig(t, key, tc.env, tc.args...)
				require.Equal(t, exitHolds, code, said)
				require.Equal(t, strings.Fields(key+" "+tc.value+" "+tc.name), row)
			}
		})
	}
	require.Len(t, values, len(contract.Settings()))
}

// TestNonsenseIsRefusedAtStart: what the contract says makes no sense, makes
// none wherever it is written. The refusal names setting and place, and says what
// is accepted.
func TestNonsenseIsRefusedAtStart(t *testing.T) {
	for _, s := range contract.Settings() {
		key := contract.SettingsPrefix + s.Key
		for _, value := range s.Nonsense {
			for name, place := range map[string]struct {
				env  map[string]string
				args []string
				says string
			}{
				"environment": {map[string]string{s.Variable(): value}, nil, s.Variable() + " (" + key + ")"},
				"flag":        {nil, []string{"--rate-limit." + s.Key + "=" + value}, "rate-limit." + s.Key},
				"file":        {nil, []string{"--config", settingFile(t, key, yamlValue(s.Key, value))}, "brimline.yaml:"},
			} {
				t.Run(fmt.Sprintf("%s=%q in the %s", s.Key, value, name), func(t *testing.T) {
					var out, errs bytes.Buffer
					code := run(t.Context(), append([]string{"serve", "--listen", "127.0.0.1:0"}, place.args...), world{
						getenv: func(name string) (string, bool) { text, ok := place.env[name]; return text, ok },
						stdin:  strings.NewReader(""), stdout: &out, stderr: &errs,
					})
					require.Equal(t, exitUsage, code, out.String())
					require.Empty(t, out.String(), "it never listened")
					require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
					require.Contains(t, errs.String(), s.Key)
					if value != "" { // nothing says more than that it was lost
						require.Contains(t, errs.String(), "accepted: ")
					}
					if guarded := s.Key == contract.SettingStorage && value != ""; !guarded { // a guard, which knows the server and not who configured it
						require.Contains(t, errs.String(), place.says)
					}
				})
			}
		}
	}
}

// yamlValue is a value as a file would say it.
func yamlValue(key, value string) string {
	switch {
	case strings.HasSuffix(key, "trusted-proxies"):
		return "[" + value + "]"
	case value == "", strings.Contains(value, ","):
		return `"` + value + `"`
	}
	return value
}
