package steps

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

// A server that has neither started nor refused to in its time may be right: the
// machine was busy.
func TestAStartThatTellsNothing(t *testing.T) {
	for name, start := range map[string]target.Start{"silent": {}, "not ready": {Listened: true}} {
		t.Run(name, func(t *testing.T) {
			s := &Scenario{Target: &target.Target{}, attempts: []attempt{{Start: start}}}
			require.ErrorIs(t, s.didStart(), ErrInconclusive)
			require.Empty(t, s.found)
		})
	}
	silent := &Scenario{Target: &target.Target{}, attempts: []attempt{{setting: contract.SettingReplicas}}}
	require.ErrorIs(t, silent.refusedByName(), ErrInconclusive)
	require.Empty(t, silent.found)
	ready := &Scenario{Target: &target.Target{}, attempts: []attempt{{Start: target.Start{Ready: true}}}}
	require.NoError(t, ready.didStart())
}

// In a minute an attempt comes back: then the second one of a client says nothing.
func TestClientsThatTookTooLong(t *testing.T) {
	attempts := func(minutes int64) []exchange {
		got := make([]exchange, 4)
		for i := range got {
			got[i].Answer.Status = 401
		}
		got[3].Answer.Status = 429
		got[3].Answer.Body.ErrorCode.Value = contract.CodeRateLimited
		got[3].Span = oracle.Span{From: minutes * oracle.Token, To: minutes * oracle.Token}
		return got
	}
	require.NoError(t, (&Scenario{got: attempts(0)}).eachClientHadItsOwn())
	require.ErrorIs(t, (&Scenario{got: attempts(1)}).eachClientHadItsOwn(), ErrInconclusive)
}
