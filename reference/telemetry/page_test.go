package telemetry_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/telemetry"
)

func get(h http.Handler, method, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("Accept-Encoding", "gzip, zstd")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func scrape(t *testing.T, h http.Handler) string {
	t.Helper()
	w := get(h, http.MethodGet, telemetry.Path)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	return w.Body.String()
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return n
}

func TestHandler(t *testing.T) {
	h := newMeters().Handler()
	for name, c := range map[string]struct {
		method, path string
		want         int
	}{
		"page":        {http.MethodGet, "/metrics", http.StatusOK},
		"head":        {http.MethodHead, "/metrics", http.StatusOK},
		"root":        {http.MethodGet, "/", http.StatusNotFound},
		"below":       {http.MethodGet, "/metrics/x", http.StatusNotFound},
		"the API":     {http.MethodGet, "/v1/invoice", http.StatusNotFound},
		"other verbs": {http.MethodPost, "/metrics", http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, get(h, c.method, c.path).Code) })
	}
	w := get(h, http.MethodGet, telemetry.Path)
	require.Empty(t, w.Header().Get("Content-Encoding"), "compressed")
	require.Contains(t, w.Header().Get("Content-Type"), "text/plain; version=0.0.4")
}

// stuck is a limiter whose figures do not come until it is let go.
type stuck struct {
	some
	let <-chan struct{}
}

func (s stuck) Stats() limiter.Stats { <-s.let; return s.some.Stats() }

// TestScrapesAreBounded: a scrape that gets nowhere is given up, a few of them
// keep further ones out, and all is well afterwards.
func TestScrapesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		m := telemetry.New(telemetry.Config{Limiter: stuck{let: let}, Logger: slog.New(slog.DiscardHandler)})
		h := m.Handler()
		began := time.Now()
		for range 10 {
			require.Equal(t, http.StatusServiceUnavailable, get(h, http.MethodGet, telemetry.Path).Code)
		}
		require.Equal(t, 4*5*time.Second, time.Since(began), "four wait until they are given up, the others not at all")
		close(let)
		synctest.Wait()
		_ = scrape(t, h)
	})
}
