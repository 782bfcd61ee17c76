package apilog_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/apilog"
)

// printer is a sink that shows what it is given.
type printer struct{}

func (printer) Insert(_ context.Context, entries []contract.LogEntry) error {
	for _, e := range entries {
		fmt.Println(e.RequestID, e.Status)
	}
	return nil
}

func ExampleOpenSpool() {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	spool, err := apilog.OpenSpool(apilog.SpoolConfig{Dir: dir, Sink: printer{}, Logger: slog.Default()})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for n := range 2 {
		if err := spool.Write(ctx, contract.LogEntry{RequestID: fmt.Sprint("request-", n), Status: 200}); err != nil {
			panic(err)
		}
	}
	if err := spool.Close(ctx); err != nil {
		panic(err)
	}
	fmt.Println(spool.Stats().Delivered, "delivered,", spool.Stats().Waiting, "bytes wait")
	// Output:
	// request-0 200
	// request-1 200
	// 2 delivered, 0 bytes wait
}
