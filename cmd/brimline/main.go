// Command brimline says whether the rate limits of an HTTP API are what they
// should be. See README.md for a tour, and "brimline help" for the verbs.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)     // a second signal does not wait for anything
	executable, _ := os.Executable() // without it less can be judged
	code := run(ctx, os.Args[1:], world{getenv: os.LookupEnv, executable: executable, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr})
	stop()
	os.Exit(code)
}
