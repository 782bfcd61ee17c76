package operator

import (
	"fmt"
	"net/http"
	"regexp"

	"github.com/gorilla/mux"

	"github.com/invoicespec/brimline/internal/strictjson"
	"github.com/invoicespec/brimline/reference/account"
)

// capacity is the routes by which services of the engine account for operations
// that no request of a user stands behind, such as a batch (LOG-7). A
// reservation's id is the caller's own and used once; to charge it and to give it
// back may be repeated for as long as [account.ReservationLapse].
type capacity struct{ ledger Ledger }

func (c capacity) routes() []route {
	return []route{
		{http.MethodPost, "/reservations", c.reserve},
		{http.MethodPost, "/reservations/{id}/charge", c.charge},
		{http.MethodDelete, "/reservations/{id}", c.giveBack},
	}
}

// maxID bounds a reservation's id and a user's.
const maxID = 128

// reservationID is what a path can hold of one.
var reservationID = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// ownPrefix keeps ids of services apart from those of requests.
const ownPrefix = "svc_"

func (c capacity) reserve(r *http.Request) (any, error) {
	var user, id string
	if err := read(r, strictjson.Object(map[string]strictjson.Value{
		"user": strictjson.Text(&user, maxID), "id": strictjson.Text(&id, maxID-len(ownPrefix)),
	})); err != nil {
		return nil, err
	}
	if !reservationID.MatchString(id) {
		return nil, fmt.Errorf("%w: the id is not 1 to %d of A-Z, a-z, 0-9, '.', '_' and '-'", account.ErrRefused, maxID-len(ownPrefix))
	}
	return nil, c.ledger.Reserve(r.Context(), user, ownPrefix+id)
}

func (c capacity) charge(r *http.Request) (any, error) {
	return nil, c.ledger.Charge(r.Context(), ownPrefix+mux.Vars(r)["id"])
}

func (c capacity) giveBack(r *http.Request) (any, error) {
	return nil, c.ledger.GiveBack(r.Context(), ownPrefix+mux.Vars(r)["id"])
}
