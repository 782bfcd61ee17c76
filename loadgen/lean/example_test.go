package lean_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/invoicespec/brimline/loadgen/lean"
)

func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer server.Close()
	transport := &lean.Transport{Connections: 10}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	for range 3 {
		resp, err := client.Get(server.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(resp.Body)
		fmt.Println(resp.Status, string(body), err)
	}
	fmt.Println("connections:", transport.Opened())
	// Output:
	// 200 OK hello <nil>
	// 200 OK hello <nil>
	// 200 OK hello <nil>
	// connections: 1
}
