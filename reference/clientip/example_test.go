package clientip_test

import (
	"fmt"
	"net/http"

	"github.com/invoicespec/brimline/reference/clientip"
)

// The proxies at 10.0.0.0/8 append whom they got a request from. What the client
// wrote itself stands to the left of that, and changes nothing.
func ExampleResolver_Client() {
	trusted, err := clientip.ParseTrusted([]string{"10.0.0.0/8"})
	if err != nil {
		panic(err)
	}
	r, err := clientip.New(clientip.Config{Trusted: trusted})
	if err != nil {
		panic(err)
	}
	req := &http.Request{RemoteAddr: "10.0.0.1:51234", Header: http.Header{}}
	req.Header.Add("X-Forwarded-For", "198.51.100.66, 2001:db8:1:2::5")
	req.Header.Add("X-Forwarded-For", "10.0.0.2")

	client := r.Client(req)
	fmt.Println("client", client)
	fmt.Println("pool  ", r.Pool(client))
	fmt.Println("log   ", r.Logged(client))

	req.RemoteAddr = "203.0.113.9:51234"
	fmt.Println("client", r.Client(req), "when nobody trusted sent it")
	// Output:
	// client 2001:db8:1:2::5
	// pool   2001:db8:1:2::/64
	// log    2001:db8:1:2::/64
	// client 203.0.113.9 when nobody trusted sent it
}
