// Foreign serves one small API behind the rate limiter of somebody else, so that
// the conformance suite can be run against limiters that its authors did not
// write. Each file named after a library wraps the same application the way that
// library's own documentation does, with what it offers and nothing added.
//
//	foreign LIBRARY [-listen 127.0.0.1:0] [-keys keys.csv]
//
// It prints the URL it serves and ends when its standard input does. "plain" is
// the application without a limiter, for a proxy to stand before; it takes the
// request id that the proxy has minted.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// libraries is what stands before the application, by the name on the command line.
var libraries = map[string]func(limit) middleware{
	"go-limiter": goLimiter,
	"httprate":   chiHTTPRate,
	"throttled":  throttledGCRA,
	"tollbooth":  didipTollbooth,
	"ulule":      ululeLimiter,
	"x-time":     xTime,
}

func main() {
	log.SetFlags(0)
	names := strings.Join(slices.Sorted(maps.Keys(libraries)), ", ") + ", plain"
	if len(os.Args) < 2 {
		log.Fatalf("which limiter? accepted: %s", names)
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "`ADDRESS` to listen on")
	file := flags.String("keys", "keys.csv", "`FILE` of keys: user,plan,key")
	flags.Parse(os.Args[2:])

	known, err := readKeys(*file)
	if err != nil {
		log.Fatal(err)
	}
	var api http.Handler
	if library, ok := libraries[os.Args[1]]; ok {
		api = mintIDs(application(known, library))
	} else if os.Args[1] == "plain" {
		api = takeIDs(application(known, nil))
	} else {
		log.Fatalf("%s is no limiter; accepted: %s", os.Args[1], names)
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin) // whoever started it has gone
		os.Exit(0)
	}()
	log.Fatal((&http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second}).Serve(l))
}
