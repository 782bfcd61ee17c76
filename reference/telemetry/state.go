package telemetry

import "github.com/prometheus/client_golang/prometheus"

// state is the meters that are read at each scrape, all figures of one part at
// the same moment.
type state struct {
	limiter Limiter
	gate    Gate // may be nil
	log     Log  // may be nil

	pressure, evictions, lossy, size                    *prometheus.Desc
	pools, forgotten, known                             *prometheus.Desc
	written, delivered, refused, torn, dropped, waiting *prometheus.Desc
}

func newState(cfg Config) *state {
	cache := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(limitPrefix+"_cache_"+name, help, []string{labelCache}, nil)
	}
	entries := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(logPrefix+"_"+name, help, labels, nil)
	}
	anonymous := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(limitPrefix+"_anonymous_"+name, help, nil, nil)
	}
	return &state{
		limiter: cfg.Limiter, gate: cfg.Gate, log: cfg.Log,
		pressure:  cache("eviction_pressure", "Size of the cache divided by its maximum; bulkheads have no maximum of their own and are held against that of the buckets."),
		evictions: cache("evictions", "Entries dropped since the start, those that had gone idle included; a bulkhead is never dropped."),
		lossy:     cache("lossy_evictions_total", "Entries dropped for want of room although they still held something: a user got spent tokens back."),
		size:      cache("size", "Entries in the cache: users with a bucket, users with requests in flight."),
		pools:     anonymous("pools", "Client addresses of which attempts are remembered."),
		forgotten: anonymous("lossy_evictions_total", "Addresses forgotten for want of room although they had spent attempts: they got them back."),
		known:     anonymous("known_keys", "Keys lately seen good, which need nothing of their address."),
		written:   entries("written_total", "Entries that were spooled."),
		delivered: entries("delivered_total", "Entries that the database has taken; after a crash some are counted again."),
		refused:   entries("refused_total", "Entries that the database would not have and that were set aside."),
		torn:      entries("torn_total", "Lines that a killed process left unfinished."),
		dropped:   entries("dropped_total", "Entries that were not spooled: anonymous rejections while it was nearly full, others once it was full, or because the file system failed.", labelReason),
		waiting:   entries("waiting_bytes", "Bytes in the spool that the database has not taken yet."),
	}
}

func (s *state) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.pressure, s.evictions, s.lossy, s.size} {
		c <- d
	}
	if s.gate != nil {
		for _, d := range []*prometheus.Desc{s.pools, s.forgotten, s.known} {
			c <- d
		}
	}
	if s.log == nil {
		return
	}
	for _, d := range []*prometheus.Desc{s.written, s.delivered, s.refused, s.torn, s.dropped, s.waiting} {
		c <- d
	}
}

func (s *state) Collect(c chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	buckets, inFlight := s.limiter.Stats(), s.limiter.SubjectsInFlight()
	const b, h = "buckets", "bulkheads"
	gauge(s.size, float64(buckets.Size), b)
	gauge(s.size, float64(inFlight), h)
	gauge(s.pressure, float64(buckets.Size)/float64(buckets.Maximum), b)
	gauge(s.pressure, float64(inFlight)/float64(buckets.Maximum), h)
	gauge(s.evictions, float64(buckets.Evictions), b)
	gauge(s.evictions, 0, h)
	counter(s.lossy, float64(buckets.Lossy), b)
	counter(s.lossy, 0, h)
	if s.gate != nil {
		g := s.gate.Stats()
		gauge(s.pools, float64(g.Pools.Size))
		counter(s.forgotten, float64(g.Pools.Lossy))
		gauge(s.known, float64(g.Known))
	}
	if s.log == nil {
		return
	}
	l := s.log.Stats()
	counter(s.written, float64(l.Written))
	counter(s.delivered, float64(l.Delivered))
	counter(s.refused, float64(l.Refused))
	counter(s.torn, float64(l.Torn))
	counter(s.dropped, float64(l.Dropped.Anonymous), "anonymous")
	counter(s.dropped, float64(l.Dropped.Full), "full")
	counter(s.dropped, float64(l.Dropped.Failed), "failed")
	gauge(s.waiting, float64(l.Waiting))
}
