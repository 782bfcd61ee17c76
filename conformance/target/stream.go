package target

import (
	"context"
	"fmt"

	"github.com/invoicespec/brimline/conformance/contract"
)

// ResetStream sends half of a request over HTTP/2 and resets its stream once it
// is seen to be in flight; its connection stays open until u is returned. An
// exchange without status and error is one that was reset; where the request was
// answered instead, it is the answer, judged like that of [Target.Send].
func (t *Target) ResetStream(ctx context.Context, u *User, r Request) Exchange {
	if !t.Has(contract.NeedHTTP2) || len(r.Body) < 2 {
		return Exchange{Method: r.Method, Path: r.Path, Err: fmt.Errorf("%w: to reset a stream of HTTP/2", ErrUnsupported)}
	}
	h, e := t.hold(ctx, u, r, PlaceUpload, HTTP2)
	if h != nil {
		h.Drop()
		e.Findings = h.Findings()
	}
	return e
}
