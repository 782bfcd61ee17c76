package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

func TestH2Experiment(t *testing.T) {
	for name, clock := range map[string]control.ClockMode{"frozen": control.ClockFrozen, "real": control.ClockReal, "plain": ""} {
		for _, p := range []target.Protocol{target.HTTP1, target.HTTP2} {
			t.Run(name+string(p), func(t *testing.T) {
				r := start(t, clock, nil)
				r.file.Protocol = p
				if p == target.HTTP2 {
					r.file.Can.Process.Command = append(r.file.Can.Process.Command, "--h2c")
				}
				tgt := r.open(t)
				t.Log(tgt.Describe())
				c, err := conformance.Run(t.Context(), tgt, conformance.Options{})
				require.NoError(t, err)
				requireKept(t, c)
				t.Logf("%+v %dms", c.Counts, c.DurationMS)
				for _, cl := range c.Clauses {
					for _, s := range cl.Scenarios {
						if s.DurationMS > 9000 {
							t.Log(cl.ID, s.Name, s.Verdict, s.DurationMS)
						}
					}
				}
			})
		}
	}
}
