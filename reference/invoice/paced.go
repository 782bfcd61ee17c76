package invoice

import (
	"context"
	"time"
)

// Paced is an engine whose capacity is known: so many invoices at once, each for
// so long, and the others wait their turn. It carries workers / takes.
type Paced struct {
	engine Engine
	places chan struct{}
	takes  time.Duration
}

// NewPaced is an engine of so many workers, at least one.
func NewPaced(workers int, takes time.Duration) *Paced {
	return &Paced{places: make(chan struct{}, workers), takes: takes}
}

// Calculate works on an invoice once a worker is free.
func (p *Paced) Calculate(ctx context.Context, in Invoice) (Result, error) {
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	defer func() { <-p.places }()
	t := time.NewTimer(p.takes)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	return p.engine.Calculate(ctx, in)
}
