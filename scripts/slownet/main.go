// Command slownet puts a slow network in front of a server on this machine: it
// listens on loopback, says where, and forwards what comes, each direction
// delayed, until it is interrupted.
//
//	slownet --to 127.0.0.1:8080 --delay 25ms --jitter 10ms
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/invoicespec/brimline/internal/slownet"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "listen on `ADDRESS`, on loopback")
	to := flag.String("to", "", "forward to `ADDRESS`")
	delay := flag.Duration("delay", 50*time.Millisecond, "delay each direction by `TIME`")
	jitter := flag.Duration("jitter", 0, "and by up to `TIME` more, drawn anew for all that comes at once")
	flag.Parse()
	if *to == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	each := slownet.Delay{Least: *delay, Jitter: *jitter}
	p, err := slownet.StartAt(*listen, *to, each, each)
	if err != nil {
		fmt.Fprintf(os.Stderr, "slownet: %v\n", err)
		os.Exit(2)
	}
	fmt.Println(p.Addr())
	<-ctx.Done()
	p.Close()
}
