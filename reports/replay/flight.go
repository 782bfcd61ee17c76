package replay

import (
	"math"
	"slices"

	"github.com/invoicespec/brimline/reports/timeline"
)

// inFlight is the ends of a user's requests in flight, the earliest on top of a
// heap.
type inFlight struct{ ends []int64 }

// at is how many are in flight at an instant; one that ends at it no longer is.
func (f *inFlight) at(t int64) int64 {
	for len(f.ends) > 0 && f.ends[0] <= t {
		f.pop()
	}
	return int64(len(f.ends))
}

// add is a request that begins at an instant. One whose duration the log does
// not tell is over at once.
func (f *inFlight) add(at, hold int64) {
	if hold == timeline.NoHold {
		return
	}
	end := at + hold
	if end < at {
		end = math.MaxInt64
	}
	f.ends = append(f.ends, end)
	for i := len(f.ends) - 1; i > 0; {
		parent := (i - 1) / 2
		if f.ends[parent] <= f.ends[i] {
			return
		}
		f.ends[parent], f.ends[i] = f.ends[i], f.ends[parent]
		i = parent
	}
}

func (f *inFlight) pop() {
	last := len(f.ends) - 1
	f.ends[0] = f.ends[last]
	f.ends = f.ends[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && f.ends[child] < f.ends[least] {
				least = child
			}
		}
		if least == i {
			return
		}
		f.ends[i], f.ends[least] = f.ends[least], f.ends[i]
		i = least
	}
}

func (f *inFlight) copy() inFlight { return inFlight{ends: slices.Clone(f.ends)} }
