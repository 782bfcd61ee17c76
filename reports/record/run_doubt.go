package record

import (
	"fmt"

	"github.com/invoicespec/brimline/internal/figure"
)

// MostOwnDrops is the share of requests that the load side may fail to send
// before a run says nothing of its target: one in so many.
const MostOwnDrops = 20

// RunDoubt is why a run tells nothing of its target.
type RunDoubt struct {
	Plan string `json:"plan,omitempty"` // absent: of any plan
	Why  string `json:"why"`
}

// Doubts says what of a run's figures tells nothing of the target: a plan of
// which nothing was sent or admitted or most was not answered, and a load side
// that was too slow. [Run.Untold] keeps them.
func (r Run) Doubts() []RunDoubt {
	list := []RunDoubt{}
	var offered, sent, own int64
	for _, p := range r.Plans {
		offered += p.Offered
		sent += p.Sent
		own += p.Dropped - p.DroppedBusy
		if why := p.doubt(); why != "" {
			list = append(list, RunDoubt{p.Plan, why})
		}
	}
	switch {
	case sent == 0:
		return []RunDoubt{{Why: "no request was sent"}}
	case own*MostOwnDrops > offered:
		list = append(list, RunDoubt{Why: fmt.Sprintf("this machine was too slow: it failed to send %s of %s in time", figure.Grouped(own), figure.Count(offered, "request"))})
	}
	return list
}

func (p RunPlan) doubt() string {
	lost := sum(p.TransportErrors)
	switch {
	case p.Sent == 0 && p.Offered > 0:
		return fmt.Sprintf("none of %s that came due was sent", figure.Count(p.Offered, "request"))
	case p.Sent > 0 && lost == p.Sent:
		return fmt.Sprintf("none of %s was answered", figure.Count(p.Sent, "request"))
	case 2*lost > p.Sent:
		return fmt.Sprintf("%s of %s got no whole answer", figure.Grouped(lost), figure.Count(p.Sent, "request"))
	case p.Sent > 0 && p.Admitted == 0:
		return fmt.Sprintf("none of %s was admitted", figure.Count(p.Sent, "request"))
	}
	return ""
}

// Unjudged is how many 429s named no cause that could be judged, or came without
// RateLimit headers.
func (p RunPlan) Unjudged() (unnamed, anonymous int64) {
	for _, c := range p.OtherStatuses {
		if c.Name == "429" {
			unnamed += c.N
		}
	}
	return unnamed, p.RejectedAnonymous
}

func sum(list []Count) (n int64) {
	for _, c := range list {
		n += c.N
	}
	return n
}
