package main

import (
	"crypto/rand"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

type middleware = func(http.Handler) http.Handler

// plan is what a user, or an address, may do: so many requests in a window. All
// limiters get the same two figures; one that counts in tokens takes the quotient
// for its rate and the count for its burst.
type plan struct {
	requests int
	window   time.Duration
}

var (
	plans     = map[string]plan{"free": {5, 10 * time.Second}, "pro": {20, 10 * time.Second}}
	strangers = plan{10, 20 * time.Second} // attempts of one address without a good key
)

// limit is what a library is asked for.
type limit struct {
	plan
	header string           // each of its values is somebody; empty: each address is
	refuse http.HandlerFunc // writes the answer, where the library lets one
}

// key says whose request it is.
func (l limit) key(r *http.Request) string {
	if l.header != "" {
		return r.Header.Get(l.header)
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// application is the API: one operation, and a library's limiter for each plan
// before it, by API key; before the answer to everybody else there is another, by
// address. A nil library limits nothing.
func application(known map[string]string, library func(limit) middleware) http.Handler {
	unauthorized := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusUnauthorized, "UNAUTHENTICATED", "exactly one good key, as Authorization: Bearer")
	}))
	limited := map[string]http.Handler{}
	for name, p := range plans {
		limited[name] = http.HandlerFunc(invoice)
		if library != nil {
			limited[name] = library(limit{plan: p, header: "Authorization", refuse: tooMany})(limited[name])
		}
	}
	if library != nil {
		unauthorized = library(limit{plan: strangers, refuse: tooMany})(unauthorized)
	}
	authenticate := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		plan, good := known[key]
		if !bearer || !good || len(r.Header.Values("Authorization")) != 1 {
			unauthorized.ServeHTTP(w, r)
			return
		}
		limited[plan].ServeHTTP(w, r)
	})
	mux := http.NewServeMux()
	mux.Handle("/v1/invoice", authenticate)
	mux.Handle("/v1/invoice/", authenticate)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "up\n") })
	return mux
}

// invoice is the operation: it adds up the lines of an invoice.
func invoice(w http.ResponseWriter, r *http.Request) {
	const path = "/v1/invoice/calculate"
	switch {
	case r.URL.Path != path:
		problem(w, http.StatusNotFound, "NOT_FOUND", "there is "+path)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		problem(w, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "use POST")
		return
	}
	var in struct {
		Lines []struct{ Amount int64 }
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in); err != nil || len(in.Lines) == 0 {
		problem(w, http.StatusUnprocessableEntity, "VALIDATION_FAILED", "an invoice has lines")
		return
	}
	io.Copy(io.Discard, r.Body)
	var total int64
	for _, l := range in.Lines {
		total += l.Amount
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]int64{"total": total})
}

// tooMany is the answer to who is refused, for libraries that take one.
func tooMany(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	problem(w, http.StatusTooManyRequests, "RATE_LIMIT_EXCEEDED", "too many requests")
}

// problem answers with an error in the contract's shape.
func problem(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"requestId": w.Header().Get(requestID), "errorCode": code, "message": message})
}

const requestID = "X-Request-Id"

func mintIDs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(requestID, rand.Text())
		next.ServeHTTP(w, r)
	})
}

func takeIDs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(requestID, r.Header.Get(requestID))
		next.ServeHTTP(w, r)
	})
}

// readKeys reads which keys there are, and the plan of each.
func readKeys(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	known := map[string]string{}
	for _, row := range rows[1:] {
		if _, ok := plans[row[1]]; !ok {
			return nil, fmt.Errorf("%s: there is no plan %q", path, row[1])
		}
		known[row[2]] = row[1]
	}
	return known, nil
}

// must is for what can fail only if this program is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
