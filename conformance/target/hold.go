package target

import (
	"context"

	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// Place is where a request can be held in flight.
type Place string

// The places. All but the first need gates of the control protocol.
const (
	PlaceUpload         Place = "upload" // half of the body is sent; witness: 100 Continue came
	PlaceAuthentication Place = Place(control.PlaceAuthentication)
	PlaceEngine         Place = Place(control.PlaceEngine)
	PlaceResponse       Place = Place(control.PlaceResponse)
)

// CanHold reports whether requests can be held at a place.
func (t *Target) CanHold(p Place) bool { return false }

// Hold sends a request and returns once it is seen to be in flight at the
// place. Where it was answered instead, held is nil and the exchange is the
// answer, judged like that of [Target.Send]; where neither could be seen in
// time, the exchange's Err wraps [ErrNoWitness].
func (t *Target) Hold(ctx context.Context, u *User, r Request, p Place) (*Held, Exchange) {
	return nil, Exchange{}
}

// HoldTogether is Hold for requests that leave at one moment. Exchanges are
// those of the requests that were answered; held ones are in no order.
func (t *Target) HoldTogether(ctx context.Context, u *User, rs []Request, p Place) ([]*Held, []Exchange, []oracle.Finding) {
	return nil, nil, nil
}

// Held is a request in flight. End it with Finish, Drop or Reset; whoever
// returns its user ends it too.
type Held struct{}

// Findings is what the oracle holds against the token that the request spent.
func (h *Held) Findings() []oracle.Finding { return nil }

// Finish lets the request go on and returns its answer. A gate lets all requests
// of its user go at once; their answers wait for their own Finish.
func (h *Held) Finish(ctx context.Context) Exchange { return Exchange{} }

// Drop closes the connection as a client does that goes away.
func (h *Held) Drop() {}

// Reset tears the connection down without a farewell (RST).
func (h *Held) Reset() {}
