package reassess

import "github.com/invoicespec/brimline/reports/record"

// S9, cost: what a change asks of the engine at the busiest minute.

// cost is what the engine works more at the target than today.
func cost(today, then *record.ReportPeaks, service *float64) record.ReportCost {
	c := record.ReportCost{ServiceS: service, Missing: []string{}}
	if today == nil || then == nil {
		c.Missing = append(c.Missing, "how much more is admitted: it takes a target and recorded traffic")
	} else {
		more := (then.Minute - today.Minute) * 3600
		c.AdmittedPerHour = &more
	}
	if service == nil {
		c.Missing = append(c.Missing, "how long the engine works on a request: it takes a load run, brimline's API log or an access log with durations")
	}
	if c.AdmittedPerHour != nil && service != nil {
		seconds := *c.AdmittedPerHour * *service
		workers := seconds / 3600
		c.EngineSPerHour, c.Workers = &seconds, &workers
	}
	return c
}
