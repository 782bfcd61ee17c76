package reassess

import (
	"fmt"
	"time"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// S10, notice and rollout: whom a reduction would hit and when it may come. A
// raise needs none. A paid plan's reduction is never recommended; where one is
// something to look at, this says what it would take.

// mostHit bounds the list of users in the report.
const mostHit = 1000

// loss is what one user would lose, and when their billing period ends.
type loss struct {
	user     string // pseudonym
	rejected int64  // newly
	attempts int64
	boundary func(from time.Time) time.Time // the first not before an instant; nil: unknown
}

// notice is S10 of a plan.
func (c claim) notice(v record.ReportVerdict, losses []loss, date string, exempt []Exemption, rules record.ReportRules) record.ReportNotice {
	n := record.ReportNotice{Hit: []record.ReportHit{}, Exempt: []string{}, Missing: []string{}}
	if v.LookAt == nil || c.unpaid {
		return n
	}
	n.Needed, n.Days = true, rules.NoticeDays
	n.First = fmt.Sprintf("first a shadow run: decide with %s beside today's allowance for %s, refuse nobody, and look at who would have been", pair(v.LookAt.Rate, v.LookAt.Burst),
		figure.Count(int64(rules.MinDays), "day"))
	for _, x := range exempt {
		if x.Plan == c.plan {
			n.Exempt = append(n.Exempt, fmt.Sprintf("%s, which needs no notice: %s", x.Why, x.Evidence))
		}
	}
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		n.Missing = append(n.Missing, "the day that notice counts from: --date YYYY-MM-DD names it")
		return n
	}
	earliest, unknown := day.AddDate(0, 0, rules.NoticeDays), 0
	latest := earliest
	for i, l := range losses {
		hit := record.ReportHit{User: l.user, Rejected: l.rejected}
		if l.attempts > 0 {
			hit.Share = float64(l.rejected) / float64(l.attempts)
		}
		if l.boundary == nil {
			unknown++
		} else {
			b := l.boundary(earliest)
			hit.Boundary = b.Format(time.DateOnly)
			if b.After(latest) {
				latest = b
			}
		}
		if i < mostHit {
			n.Hit = append(n.Hit, hit)
		}
	}
	n.Earliest = latest.Format(time.DateOnly)
	if len(losses) > mostHit {
		n.Missing = append(n.Missing, fmt.Sprintf("%s more who would be hit: the list ends at %d", figure.Count(int64(len(losses)-mostHit), "user"), mostHit))
	}
	if unknown > 0 {
		n.Missing = append(n.Missing, fmt.Sprintf("the billing boundary of %s: the date is the earliest for none of them before it is known", figure.Count(int64(unknown), "user")))
	}
	return n
}
