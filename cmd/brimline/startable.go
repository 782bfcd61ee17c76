package main

import (
	"path/filepath"
	"time"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/telemetry"
)

// startable is how the suite starts one more server, by the program that is
// running, with more arguments. It has users and keys from a file and its API log
// in another, so that they outlive it.
func startable(executable string, more ...string) *target.Process {
	return &target.Process{
		Command: append([]string{executable, "serve", "--listen", "127.0.0.1:{port}",
			"--metrics", "127.0.0.1:{metrics-port}", "--keys-file", "{keys-file}",
			"--control", "127.0.0.1:{control-port}", "--control-token-file", "{folder}/control.token",
			"--api-log", "{folder}/api.log"}, more...),
		// It runs no other program. A library of the suite's looks for one at every
		// start, which takes longer than all the rest.
		Environment: map[string]string{"PATH": ""},
		MetricsURL:  "http://127.0.0.1:{metrics-port}" + telemetry.Path,
		Control:     &target.ControlAddress{URL: "http://127.0.0.1:{control-port}", TokenFile: "{folder}/control.token"},
		KeptLog:     true,
		// Nobody waits for these but where a server hangs, or the machine is busy.
		ReadyWithin: 2 * time.Minute,
		StopWithin:  2 * time.Minute,
	}
}

// offer adds to a target file what the server and the program can do beside HTTP.
func (f serveFlags) offer(file *target.File, s *server.Server, cfg server.Config, executable string) error {
	if url := s.MetricsURL(); url != "" {
		file.Can.Metrics = &target.MetricsAddress{URL: url + telemetry.Path}
	}
	if executable == "" || cfg.Database != nil || len(s.Users()) == 0 {
		return nil // a database's address is a secret, and without users nobody can be asked as
	}
	var more []string
	if f.plans != "" {
		path, err := filepath.Abs(f.plans)
		if err != nil {
			return err
		}
		more = append(more, "--plans", path)
	}
	if f.fault.Apply != nil {
		more = append(more, "--fault", f.fault.Name)
	}
	file.Can.Process = startable(executable, more...)
	return nil
}

// keysOf are the keys of the users that a server started with.
func keysOf(s *server.Server) []target.Key {
	var keys []target.Key
	for _, u := range s.Users() {
		for _, k := range u.Keys {
			keys = append(keys, target.Key{User: u.ID, Plan: u.Plan, Secret: target.NewSecret(k.Reveal())})
		}
	}
	return keys
}
