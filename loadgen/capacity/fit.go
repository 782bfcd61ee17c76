package capacity

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/invoicespec/brimline/reports/record"
)

// What a fit is held to.
const (
	draws      = 400  // of the bootstrap
	flattens   = 0.5  // of the slope before a knee is left after it, at most, in all but 2.5 % of the draws
	leastShort = 0.05 // of what the slope before the knee would give is missing at the last load
	climbs     = 2.0  // times the p99 at the knee, at the last load
)

// point is one step: what was offered, and what came of it.
type point struct{ x, y float64 }

// stick is a line that breaks at a knee: y = level + before·x up to it, and from
// there on with another slope. Through the origin the level is 0.
type stick struct {
	knee, level   float64
	before, after float64
	rss           float64 // what it leaves unexplained
}

func (s stick) at(x float64) float64 {
	return s.level + s.before*min(x, s.knee) + s.after*max(0, x-s.knee)
}

// grid is how many places between two steps a knee is tried at.
const grid = 10

// breakAt fits a stick by least squares, its knee between two points at each end
// at least. False: there are too few points.
func breakAt(points []point, origin bool) (stick, bool) {
	best, found := stick{rss: math.Inf(1)}, false
	for i := 1; i+2 < len(points); i++ {
		a, b := points[i].x, points[i+1].x
		for j := range grid {
			s, ok := fit(points, a+(b-a)*float64(j)/grid, origin)
			if ok && s.rss < best.rss {
				best, found = s, true
			}
		}
	}
	return best, found
}

// fit is the best stick with its knee there: linear least squares over at most
// three columns, by the normal equations.
func fit(points []point, knee float64, origin bool) (stick, bool) {
	columns := func(x float64) [3]float64 { return [3]float64{min(x, knee), max(0, x-knee), 1} }
	n := 3
	if origin {
		n = 2
	}
	var m [3][4]float64
	for _, p := range points {
		c := columns(p.x)
		for i := range n {
			for j := range n {
				m[i][j] += c[i] * c[j]
			}
			m[i][3] += c[i] * p.y
		}
	}
	for i := range n { // Gauss and Jordan, with the largest pivot
		largest := i
		for k := i + 1; k < n; k++ {
			if math.Abs(m[k][i]) > math.Abs(m[largest][i]) {
				largest = k
			}
		}
		m[i], m[largest] = m[largest], m[i]
		if math.Abs(m[i][i]) < 1e-12 {
			return stick{}, false
		}
		for k := range n {
			if k == i {
				continue
			}
			f := m[k][i] / m[i][i]
			for j := range 4 {
				m[k][j] -= f * m[i][j]
			}
		}
	}
	s := stick{knee: knee, before: m[0][3] / m[0][0], after: m[1][3] / m[1][1]}
	if !origin {
		s.level = m[2][3] / m[2][2]
	}
	for _, p := range points {
		d := p.y - s.at(p.x)
		s.rss += d * d
	}
	return s, true
}

// saturation is the load at which goodput stops to follow, with the band that
// drawing each step's seconds anew gives; nil: it was not seen to.
func saturation(steps []record.CapacityStep) *record.CapacityKnee {
	s, ok := breakAt(goodputs(steps, nil), true)
	if !ok {
		return nil
	}
	last := steps[len(steps)-1]
	if last.Goodput > (1-leastShort)*s.before*last.Load || s.after > flattens*s.before {
		return nil
	}
	random := rand.New(rand.NewPCG(1, 1))
	var knees, left []float64
	for range draws {
		if d, ok := breakAt(goodputs(steps, random), true); ok {
			knees, left = append(knees, d.before*d.knee), append(left, d.after/d.before)
		}
	}
	if slices.Sort(left); len(left) < draws/2 || quantile(left, 0.975) > flattens {
		return nil
	}
	return kneeOf(s.before*s.knee, knees)
}

// goodputs are the steps as points; with random, of seconds drawn anew.
func goodputs(steps []record.CapacityStep, random *rand.Rand) []point {
	points := make([]point, len(steps))
	for i, s := range steps {
		points[i] = point{s.Load, s.Goodput}
		if n := len(s.PerSecond); random != nil && n > 0 {
			points[i] = point{}
			for range n {
				second := s.PerSecond[random.IntN(n)]
				points[i].x += float64(second.Load) / float64(n)
				points[i].y += float64(second.Goodput) / float64(n)
			}
		}
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	return points
}

// warning is the load at which the logarithm of the p99 begins to climb, with the
// band that drawing anew what the stick leaves unexplained gives; nil: it was not
// seen to.
func warning(steps []record.CapacityStep) *record.CapacityKnee {
	var points []point
	for _, s := range steps {
		if s.P99US > 0 {
			points = append(points, point{s.Load, math.Log(float64(s.P99US))})
		}
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	s, ok := breakAt(points, false)
	if !ok || s.at(points[len(points)-1].x)-s.at(s.knee) < math.Log(climbs) {
		return nil
	}
	random := rand.New(rand.NewPCG(2, 1))
	var knees, bends []float64
	for range draws {
		drawn := slices.Clone(points)
		for i := range drawn {
			other := points[random.IntN(len(points))]
			drawn[i].y = s.at(drawn[i].x) + other.y - s.at(other.x)
		}
		if d, ok := breakAt(drawn, false); ok {
			knees, bends = append(knees, d.knee), append(bends, d.after-d.before)
		}
	}
	if slices.Sort(bends); len(bends) < draws/2 || quantile(bends, 0.025) <= 0 {
		return nil
	}
	return kneeOf(s.knee, knees)
}

func kneeOf(at float64, drawn []float64) *record.CapacityKnee {
	slices.Sort(drawn)
	return &record.CapacityKnee{At: at, From: min(at, quantile(drawn, 0.025)), To: max(at, quantile(drawn, 0.975))}
}

// quantile is by nearest rank, of a sorted list.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, max(0, int(math.Ceil(q*float64(len(sorted))))-1))]
}
