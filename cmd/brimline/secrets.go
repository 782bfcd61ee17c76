package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/invoicespec/brimline/internal/files"
	"github.com/invoicespec/brimline/reference/account"
)

// maxSecret is the largest file that is read as a secret, in bytes.
const maxSecret = 4 << 10

// writeSecret writes a file for its owner alone, also where one was there that
// others could read.
func writeSecret(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = file.Chmod(0o600)
	if err == nil {
		_, err = file.WriteString(text + "\n")
	}
	return errors.Join(err, file.Close())
}

// readSecret reads a file that nobody but its owner can read: one secret and
// perhaps a newline.
func readSecret(path string) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: others can read it (mode %#o); run: chmod 600 %[1]s", path, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return nil, err
	}
	secret := bytes.TrimRight(data, "\r\n")
	switch {
	case len(data) > maxSecret:
		return nil, fmt.Errorf("%s: more than %d bytes; accepted: one secret", path, maxSecret)
	case len(secret) == 0:
		return nil, fmt.Errorf("%s: empty; accepted: one secret", path)
	}
	return secret, nil
}

// readFile reads a file of a bounded size.
func readFile(path string, most int64) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: too large; accepted: at most %d bytes", path, most)
	}
	return data, err
}

// readKeySecret reads what API keys in a database are digested with.
func readKeySecret(path string) ([]byte, error) {
	if path == "" {
		return nil, errors.New("--database-url needs --key-secret-file: a secret that API keys are digested with, the same for all who use the database; make one with: (umask 077; openssl rand -hex 32 > key.secret)")
	}
	secret, err := readSecret(path)
	if err == nil && len(secret) < account.MinSecret {
		err = fmt.Errorf("%s: %d bytes; accepted: %d or more", path, len(secret), account.MinSecret)
	}
	return secret, err
}
