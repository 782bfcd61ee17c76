// Replaycompare writes a big access log and puts it through "brimline replay",
// for one allowance and for a table of twelve rates by twelve bursts, and through
// goaccess, one after another, and prints what each of them cost:
//
//	make replay-compare LINES=10000000
//
// Times and memory are those of each process alone. goaccess only parses and
// counts; it is here for scale, since it is what people read such logs with.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

func main() {
	lines := flag.Int("lines", 10_000_000, "lines of the log")
	users := flag.Int("users", 20_000, "clients in it")
	tools := flag.String("tools", "", "folder of brimline; empty: from PATH")
	flag.Parse()
	if err := compare(*lines, *users, *tools); err != nil {
		fmt.Fprintln(os.Stderr, "replaycompare:", err)
		os.Exit(2)
	}
}

func compare(lines, users int, tools string) error {
	if lines < 1 || users < 1 || users > maxUsers {
		return fmt.Errorf("%d lines by %d users; accepted: at least one of each, at most %d users", lines, users, maxUsers)
	}
	folder, err := os.MkdirTemp("", "replaycompare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	log := filepath.Join(folder, "access.log")
	bytes, err := write(log, lines, users)
	if err != nil {
		return err
	}
	fmt.Printf("%d lines, %d MB, Combined format, %d users, %d processors\n\n", lines, bytes>>20, users, runtime.NumCPU())
	fmt.Println("| | seconds | million lines/s | processor s | MB most |")
	fmt.Println("|---|---|---|---|---|")
	brimline := "brimline"
	if tools != "" {
		brimline = filepath.Join(tools, brimline)
	}
	const twelve = "5,10,15,20,30,45,60,75,90,120,200,300"
	for _, c := range []struct {
		name string
		args []string
	}{
		{"brimline replay, one allowance", []string{brimline, "replay", log, "--rate", "10", "--burst", "10", "--json"}},
		{"brimline replay, 12 × 12 allowances", []string{brimline, "replay", log, "--rate", twelve, "--burst", twelve, "--json"}},
		{"goaccess, parsing alone", []string{"goaccess", log, "--log-format=COMBINED", "--no-progress", "--no-global-config", "-o", filepath.Join(folder, "goaccess.json")}},
	} {
		if err := run(c.name, lines, c.args); err != nil {
			return err
		}
	}
	return nil
}

// run prints what one command cost.
func run(name string, lines int, args []string) error {
	c := exec.Command(args[0], args[1:]...)
	c.Stdout, c.Stderr = io.Discard, os.Stderr
	began := time.Now()
	if err := c.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			fmt.Printf("| %s | not installed | | | |\n", name)
			return nil
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	took := time.Since(began).Seconds()
	usage := c.ProcessState.SysUsage().(*syscall.Rusage)
	processor := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	fmt.Printf("| %s | %.1f | %.2f | %.1f | %d |\n", name, took, float64(lines)/took/1e6, processor.Seconds(), usage.Maxrss>>10)
	return nil
}
