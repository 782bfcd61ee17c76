package traffic

import (
	"fmt"
	"math"
	"time"
)

// Scaled is the scenario with every rate times a factor, for so long and by
// another seed. Only traffic whose rate stays can be scaled, and only what is
// meant to be admitted tells what a target carries.
func (s Scenario) Scaled(factor float64, d time.Duration, seed int64) (Scenario, error) {
	populations := make([]Population, len(s.Populations))
	for i, p := range s.Populations {
		switch a := &p.Arrival; {
		case p.Mix.Share(Unauthenticated) > 0:
			return Scenario{}, s.refuse(i, "mix.unauthenticated", "such requests are no load to find a capacity by", "a mix without them")
		case a.Word != "":
			p.Rate.number = max(1, int64(math.Round(float64(p.Rate.number)*factor)))
			if p.Rate.text = fmt.Sprintf("%g", float64(p.Rate.number)/thousandth); p.Rate.ofShare {
				p.Rate.text += "x"
			}
		case a.Bursts > 0:
			a.Every = max(1, time.Duration(float64(a.Every)/factor))
		default:
			return Scenario{}, s.refuse(i, "arrival", fmt.Sprintf("%q has a rate that changes, which cannot be raised in steps", a), fmt.Sprintf("%s, %s or bursts", Constant, Poisson))
		}
		populations[i] = p
	}
	s.Populations, s.Duration, s.Seed = populations, d, seed
	return s, nil
}

// PerSecond is how many requests a second members ask for on average, and the
// most that they could if every rate were as much higher, before the first of
// them asks for more than it may.
func PerSecond(members []Member) (now, allowed float64) {
	headroom := math.Inf(1)
	for _, m := range members {
		perMinute := m.Process.Expected(time.Hour) / 60
		now += perMinute / 60
		headroom = min(headroom, float64(m.Allowance.RequestsPerMinute)/perMinute)
	}
	return now, now * headroom
}
