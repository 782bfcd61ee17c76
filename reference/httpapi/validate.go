package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/invoice"
)

// validate is the first step of the work proper (RATE-5, CONC-4): it reads the
// body, bounded in size and time, to its end, so that a client that goes away
// later is noticed (PERMIT-7), and refuses what is no invoice.
func validate(p *Ports, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := From(r.Context())
		body, err := p.readBody(w, r, x)
		if err == nil {
			x.Invoice, err = invoice.Parse(body)
		}
		if err != nil {
			p.respond(w, x, Reply{
				Status:  http.StatusUnprocessableEntity,
				Code:    contract.CodeValidationFailed,
				Message: err.Error(),
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (p *Ports) readBody(w http.ResponseWriter, r *http.Request, x *Exchange) ([]byte, error) {
	// At the end of the body the connection has no deadline again by itself.
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(p.Bounds.Upload))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, p.Bounds.Body))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("the body is larger than %d bytes", large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("the body did not arrive within %v", p.Bounds.Upload)
	case err != nil:
		return nil, errors.New("the body could not be read to its end")
	}
	x.unread = false
	return body, nil
}
