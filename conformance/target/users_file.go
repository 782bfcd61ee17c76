package target

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// UserOf is a user of a target file, whose keys are somewhere else.
type UserOf struct {
	ID   string      `yaml:"id"`
	Plan string      `yaml:"plan"`
	Keys []KeySource `yaml:"keys"`
}

// KeySource says where a key is. Env and File exclude each other.
type KeySource struct {
	Env  string `yaml:"env,omitempty"`  // a variable of the environment
	File string `yaml:"file,omitempty"` // holds the key alone; nobody but its owner may read it
}

// UnmarshalText refuses a key itself, without showing it.
func (*KeySource) UnmarshalText([]byte) error {
	return errors.New("others read this file: no keys in it; accepted: { env: NAME }, { file: PATH }")
}

// mostUsers bounds the users of a target file.
const mostUsers = 10_000

// checkUsers finds what makes no sense in the users of a file.
func (f File) checkUsers() *problem {
	if len(f.Users) > 0 && f.KeysFile != "" {
		return &problem{"users", "given beside keys-file", "one of the two"}
	}
	if len(f.Users) > mostUsers {
		return &problem{"users", fmt.Sprintf("%d of them", len(f.Users)), fmt.Sprintf("at most %d", mostUsers)}
	}
	seen := map[string]int{}
	for i, u := range f.Users {
		at := fmt.Sprintf("users[%d]", i)
		first, known := seen[u.ID]
		switch {
		case u.ID == "" || !isText(u.ID):
			return &problem{at + ".id", fmt.Sprintf("%q is no name", u.ID), "a name, such as the user's id"}
		case known:
			return &problem{at + ".id", fmt.Sprintf("%q is users[%d] as well", u.ID, first), "each user once, with all keys"}
		case f.Allowances[u.Plan] == Allowance{}:
			return &problem{at + ".plan", fmt.Sprintf("%q has no allowance", u.Plan), "a plan of allowances"}
		case len(u.Keys) == 0:
			return &problem{at + ".keys", "empty", "at least one of { env: NAME } and { file: PATH }"}
		}
		seen[u.ID] = i
		for j, k := range u.Keys {
			if p := k.check(fmt.Sprintf("%s.keys[%d]", at, j)); p != nil {
				return p
			}
		}
	}
	return nil
}

func (k KeySource) check(key string) *problem {
	const accepted = "{ env: NAME } or { file: PATH }"
	switch {
	case k.Env != "" && k.File != "":
		return &problem{key, "a variable and a file", "one of the two"}
	case k == KeySource{}:
		return &problem{key, "neither a variable nor a file", accepted}
	case k.Env != "" && !isVariable(k.Env):
		return &problem{key + ".env", fmt.Sprintf("%q is no variable", maskName(k.Env)), "letters, digits and _"}
	case strings.ContainsAny(k.File, "\n\x00"):
		return &problem{key + ".file", "no path", accepted}
	}
	return nil
}

// maskName is the name of a variable for people, unless it might be a key that
// somebody took for one.
func maskName(name string) string {
	if name == strings.ToUpper(name) {
		return name
	}
	return maskWords(name)
}

// usersKeys looks the keys of the file's users up.
func (f File) usersKeys(lookup func(string) (string, bool)) ([]Key, error) {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	if err := f.unsetVariables(lookup); err != nil {
		return nil, err
	}
	var all []Key
	seen := map[string]string{}
	for i, u := range f.Users {
		for j, source := range u.Keys {
			at := fmt.Sprintf("users[%d].keys[%d]", i, j)
			secret, err := f.key(source, lookup)
			if err == nil {
				if other, again := seen[secret.text]; again {
					err = fmt.Errorf("the key of %s again; accepted: each key once", other)
				}
				seen[secret.text] = at
			}
			if err != nil {
				return nil, f.naming(at, err)
			}
			all = append(all, Key{User: u.ID, Plan: u.Plan, Secret: secret, From: cmp.Or(maskName(source.Env), source.File)})
		}
	}
	return all, nil
}

// keyText is what a key may be.
const keyText = "a key of up to 4096 characters without spaces"

// unsetVariables names all of them at once, so that nobody sets one a run.
func (f File) unsetVariables(lookup func(string) (string, bool)) error {
	var names []string
	first := ""
	for i, u := range f.Users {
		for j, source := range u.Keys {
			if _, set := lookup(source.Env); !set && source.File == "" {
				first = cmp.Or(first, fmt.Sprintf("users[%d].keys[%d]", i, j))
				names = append(names, maskName(source.Env))
			}
		}
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
		return f.naming(first, fmt.Errorf("%s is not set; accepted: %s, in that variable of the environment", names[0], keyText))
	}
	const most = 20
	if n := len(names) - most; n > 0 {
		names = append(names[:most], fmt.Sprintf("and %d more", n))
	}
	return f.naming(first, fmt.Errorf("variables are not set: %s; accepted: %s, in each of them", strings.Join(names, ", "), keyText))
}

// key is one key, from where it is.
func (f File) key(k KeySource, lookup func(string) (string, bool)) (Secret, error) {
	if k.File != "" {
		secret, err := readToken(f.in(k.File))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG) { // it may be a key that somebody took for a path
			err = fmt.Errorf("%s: no such file; accepted: the path of a file that holds the key alone", maskWords(filepath.Base(k.File)))
		}
		return secret, err
	}
	text, _ := lookup(k.Env)
	switch {
	case text == "":
		return Secret{}, fmt.Errorf("%s is empty; accepted: %s, in that variable of the environment", maskName(k.Env), keyText)
	case !isTarget(text) || len(text) > 4096:
		return Secret{}, fmt.Errorf("%s holds no key that could be sent; accepted: %s, in that variable of the environment", maskName(k.Env), keyText)
	}
	return NewSecret(text), nil
}
