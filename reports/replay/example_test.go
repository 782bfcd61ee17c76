package replay_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/replay"
)

// Five requests in one second, under two bursts.
func ExampleRun() {
	text := strings.Repeat(`192.0.2.7 - - [04/Oct/2026:04:00:00 +0000] "GET /v1/invoice/7 HTTP/1.1" 200 51`+"\n", 5)
	sources := []accesslog.Source{accesslog.Stream("access.log", strings.NewReader(text))}
	log, err := accesslog.Read(context.Background(), sources, accesslog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := replay.Run(context.Background(), log, replay.Question{Rates: []int64{10}, Bursts: []int64{2, 5}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range result.Cells {
		fmt.Printf("%d per minute, burst %d: %d of %d rejected\n", c.Rate, c.Burst, c.Rejected, result.Attempts)
	}
	fmt.Println("burst needed:", result.BurstNeeded[0].Max)
	// Output:
	// 10 per minute, burst 2: 3 of 5 rejected
	// 10 per minute, burst 5: 0 of 5 rejected
	// burst needed: 5
}
