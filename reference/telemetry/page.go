package telemetry

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Path is where the page is.
const Path = "/metrics"

// A scrape that takes longer than scrapeTime is answered 503, and so is one that
// comes while maxScrapes run.
const (
	scrapeTime = 5 * time.Second
	maxScrapes = 4
)

// Handler is the page of metrics and nothing beside it: for a listener of its
// own, since whoever reaches it may read it. It is never compressed.
func (m *Meters) Handler() http.Handler {
	page := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(m.logger.Handler(), slog.LevelError),
		ErrorHandling:       promhttp.HTTPErrorOnError,
		DisableCompression:  true,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTime,
	})
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, page) // HEAD too
	return mux
}
