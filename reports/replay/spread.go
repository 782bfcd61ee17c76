package replay

import "github.com/invoicespec/brimline/reports/record"

// spread is how often each value occurred. It grows with the different values,
// of which its users see to it that there are few.
type spread map[int64]int64

func (s spread) add(value int64) { s[value]++ }

func (s spread) merge(o spread) {
	for value, n := range o {
		s[value] += n
	}
}

// quart is its quantiles by nearest rank, in units of which per make one value.
func (s spread) quart(per float64) record.ReportQuart {
	values := sortedKeys(s)
	var total int64
	for _, n := range s {
		total += n
	}
	at := func(permille int64) float64 {
		rank, below := (total*permille+999)/1000, int64(0)
		for _, v := range values {
			if below += s[v]; below >= rank {
				return float64(v) / per
			}
		}
		return 0
	}
	return record.ReportQuart{P50: at(500), P95: at(950), P99: at(990), Max: at(1000)}
}
