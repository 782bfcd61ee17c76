package main

import (
	"errors"
	"fmt"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/server"
)

// readUsers reads the users of another process from the keys file that it left.
func readUsers(path string) ([]server.User, error) {
	keys, err := target.ReadKeys(path)
	if err != nil {
		return nil, err
	}
	var users []server.User
	at := map[string]int{}
	for _, k := range keys {
		key, err := account.ParseKey(k.Secret.Reveal())
		if err != nil {
			return nil, fmt.Errorf("%s: user %q: %w", path, k.User, err)
		}
		i, seen := at[k.User]
		if !seen {
			i = len(users)
			at[k.User] = i
			users = append(users, server.User{ID: k.User, Plan: k.Plan})
		}
		users[i].Keys = append(users[i].Keys, key)
	}
	return users, nil
}

// startingUsers says whom the server starts with.
func (f serveFlags) startingUsers(cfg *server.Config, usersGiven bool) (err error) {
	switch {
	case f.keysFile == "":
	case cfg.Database != nil:
		return errors.New("--keys-file and --database-url exclude each other: the database has its users")
	case usersGiven:
		return errors.New("--keys-file and --users exclude each other")
	default:
		cfg.Known, err = readUsers(f.keysFile)
		return err
	}
	cfg.Users = f.users.n
	if cfg.Database != nil && !usersGiven {
		cfg.Users = 0 // the database has its own
	}
	return nil
}
