package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"
)

// maxUsers is how many addresses 198.18.0.0/15, which is set apart for tests, has.
const maxUsers = 1 << 17

// write writes a log of a week in which few users make most of the requests; the
// same lines and users make the same log.
func write(path string, lines, users int) (int64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	if err := entries(out, lines, users); err != nil {
		return 0, err
	}
	if err := out.Flush(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), f.Close()
}

func entries(w io.Writer, lines, users int) error {
	random := rand.New(rand.NewPCG(1, 0))
	busy := rand.NewZipf(random, 1.1, 10, uint64(users-1))
	const week = 7 * 24 * 3600
	start := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	paths := [...]string{"/v1/invoice/calculate", "/v1/invoice/validate", "/v1/invoice/7f3a/pdf", "/v1/invoice/9b1c?currency=EUR"}
	agents := [...]string{"python-requests/2.32.3", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "invoice-sdk-java/3.1.4"}
	var stamp string
	last := int64(-1)
	for i := range lines {
		if second := int64(float64(i) / float64(lines) * week); second != last {
			last = second
			stamp = start.Add(time.Duration(second) * time.Second).Format("02/Jan/2006:15:04:05 +0000")
		}
		user := busy.Uint64()
		status := 200
		if random.IntN(25) == 0 {
			status = 422
		}
		if _, err := fmt.Fprintf(w, "198.%d.%d.%d - - [%s] \"POST %s HTTP/1.1\" %d %d \"-\" %q\n",
			18+user>>16, user>>8&255, user&255, stamp, paths[random.IntN(len(paths))], status, 200+random.IntN(1800), agents[user%3]); err != nil {
			return err
		}
	}
	return nil
}
