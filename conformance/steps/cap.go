package steps

import (
	"context"
	"slices"

	"github.com/invoicespec/brimline/conformance/target"
)

// mostAbove is how much larger than it should be a cap is looked for.
const mostAbove = 2

// capIsLarger looks, where the rule is about what else counts for a full cap, whether
// it was full at all. Where it is only with more in flight, that is the cap's own
// clause. What ends by itself leaves no time to look.
func (s *Scenario) capIsLarger(ctx context.Context) error {
	u := s.user()
	if !slices.Contains([]string{"POOL-2", "CONC-4"}, s.clause.ID) || len(u.held) == 0 || s.anywhere() == target.PlaceWork {
		return nil
	}
	limit := int64(len(u.held))
	ordinary := func() (exchange, error) {
		if err := s.afford(ctx, u); err != nil {
			return exchange{}, err
		}
		return s.send(ctx, u, s.passing())
	}
	first, err := ordinary()
	if err != nil || capRejected(first) {
		return err
	}
	for range mostAbove {
		if _, err := s.fill(ctx, u, 1, s.anywhere()); err != nil {
			return err
		}
		e, err := ordinary()
		if err != nil {
			return err
		}
		if capRejected(e) {
			return s.aboveTheCap(ctx, "CONC-1", first, limit)
		}
	}
	return nil
}
