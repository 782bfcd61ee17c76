package memory_test

import (
	"testing"
	"time"

	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/store/memory"
	"github.com/invoicespec/brimline/reference/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(testing.TB) storetest.Harness {
		c := clock.NewFrozen(time.Now())
		return storetest.Harness{Store: memory.New(storetest.Plans(), c), Clock: c}
	})
}
