package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/pgtest"
)

// office is a database and its key secret, and the verbs on them.
type office struct {
	*testing.T
	url, secret string
}

func openOffice(t *testing.T) office {
	secret := filepath.Join(t.TempDir(), "key.secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("s", 64)+"\n"), 0o600))
	return office{t, pgtest.Database(t), secret}
}

func (o office) run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	env := map[string]string{"BRIMLINE_DATABASE_URL": o.url, "BRIMLINE_KEY_SECRET_FILE": o.secret}
	code = run(o.Context(), args, world{getenv: func(name string) (string, bool) { text, ok := env[name]; return text, ok }, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
	return code, out.String(), errs.String()
}

// admin requires that an admin command succeeds.
func (o office) admin(args ...string) string {
	o.Helper()
	code, out, errs := o.run(append([]string{"admin"}, args...)...)
	require.Equal(o, exitHolds, code, errs)
	return out
}

func TestAdmin(t *testing.T) {
	o := openOffice(t)
	require.Contains(t, o.admin("migrate"), "schema is up to date")
	require.Contains(t, o.admin("migrate"), "schema is up to date (0 steps)")
	created := strings.Fields(o.admin("user", "create", "--plan", "free", "--keys", "2"))
	require.Len(t, created, 3)
	user := created[0]
	require.Regexp(t, `^isk_free_`, created[1])
	require.Regexp(t, `^isk_free_`, o.admin("key", "create", user))

	keys := o.admin("key", "list", user)
	require.Equal(t, 4, strings.Count(keys, "\n"))
	require.NotContains(t, keys, created[1], "a key is shown once")
	o.admin("key", "revoke", user, user+"/1")
	require.Regexp(t, user+`/1 .* 2\d{3}-\S+\n`, o.admin("key", "list", user))

	o.admin("override", "set", user, "burst", "40", "--author", "ann", "--reason", "launch", "--expires", "2999-01-31T00:00:00Z")
	require.Regexp(t, `burst +40 \(negotiated\)`, o.admin("user", "show", user))
	o.admin("override", "expire", user, "burst", "--author", "bob", "--reason", "over")
	require.Regexp(t, `burst +10 \(plan\)`, o.admin("user", "show", user))
	require.Regexp(t, `burst +40 .*ann +launch .*bob +over`, o.admin("override", "list", user))

	require.Contains(t, o.admin("plan", "change", user, "pro"), user+" is on pro from ")
	require.Regexp(t, `plan +free\nnext plan +pro from `, o.admin("user", "show", user))
	o.admin("plan", "cancel", user)
	require.NotContains(t, o.admin("user", "show", user), "next plan")
	o.admin("plan", "change", user, "pro", "--end-period-now")
	require.Regexp(t, `plan +pro\nrequests-per-minute +300 \(plan\)`, o.admin("user", "show", user))
	o.admin("user", "operations", user, "7")
	require.Contains(t, o.admin("user", "show", user), "0 used, 7 left")
}

func TestAdminRefuses(t *testing.T) {
	o := openOffice(t)
	code, _, errs := o.run("admin", "user", "show", "user-1")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "migrate it")
	right := o.secret
	o.secret = filepath.Join(t.TempDir(), "short.secret")
	require.NoError(t, os.WriteFile(o.secret, []byte("short"), 0o600))
	code, out, errs := o.run("admin", "migrate")
	require.Equal(t, exitUsage, code)
	require.Empty(t, out)
	require.Contains(t, errs, "5 bytes; accepted: 32 or more")
	o.secret = right
	code, _, errs = o.run("admin", "user", "show", "user-1")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "migrate it", "nothing was changed")
	o.admin("migrate")
	user := strings.Fields(o.admin("user", "create"))[0]
	note := []string{"--author", "ann", "--reason", "launch"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown user":      {[]string{"user", "show", "user-999"}, `unknown user "user-999"`},
		"an unknown plan":      {[]string{"user", "create", "--plan", "gold"}, `unknown plan "gold"`},
		"an unknown key":       {[]string{"key", "revoke", user, user + "/9"}, "unknown API key"},
		"zero":                 {append([]string{"override", "set", user, "burst", "0"}, note...), `burst "0" is no whole number from 1 to 1000000`},
		"a fraction":           {append([]string{"override", "set", user, "burst", "1.5"}, note...), `burst "1.5" is no whole number`},
		"a sentinel":           {append([]string{"override", "set", user, "burst", "unlimited"}, note...), `"unlimited"`},
		"no author":            {[]string{"override", "set", user, "burst", "4", "--reason", "x"}, "the author is missing"},
		"no reason":            {[]string{"override", "set", user, "burst", "4", "--author", "x"}, "the reason is missing"},
		"no date":              {append([]string{"override", "set", user, "burst", "4", "--expires", "tomorrow"}, note...), `--expires "tomorrow"; accepted: a time such as`},
		"a date that is over":  {append([]string{"override", "set", user, "burst", "4", "--expires", "2020-01-01T00:00:00Z"}, note...), "expire"},
		"no dimension":         {append([]string{"override", "set", user, "speed", "4"}, note...), `"speed" is none of the dimensions`},
		"operations in words":  {[]string{"user", "operations", user, "many"}, `"many" operations; accepted`},
		"fewer keys than none": {[]string{"user", "create", "--keys", "-1"}, "--keys -1; accepted: 0 to 64"},
		"no such verb":         {[]string{"key", "delete", user, user + "/1"}, `brimline admin key: got "delete ` + user + " " + user + `/1"; accepted: create, list, revoke`},
		"no such group":        {[]string{"keys"}, `brimline admin: got "keys"; accepted: `},
		"a group alone":        {[]string{"key"}, `brimline admin key: got ""; accepted: `},
		"too few arguments":    {[]string{"user", "show"}, "accepts 1 arg"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := o.run(append([]string{"admin"}, c.args...)...)
			require.Equal(t, exitUsage, code)
			require.Empty(t, out)
			require.Contains(t, errs, c.want)
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		})
	}
	require.Equal(t, "dimension  value  set  by  why  expires  ended  by  why\n", o.admin("override", "list", user))
}

func TestAdminWithoutADatabase(t *testing.T) {
	o := office{t, "postgres://nobody:hush@127.0.0.1:1/none", ""}
	code, _, errs := o.run("admin", "user", "show", "user-1")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "--key-secret-file")
	o.secret = filepath.Join(t.TempDir(), "open.secret")
	require.NoError(t, os.WriteFile(o.secret, []byte(strings.Repeat("s", 64)), 0o644))
	code, _, errs = o.run("admin", "user", "show", "user-1")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "others can read it (mode 0644)")
	require.NoError(t, os.Chmod(o.secret, 0o600))
	for _, args := range [][]string{{"admin", "user", "show", "user-1"}, {"admin", "migrate"}, {"serve", "--listen", "127.0.0.1:0"}} {
		code, _, errs = o.run(args...)
		require.Equal(t, exitCannotTell, code)
		require.NotContains(t, errs, "hush")
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	o.url = ""
	code, _, errs = o.run("admin", "migrate")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "--database-url")
}
