package operator

import (
	"fmt"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/invoicespec/brimline/internal/strictjson"
	"github.com/invoicespec/brimline/reference/account"
)

// capacity is the routes by which services of the engine account for operations
// that no request of a user stands behind, such as a batch (LOG-7). A
// reservation's id is the caller's own; each call may be repeated.
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

// ownPrefix keeps ids of services apart from those of requests.
const ownPrefix = "svc_"

func (c capacity) reserve(r *http.Request) (any, error) {
	var user, id string
	if err := read(r, strictjson.Object(map[string]strictjson.Value{
		"user": strictjson.Text(&user, maxID), "id": strictjson.Text(&id, maxID),
	})); err != nil {
		return nil, err
	}
	if id == "" {
		return nil, fmt.Errorf("%w: the id is empty", account.ErrRefused)
	}
	return nil, c.ledger.Reserve(r.Context(), user, ownPrefix+id)
}

func (c capacity) charge(r *http.Request) (any, error) {
	return nil, c.ledger.Charge(r.Context(), ownPrefix+mux.Vars(r)["id"])
}

func (c capacity) giveBack(r *http.Request) (any, error) {
	return nil, c.ledger.GiveBack(r.Context(), ownPrefix+mux.Vars(r)["id"])
}
