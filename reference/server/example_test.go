package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/invoicespec/brimline/reference/server"
)

func ExampleOpen() {
	ctx := context.Background()
	s, err := server.Open(ctx, server.Config{Listen: "127.0.0.1:0", Users: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)

	key := s.Users()[0].Keys[0]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/invoice/calculate", strings.NewReader(goodInvoice))
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+key.Reveal())
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(key, resp.Status, resp.Header.Get("RateLimit-Limit"), resp.Header.Get("RateLimit-Remaining"))
	// Output: isk_enterprise_… 200 OK 100 99
}
