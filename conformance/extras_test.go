package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
)

func TestNobodyStartsAnewOnARealClock(t *testing.T) {
	require.False(t, start(t, control.ClockReal, nil).open(t).Has(contract.NeedRestart), "others are asked meanwhile")
}
