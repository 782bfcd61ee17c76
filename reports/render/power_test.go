package render_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

func TestPowerInASentence(t *testing.T) {
	needs := func(faults int, needs ...string) record.Further {
		return record.Further{Needs: needs, Faults: faults}
	}
	for name, tc := range map[string]struct {
		power record.Power
		want  string
	}{
		"nothing is known": {record.Power{}, ""},
		"all of them":      {record.Power{Known: 371, Detectable: 371}, "with what this target offers, this run can detect 371 of 371 known faults"},
		"one would help": {record.Power{Known: 10, Detectable: 8, Further: []record.Further{needs(2, "policy")}},
			"with what this target offers, this run can detect 8 of 10 known faults; policy would add 2"},
		"many would help": {record.Power{Known: 50, Detectable: 10, Further: []record.Further{needs(17, "policy"), needs(9, "clock"), needs(5, "audit", "hold"), needs(4, "page"), needs(2, "keys"), needs(2, "fail"), needs(1, "proxy")}},
			"with what this target offers, this run can detect 10 of 50 known faults; policy would add 17, clock 9, audit and hold 5, page 4, keys 2, other means 3"},
		"some was left": {record.Power{Known: 10, Detectable: 4, Unselected: 3, Unanswered: 2, Unseen: 1},
			"with what this target offers, this run can detect 4 of 10 known faults; 3 not asked for, 2 not answered, 1 not to be seen on a target of this kind"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, render.PowerText(tc.power)) })
	}
}
