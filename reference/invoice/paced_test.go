package invoice_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/invoice"
)

// TestPaced: four workers of 20 ms carry 200 a second, and who gives up while
// waiting takes no place.
func TestPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start := invoice.NewPaced(4, 20*time.Millisecond), time.Now()
		gone, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				_, err := p.Calculate(t.Context(), invoice.Invoice{})
				require.NotErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		synctest.Wait()
		_, err := p.Calculate(gone, invoice.Invoice{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		all.Wait()
		require.Equal(t, 500*time.Millisecond, time.Since(start))
	})
}
