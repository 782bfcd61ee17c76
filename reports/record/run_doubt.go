package record

import (
	"fmt"
	"strings"

	"github.com/invoicespec/brimline/internal/figure"
)

// Within these bounds a run measured its target; beyond, it measured the machine
// that it was run on.
const (
	MostOwnDrops = 20     // the share of requests that it may fail to send in time: one in so many
	MostLateUS   = 50_000 // how late it may be with 99 of 100 requests; of under 1,000, with 19 of 20
	MostCPUShare = 0.9    // of its processors that it may use by itself
	MostGCShare  = 0.01   // of the time for which garbage collection may stop it
)

// Kinds of transport errors that are the load side's own.
const (
	ErrorNoDescriptor = "no file descriptor"
	ErrorNoPort       = "no port"
)

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
	sent := int64(0)
	for _, p := range r.Plans {
		sent += p.Sent
		if why := p.doubt(); why != "" {
			list = append(list, RunDoubt{p.Plan, why})
		}
	}
	if sent == 0 {
		return []RunDoubt{{Why: "no request was sent"}}
	}
	for _, why := range r.own() {
		list = append(list, RunDoubt{Why: why})
	}
	return list
}

// own says in which way the load side's machine was what was measured, and what
// it was short of.
func (r Run) own() (list []string) {
	var offered, own, busy, descriptors, ports int64
	for _, p := range r.Plans {
		offered += p.Offered
		own += p.Dropped - p.DroppedBusy
		busy += p.DroppedBusy
		for _, c := range p.TransportErrors {
			switch c.Name {
			case ErrorNoDescriptor:
				descriptors += c.N
			case ErrorNoPort:
				ports += c.N
			}
		}
	}
	g := r.Generator
	if own*MostOwnDrops > offered {
		list = append(list, fmt.Sprintf("it failed to send %s of %s in time", figure.Grouped(own), figure.Count(offered, "request")))
	}
	late, part := g.Late.P99US, "1 in 100"
	if g.Late.Count < 1000 {
		late, part = g.Late.P95US, "1 in 20"
	}
	if late > MostLateUS {
		list = append(list, fmt.Sprintf("it took %s requests up more than %s late, where %s are allowed", part, figure.Micros(late), figure.Micros(MostLateUS)))
	}
	if own, _, _ := g.Processors(); own > MostCPUShare {
		list = append(list, fmt.Sprintf("brimline itself used %s of its processors, where %s are allowed", figure.Short(own), figure.Short(MostCPUShare)))
	}
	if lasted := float64(g.WatchedMS); g.GCPauseMS > MostGCShare*lasted && lasted > 0 {
		list = append(list, fmt.Sprintf("garbage collection stopped it for %s of the time, where %s are allowed", figure.Short(g.GCPauseMS/lasted), figure.Short(MostGCShare)))
	}
	if len(list) > 0 {
		list = []string{"this machine was too slow: " + strings.Join(list, ", ") + g.because()}
	}
	say := func(n int64, format string, args ...any) {
		if n > 0 {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	say(descriptors, "this machine had no file descriptor left for %s: at most %d may be open", figure.Count(descriptors, "request"), g.DescriptorLimit)
	say(ports, "this machine had no port left for %s", figure.Count(ports, "request"))
	if g.WorkersWanted > g.Workers && busy*MostOwnDrops > offered {
		list = append(list, fmt.Sprintf("brimline sends at most %s at a time, and dropped %s of %s for it; %s would be needed",
			figure.Count(g.Workers, "request"), figure.Grouped(busy), figure.Grouped(offered), figure.Grouped(g.WorkersWanted)))
	}
	return list
}

// Processors is what share of its processors brimline used, and what share of the
// machine's other programs used and was kept from it; 0: not known.
func (g Generator) Processors() (own, others, stolen float64) {
	share := func(of, all float64) float64 {
		if all <= 0 {
			return 0
		}
		return of / all
	}
	return share(g.CPUSeconds, g.ProcessorSeconds), share(g.OthersSeconds, g.MachineSeconds), share(g.StolenSeconds, g.MachineSeconds)
}

// because says who took the machine's processors, where it is known.
func (g Generator) because() string {
	if g.MachineSeconds == 0 {
		return ""
	}
	own, others, stolen := g.Processors()
	return fmt.Sprintf(" (processors: brimline %.0f %%, other programs %.0f %%, taken by what this machine runs on %.0f %%)", 100*own, 100*others, 100*stolen)
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
