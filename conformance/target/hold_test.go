package target_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

func TestHolds(t *testing.T) {
	for _, place := range []target.Place{target.PlaceUpload, target.PlaceEngine, target.PlaceResponse} {
		t.Run(string(place), func(t *testing.T) {
			tg := openReference(t, control.ClockFrozen)
			require.True(t, tg.CanHold(place))
			u := lease(t, tg, "starter", 2) // 20 tokens, 5 at once
			var held []*target.Held
			hold := func() {
				t.Helper()
				h, e := tg.Hold(t.Context(), u, tg.Valid(), place)
				require.NotNil(t, h, "%v %s", e.Err, e.Body)
				require.Empty(t, h.Findings())
				require.NotEmpty(t, e.Curl)
				held = append(held, h)
			}
			for range 5 {
				hold()
			}
			h, e := tg.Hold(t.Context(), u, tg.Valid(), place)
			require.Nil(t, h)
			innocent(t, e, 429, contract.CodeConcurrencyLimited)
			require.Equal(t, int64(14), e.Answer.Remaining.Value)

			// One goes away, one is torn down: two more get in.
			held[0].Drop()
			held[1].Reset()
			held = held[2:]
			for range 2 {
				eventually(t, func() bool {
					h, e := tg.Hold(t.Context(), u, tg.Valid(), place)
					require.NoError(t, e.Err)
					if h != nil {
						held = append(held, h)
					}
					return h != nil
				})
			}
			for _, h := range held {
				innocent(t, h.Finish(t.Context()), 200, "")
				require.Error(t, h.Finish(t.Context()).Err, "it is over")
				h.Drop()
			}
			eventually(t, func() bool { return tg.Send(t.Context(), u, tg.Valid()).Status == 200 })
		})
	}
}

// eventually tries again where a permit may be free a moment after its request's
// last byte was seen. Each try costs a token.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for _, wait := range []int{0, 1, 10, 100, 1000} {
		time.Sleep(time.Duration(wait) * time.Millisecond)
		if done() {
			return
		}
	}
	t.Fatal("not even after a second")
}

func TestHoldsThatLeaveTogether(t *testing.T) {
	for _, place := range []target.Place{target.PlaceUpload, target.PlaceEngine, target.PlaceResponse} {
		t.Run(string(place), func(t *testing.T) {
			tg := openReference(t, control.ClockFrozen)
			u := lease(t, tg, "starter", 1)
			rs := slices.Repeat([]target.Request{tg.Valid()}, 9)
			held, answered, findings := tg.HoldTogether(t.Context(), u, rs, place)
			require.Empty(t, findings)
			require.Len(t, held, 5)
			require.Len(t, answered, 4)
			for _, e := range answered {
				innocent(t, e, 429, contract.CodeConcurrencyLimited)
			}
			lo, hi := u.Bucket.Level()
			require.Equal(t, [2]int64{11 * oracle.Token, 11 * oracle.Token}, [2]int64{lo, hi})
			for _, h := range held {
				innocent(t, h.Finish(t.Context()), 200, "")
			}
		})
	}
}

func TestAHoldAtAuthenticationSpendsNothingYet(t *testing.T) {
	tg := openReference(t, control.ClockFrozen)
	u := lease(t, tg, "free", 2)
	h, e := tg.Hold(t.Context(), u, tg.Valid(), target.PlaceAuthentication)
	require.NotNil(t, h, "%v", e.Err)
	lo, _ := u.Bucket.Level()
	require.Equal(t, 10*oracle.Token, lo)
	innocent(t, h.Finish(t.Context()), 200, "")
	lo, _ = u.Bucket.Level()
	require.Equal(t, 9*oracle.Token, lo)
	h, e = tg.Hold(t.Context(), u, target.Request{Method: "GET", Path: "/v1/invoice/x", Key: 1}, target.PlaceAuthentication)
	require.NotNil(t, h, "%v", e.Err)
	h.Drop()
}

func TestWorkThatIsStubborn(t *testing.T) {
	tg := openReference(t, control.ClockFrozen)
	u := lease(t, tg, "starter", 1)
	require.NoError(t, tg.SetEngine(t.Context(), u, control.EngineStubborn))
	require.NoError(t, tg.CloseGate(t.Context(), u, target.PlaceEngine))
	innocent(t, tg.Send(t.Context(), u, tg.Valid()), 504, contract.CodeEngineTimeout)
	require.NoError(t, tg.OpenGate(t.Context(), u, target.PlaceEngine))
	for behaviour, code := range map[control.Behaviour]string{control.EngineFail: contract.CodeEngineFailure, control.EngineTimeout: contract.CodeEngineTimeout, control.EngineOK: ""} {
		require.NoError(t, tg.SetEngine(t.Context(), u, behaviour))
		e := tg.Send(t.Context(), u, tg.Valid())
		require.NoError(t, e.Err)
		require.Empty(t, e.Findings)
		require.Equal(t, code, e.Answer.Body.ErrorCode.Value)
	}
}
