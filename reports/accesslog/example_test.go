package accesslog_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/invoicespec/brimline/reports/accesslog"
)

func ExampleRead() {
	text := `192.0.2.7 - - [04/Oct/2026:04:00:00 +0000] "GET /v1/invoice/7 HTTP/1.1" 200 51
192.0.2.8 - - [04/Oct/2026:04:00:01 +0000] "" 400 0
no entry at all
`
	sources := []accesslog.Source{accesslog.Stream("access.log", strings.NewReader(text))}
	log, err := accesslog.Read(context.Background(), sources, accesslog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	q := log.Quality
	fmt.Println(q.Format, q.Lines, "lines,", q.Entries, "entries,", q.Malformed, "malformed,", log.Attempts.Len(), "attempts")
	for _, d := range q.Dropped {
		fmt.Println(d.N, d.Name)
	}
	// Output:
	// common 3 lines, 2 entries, 1 malformed, 2 attempts
	// 1 no client and time at its start
}
