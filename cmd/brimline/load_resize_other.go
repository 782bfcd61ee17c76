//go:build !unix

package main

import "os"

// resizes never tells; the size is asked for with every drawing anyway.
func resizes() (_ <-chan os.Signal, end func()) { return nil, func() {} }
