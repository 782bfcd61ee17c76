package replay

import "github.com/invoicespec/brimline/reports/record"

// concentration is how unevenly counts, in ascending order, are spread:
//
//	Lorenz       share of users, fewest first, to share of all that they have
//	Gini         (2 * sum of i*x_i / (n * sum of x_i)) - (n+1)/n, i from 1
//	top, percent share of the last user, and of the last ceil(n/100)
type concentration struct {
	lorenz       []record.ReportPoint
	gini         float64
	top, percent float64
}

func concentrated(ascending []int64) (c concentration, ok bool) {
	n, total, weighted := len(ascending), int64(0), 0.0
	for i, x := range ascending {
		total += x
		weighted += float64(i+1) * float64(x)
	}
	if total == 0 {
		return c, false
	}
	sum, most := float64(total), int64(0)
	for i := n - (n+99)/100; i < n; i++ {
		most += ascending[i]
	}
	c.top, c.percent = float64(ascending[n-1])/sum, float64(most)/sum
	c.gini = 2*weighted/(float64(n)*sum) - float64(n+1)/float64(n)
	points, below := []record.ReportPoint{{}}, int64(0)
	for i, x := range ascending {
		below += x
		if x == 0 && i+1 < n && ascending[i+1] == 0 {
			continue // a straight line
		}
		points = append(points, record.ReportPoint{X: float64(i+1) / float64(n), Y: float64(below) / sum})
	}
	c.lorenz = thinned(points)
	return c, true
}
