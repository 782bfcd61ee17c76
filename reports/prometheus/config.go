package prometheus

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/invoicespec/brimline/internal/files"
	"github.com/invoicespec/brimline/internal/strictyaml"
	"github.com/invoicespec/brimline/reports/record"
)

// Config says which server to ask, and for what.
type Config struct {
	URL     string  `yaml:"url"`
	Job     string  `yaml:"job,omitempty"`        // that the engine is scraped under; empty: brimline
	Token   string  `yaml:"token-file,omitempty"` // a file with a bearer token, from the folder of this one
	Queries Queries `yaml:"queries,omitempty"`

	token string
}

// Queries are PromQL for what every engine names otherwise.
type Queries struct {
	EngineLatency     string `yaml:"engine-latency,omitempty"`     // seconds, at a high quantile
	EngineSaturation  string `yaml:"engine-saturation,omitempty"`  // share of the engine's places in use, 0 to 1
	CapacityExhausted string `yaml:"capacity-exhausted,omitempty"` // how many within the window: $window stands for it
}

// usualJob is the one that docs/metrics.md scrapes.
const usualJob = "brimline"

var jobName = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,128}$`)

const urls = "http://HOST:PORT or https://HOST, without a user: token-file names credentials"

// At is the configuration for a server that needs none but its address.
func At(address string) (Config, error) {
	if !plain(address) {
		return Config{}, fmt.Errorf("it is no such address; accepted: %s", urls)
	}
	return Config{URL: address, Job: usualJob}, nil
}

// plain reports whether an address is one to ask, and holds no credentials.
func plain(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// Read reads a configuration. Its errors name file, line and key, and no secret.
func Read(path string) (Config, error) {
	var c Config
	doc, err := strictyaml.Read(path, &c)
	if err != nil {
		return Config{}, err
	}
	if !plain(c.URL) {
		return Config{}, doc.Refuse("url", "it is no such address", urls)
	}
	if c.Job == "" {
		c.Job = usualJob
	}
	if !jobName.MatchString(c.Job) {
		return Config{}, doc.Refuse("job", "it is no such name", "up to 128 letters, digits and _.:/-")
	}
	if c.Token == "" {
		return c, nil
	}
	if !filepath.IsAbs(c.Token) {
		c.Token = filepath.Join(filepath.Dir(path), c.Token)
	}
	f, err := files.Open(c.Token)
	if err != nil {
		return Config{}, doc.Refuse("token-file", "it cannot be read", "a file, from the folder of this one")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 8<<10))
	if c.token = strings.TrimSpace(string(text)); err != nil || c.token == "" || strings.ContainsAny(c.token, " \r\n\t") {
		return Config{}, doc.Refuse("token-file", "it holds no token", "one word")
	}
	return c, nil
}

// figure is what to ask for.
type figure struct {
	name    record.MetricName
	unit    string
	query   string // empty: nobody gave one
	total   bool   // a counter's growth, not points in time
	missing string // why there may be none
}

const prefix = "invoicespec_rate_limit_"

// selector is a meter of the engine's, with more matchers.
func (c Config) selector(meter string, matchers ...string) string {
	return fmt.Sprintf("%s{%s}", meter, strings.Join(append([]string{fmt.Sprintf("job=%q", c.Job)}, matchers...), ","))
}

// figures are all figures; rates are taken over a time, counters over the window.
func (c Config) figures(over, window time.Duration) []figure {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%ds", max(1, int64(d/time.Second))) }
	const absent = "the server has no such meter under this job"
	const own = "every engine names it otherwise: a query in the file of --prometheus gives it"
	grown := func(by, meter string, matchers ...string) string {
		return fmt.Sprintf("sum by (%s) (increase(%s[%s]))", by, c.selector(prefix+meter, matchers...), seconds(window))
	}
	taken := func(share float64) string {
		return fmt.Sprintf("histogram_quantile(%g, sum by (le) (rate(%s[%s])))", share, c.selector(prefix+"decision_duration_seconds_bucket", `limiter="rate"`), seconds(over))
	}
	users := `reason=""`
	return []figure{
		{record.MetricTraffic, "requests a second", fmt.Sprintf("sum(rate(%s[%s]))", c.selector(prefix+"decisions_total", `limiter="rate"`, users), seconds(over)), false, absent},
		{record.MetricDecisions, "decisions", grown("requests_per_minute, limiter, outcome", "decisions_total", users), true, absent},
		{record.MetricDecisionP50, "seconds", taken(0.5), false, absent},
		{record.MetricDecisionP99, "seconds", taken(0.99), false, absent},
		{record.MetricEngineLatency, "seconds", c.Queries.EngineLatency, false, own},
		{record.MetricSaturation, "share", c.Queries.EngineSaturation, false, own},
		{record.MetricExhausted, "requests", strings.ReplaceAll(c.Queries.CapacityExhausted, "$window", seconds(window)), true, own},
		{record.MetricConfigFailed, "requests", grown("reason", "configuration_failures_total"), true, absent},
		{record.MetricStoreFailed, "requests", grown("", "store_failures_total"), true, absent},
		{record.MetricCacheSize, "entries", fmt.Sprintf("max by (cache) (%s)", c.selector(prefix+"cache_size")), false, absent},
		{record.MetricCachePressure, "share", fmt.Sprintf("max by (cache) (%s)", c.selector(prefix+"cache_eviction_pressure")), false, absent},
		{record.MetricCacheLossy, "entries", grown("cache", "cache_lossy_evictions_total"), true, absent},
		{record.MetricCPU, "processors", fmt.Sprintf("sum(rate(%s[%s]))", c.selector("process_cpu_seconds_total"), seconds(over)), false, absent},
	}
}
