package render

import (
	"fmt"

	"github.com/invoicespec/brimline/reports/record"
)

// reportFigures is the drawings of a report, by section and plan.
type reportFigures struct{ all []drawing }

func reportDrawings(r record.Report) (reportFigures, error) {
	var f reportFigures
	for place, p := range r.Plans {
		if p.WhatIf == nil || len(p.WhatIf.Lines) == 0 {
			continue
		}
		svg, err := whatIfChart(p, place, r.Rules)
		if err != nil {
			return f, err
		}
		f.all = append(f.all, drawing{Figure: svg, sheet: whatIfSheet(p, place)})
	}
	return f, nil
}

func whatIfSheet(p record.ReportPlan, place int) sheet {
	s := sheet{
		Name:  fmt.Sprintf("what-if-users-%s", fileWord(place, p.Plan)),
		Title: fmt.Sprintf("%s: %ss affected over the rate", capital(Visible(p.Plan)), poolNoun(p.WhatIf.Pool)),
		Columns: []column{
			{"rate", "rate", asCount}, {"burst", "burst", asCount}, {"users_affected", poolNoun(p.WhatIf.Pool) + "s affected", asCount}, {"users_affected_share", "share", asShare},
			{"users_affected_95_low", "from", asShare}, {"users_affected_95_high", "to", asShare},
		},
	}
	for _, l := range p.WhatIf.Lines {
		for _, c := range l.Cells {
			s.Rows = append(s.Rows, []any{c.Rate, c.Burst, c.UsersAffected, c.UsersAffectedShare, c.UsersAffected95[0], c.UsersAffected95[1]})
		}
	}
	return s
}
