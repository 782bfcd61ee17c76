package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	path      = "/v1/invoice/calculate"
	body      = `{"currency":"EUR","lines":[{"description":"Consulting","quantity":"2.5","unitPrice":"120.00","taxRate":"19"}]}`
	allowance = 1_000_000 // of everything: the bucket is full again by the time of the next request
	answer    = `{"total":"357.00","currency":"EUR","requestId":"0123456789ab"}`
	refusal   = `{"requestId":"0123456789ab","errorCode":"RATE_LIMIT_EXCEEDED","message":"Too many requests."}`
)

// serverMode is how the server behaves.
type serverMode struct {
	mix    bool          // every other answer is a 429
	freeze time.Duration // it stands still once, for so long
}

// seen is how requests came.
type seen struct {
	Requests int
	Rate     float64 // between the first and the last
	GapP50US float64
	GapP99US float64
	Fano     float64 // variance by mean of arrivals in 10 ms; evenly spread: 0, at random: 1
	Most     int     // in any 10 ms
}

// serve is the server's process. It says its address on a line, and how requests
// came once its input ends.
func serve(args []string) error {
	f := flag.NewFlagSet("server", flag.ContinueOnError)
	var mode serverMode
	f.BoolVar(&mode.mix, "mix", false, "")
	f.DurationVar(&mode.freeze, "freeze", 0, "")
	at := f.Duration("at", 0, "when it stands still, after the first request")
	if err := f.Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var times []time.Time
	var standing sync.RWMutex
	var first sync.Once
	var n atomic.Int64
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		mu.Lock()
		times = append(times, now)
		mu.Unlock()
		if mode.freeze > 0 {
			first.Do(func() {
				time.AfterFunc(*at, func() { standing.Lock(); time.Sleep(mode.freeze); standing.Unlock() })
			})
			standing.RLock()
			defer standing.RUnlock()
		}
		_, _ = io.Copy(io.Discard, r.Body)
		h := w.Header()
		h["RateLimit-Limit"], h["RateLimit-Remaining"], h["RateLimit-Reset"] = []string{"1000000"}, []string{"999999"}, []string{"1"}
		h["Content-Type"] = []string{"application/json"}
		if mode.mix && n.Add(1)%2 == 0 {
			h["RateLimit-Remaining"], h["Retry-After"] = []string{"0"}, []string{"1"}
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, refusal)
			return
		}
		_, _ = io.WriteString(w, answer)
	})}
	go func() { _ = server.Serve(l) }()
	fmt.Println(l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	mu.Lock()
	defer mu.Unlock()
	return json.NewEncoder(os.Stdout).Encode(judge(times))
}

func judge(times []time.Time) seen {
	s := seen{Requests: len(times)}
	if len(times) < 3 {
		return s
	}
	slices.SortFunc(times, time.Time.Compare)
	var gaps []float64
	const window = 10 * time.Millisecond
	counts := make([]float64, times[len(times)-1].Sub(times[0])/window+1)
	first := 0
	for i, t := range times {
		counts[t.Sub(times[0])/window]++
		if i > 0 {
			gaps = append(gaps, float64(t.Sub(times[i-1]).Nanoseconds())/1000)
		}
		for t.Sub(times[first]) >= window {
			first++
		}
		s.Most = max(s.Most, i-first+1)
	}
	slices.Sort(gaps)
	s.GapP50US, s.GapP99US = gaps[len(gaps)/2], gaps[len(gaps)*99/100]
	s.Rate = float64(len(gaps)) / times[len(times)-1].Sub(times[0]).Seconds()
	mean, variance := 0.0, 0.0
	for _, c := range counts {
		mean += c / float64(len(counts))
	}
	for _, c := range counts {
		variance += math.Pow(c-mean, 2) / float64(len(counts))
	}
	s.Fano = variance / mean
	return s
}

// server is the server's process as the comparison has it.
type server struct {
	address string
	command *exec.Cmd
	in      io.Closer
	out     *bufio.Reader
}

func startServer(ctx context.Context, mode serverMode, at time.Duration) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{command: exec.CommandContext(ctx, self, "server", fmt.Sprintf("-mix=%v", mode.mix), "-freeze", mode.freeze.String(), "-at", at.String())}
	s.command.Stderr = os.Stderr
	if s.in, err = s.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReader(out)
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	line, err := s.out.ReadString('\n')
	s.address = strings.TrimSpace(line)
	return s, err
}

// seen ends the server and asks what it has seen.
func (s *server) seen() (v seen, err error) {
	if err := s.in.Close(); err != nil {
		return v, err
	}
	return v, json.NewDecoder(s.out).Decode(&v)
}

func (s *server) stop() {
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
}
