// Package httpapi is the API as HTTP: the chain of links that a request in
// scope passes, the ports they are built from, and the answers' form. It
// carries out SCOPE-1 to SCOPE-4, AUTH-1, ANON-1 to ANON-7, RATE-4 to RATE-7, HDR-1 to HDR-9,
// ERR-1 to ERR-5, CONC-1 to CONC-5 and PERMIT-1 to PERMIT-8.
//
// Read [Chain] first: it is the contract's enforcement order, one file a link.
// [Handler] puts a chain together and decides, by the decoded path alone, who
// has to pass it; package wiring holds all parts as data.
package httpapi

import "net/http"

// Link is one step of the chain, by the name others refer to it with.
type Link struct {
	Name string
	Wrap func(p *Ports, next http.Handler) http.Handler
}

// The names of the links.
const (
	LinkRequestID    = "request-id"
	LinkAPILog       = "api-log"
	LinkAuthenticate = "authenticate"
	LinkLimit        = "limit"
	LinkRoute        = "route"
	LinkValidate     = "validate"
	LinkCapacity     = "capacity"
	LinkEngine       = "engine"
)

// Chain is the order of the contract, outermost first. Whichever link answers
// does so through one function, which composes, lets the entry be spooled,
// writes and flushes; only then do the links return and the permit is released.
func Chain() Links {
	return Links{
		{LinkRequestID, requestID},
		{LinkAPILog, apiLog},
		{LinkAuthenticate, authenticate},
		{LinkLimit, limit},
		{LinkRoute, route},
		{LinkValidate, validate},
		{LinkCapacity, capacity},
		{LinkEngine, engine},
	}
}

// Links is a chain that can be rearranged by name. A name that is not there is
// a mistake of the program: its methods panic then.
type Links []Link

// At is the place of the link called name.
func (c Links) At(name string) int {
	for i, l := range c {
		if l.Name == name {
			return i
		}
	}
	panic("httpapi: no link called " + name)
}

// Before returns the chain with l just outside the link called name.
func (c Links) Before(name string, l Link) Links { return c.splice(c.At(name), 0, l) }

// After returns the chain with l just inside the link called name.
func (c Links) After(name string, l Link) Links { return c.splice(c.At(name)+1, 0, l) }

// Replace returns the chain with l in place of the link called name.
func (c Links) Replace(name string, l Link) Links { return c.splice(c.At(name), 1, l) }

// Without returns the chain without the link called name.
func (c Links) Without(name string) Links { return c.splice(c.At(name), 1) }

func (c Links) splice(at, drop int, in ...Link) Links {
	out := append(Links{}, c[:at]...)
	out = append(out, in...)
	return append(out, c[at+drop:]...)
}

// Build makes one handler of the chain. The innermost link answers every
// request, so nothing lies beyond it.
func (c Links) Build(p *Ports) http.Handler {
	var h http.Handler = http.NotFoundHandler()
	for i := len(c) - 1; i >= 0; i-- {
		h = c[i].Wrap(p, h)
	}
	return h
}
