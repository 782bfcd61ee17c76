package postgres

import "github.com/jackc/pgx/v5"

// Traced is cfg with a tracer of the API's own queries.
func (cfg Config) Traced(t pgx.QueryTracer) Config {
	cfg.tracer = t
	return cfg
}
