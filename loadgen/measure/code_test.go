package measure_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/reports/record"
)

func TestCode(t *testing.T) {
	plain := contract.Wording{}
	nested := contract.Wording{Names: map[string]string{contract.MemberErrorCode: "error.code"}}
	for name, c := range map[string]struct {
		wording contract.Wording
		body    string
		want    string
	}{
		"the contract's":   {plain, `{"requestId":"r","errorCode":"CAPACITY_EXHAUSTED","message":"m"}`, contract.CodeCapacityExhausted},
		"in other words":   {nested, `{"error":{"code":"ENGINE_TIMEOUT"}}`, contract.CodeEngineTimeout},
		"an unusual form":  {plain, `{"errorCode":"ENGINE_FAILURE","details":[1]}`, contract.CodeEngineFailure},
		"made up":          {plain, `{"errorCode":"E-4711"}`, "another"},
		"none":             {plain, `{"message":"m"}`, "none"},
		"no JSON":          {plain, `<html>`, "none"},
		"nothing":          {plain, ``, "none"},
		"quoted elsewhere": {plain, `{"message":"CAPACITY_EXHAUSTED"}`, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, measure.NewReader(c.wording).Code(500, nil, []byte(c.body)))
		})
	}
}

func TestCodesAreCounted(t *testing.T) {
	m := measure.NewMeter(subjects(5, "free"), func() time.Duration { return 0 })
	for _, code := range []string{"ENGINE_FAILURE", "none", "ENGINE_FAILURE", ""} {
		m.Answered(measure.Answer{Outcome: record.OutcomeOtherStatus, Status: 500, Code: code, Attempts: 1})
	}
	m.Unsent(0)
	r := record.Run{Schema: record.RunSchema}
	require.NoError(t, m.Fill(&r, time.Second))
	require.Equal(t, []record.Count{{Name: "ENGINE_FAILURE", N: 2}, {Name: "none", N: 2}}, r.Plans[0].ErrorCodes)
	require.NoError(t, r.Check())
}
