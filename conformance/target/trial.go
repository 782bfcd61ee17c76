package target

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/invoicespec/brimline/conformance/contract"
)

// trial is whether the program of can.process starts a server at all. It is found
// out once a start has failed: as long as none has, nobody has to know, and a
// start takes long.
type trial struct {
	mu   sync.Mutex
	over bool
	err  error // it does not: every start fails, whatever it was to show
}

// of takes in how a start went. Where none has ever been ready it tries one with
// nothing set, which a server of any kind must take.
func (r *trial) of(ctx context.Context, t *Target, s Start) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || s.Ready || t.vouched(contract.NeedProcess) {
		r.over = true
		return r.err
	}
	p, err := t.newProcess(nil)
	if err != nil {
		return err
	}
	defer p.remove()
	bare, err := p.begin(ctx)
	if err != nil {
		return err
	}
	r.over = true
	if !bare.Ready {
		r.err = fmt.Errorf("%w: can.process: with nothing set, %s", ErrUntrue, clipped(bare.String()))
	}
	return r.err
}

// clipped is what fits into a line of a report.
func clipped(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[:min(len(text), maxLine)]
}
