//go:build !unix

package apilog

import (
	"errors"
	"os"
)

// lockDirectory refuses where a killed process would leave its lock behind.
func lockDirectory(string) (*os.File, error) { return nil, errors.ErrUnsupported }
