package conformance_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/invoicespec/brimline/conformance/target"
)

// builtIn is the folder of what was built; empty: nothing was.
var builtIn string

// program builds the program once, for servers in processes of their own.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "brimline-program-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	path := filepath.Join(dir, "brimline")
	if out, err := exec.Command("go", "build", "-o", path, "../cmd/brimline").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return path, nil
})

func removeProgram() {
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
}

// startable is how another reference is started.
func startable() (*target.Process, error) {
	path, err := program()
	if err != nil {
		return nil, err
	}
	return &target.Process{
		Command: []string{path, "serve", "--listen", "127.0.0.1:{port}", "--metrics", "127.0.0.1:{metrics-port}", "--keys-file", "{keys-file}",
			"--control", "127.0.0.1:{control-port}", "--control-token-file", "{folder}/control.token",
			"--api-log", "{folder}/api.log"},
		Environment: map[string]string{"PATH": ""}, // it runs no other program
		Control:     &target.ControlAddress{URL: "http://127.0.0.1:{control-port}", TokenFile: "{folder}/control.token"},
		KeptLog:     true,
		ReadyWithin: 2 * time.Minute, // a busy machine takes its time
		StopWithin:  2 * time.Minute,
		MetricsURL:  "http://127.0.0.1:{metrics-port}/metrics",
	}, nil
}
