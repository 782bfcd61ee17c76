package target_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

const usersFile = `base-urls: [BASE]
credential: { header: X-Api-Key, template: "{key}" }
users:
  - id: ada
    plan: free
    keys: [{ env: ADA_1 }, { file: ada.key }]
  - { id: bob, plan: free, keys: [{ env: BOB }] }
operations:
  valid: { method: POST, path: /v1/invoice/calculate, body: "{}" }
allowances:
  free: { requests-per-minute: 10, burst: 10, concurrency: 2 }
`

func TestUsersWithKeysFromElsewhere(t *testing.T) {
	const one, two, three = "isk_free_0123456789abcdef0001", "isk_free_0123456789abcdef0002", "isk_free_0123456789abcdef0003"
	up := answering(t, 200)
	for name, c := range map[string]struct {
		environment map[string]string
		file, want  string
		mode        os.FileMode
	}{
		"all there":           {map[string]string{"ADA_1": one, "BOB": three}, two + "\n", "", 0o600},
		"not set":             {map[string]string{"BOB": three}, two, ":6: users[0].keys[0]: ADA_1 is not set; accepted: a key of up to 4096 characters without spaces, in that variable of the environment", 0o600},
		"two not set":         {nil, two, ":6: users[0].keys[0]: variables are not set: ADA_1, BOB; accepted: a key of up to 4096 characters without spaces, in each of them", 0o600},
		"empty":               {map[string]string{"ADA_1": one, "BOB": ""}, two, ":7: users[1].keys[0]: BOB is empty; accepted: a key", 0o600},
		"of two lines":        {map[string]string{"ADA_1": one + "\n" + two, "BOB": three}, two, ":6: users[0].keys[0]: ADA_1 holds no key that could be sent", 0o600},
		"the same twice":      {map[string]string{"ADA_1": one, "BOB": two}, two, ":7: users[1].keys[0]: the key of users[0].keys[1] again; accepted: each key once", 0o600},
		"no file":             {map[string]string{"ADA_1": one, "BOB": three}, "", "ada.key: no such file", 0o600},
		"an empty file":       {map[string]string{"ADA_1": one, "BOB": three}, " \n", "ada.key: no token", 0o600},
		"a file for everyone": {map[string]string{"ADA_1": one, "BOB": three}, two, "ada.key: mode 0644 lets others read it", 0o644},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"t.yaml": strings.Replace(usersFile, "BASE", up, 1)})
			if c.file != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "ada.key"), []byte(c.file), c.mode))
			}
			path := filepath.Join(dir, "t.yaml")
			f, err := target.ReadFile(path)
			require.NoError(t, err)
			tg, err := target.Open(t.Context(), f, target.Options{Environment: func(name string) (string, bool) {
				v, ok := c.environment[name]
				return v, ok
			}})
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				require.True(t, strings.HasPrefix(err.Error(), path+":"), "%v", err)
				require.NotContains(t, err.Error(), "\n")
				require.NotContains(t, err.Error(), "0123456789", "no error shows a key")
				return
			}
			require.NoError(t, err)
			defer tg.Close()
			u := lease(t, tg, "free", 2)
			require.Equal(t, "ada", u.ID)
			for key, secret := range []string{one, two} {
				r := tg.Valid()
				r.Key = key
				e := tg.Send(t.Context(), u, r)
				require.NoError(t, e.Err)
				require.Contains(t, e.Curl, "-H 'X-Api-Key: isk_free_…'")
				require.Equal(t, "isk_free_… is masked", tg.Mask(secret+" is masked"))
			}
		})
	}
}

// Without a word of where else, variables are those of this process.
func TestUsersWithKeysFromTheEnvironment(t *testing.T) {
	t.Setenv("ADA_1", "isk_free_0123456789abcdef0001")
	dir := folder(t, map[string]string{"t.yaml": strings.NewReplacer("BASE", answering(t, 200), ", { file: ada.key }", "", "env: BOB", "env: ADA_1").Replace(usersFile)})
	f, err := target.ReadFile(filepath.Join(dir, "t.yaml"))
	require.NoError(t, err)
	_, err = target.Open(t.Context(), f, target.Options{})
	require.ErrorContains(t, err, ":7: users[1].keys[0]: the key of users[0].keys[0] again")
}
