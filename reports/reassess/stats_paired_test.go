package reassess

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// oneDay is users of whom so many lose their rejections, gain some, and have
// some either way.
func oneDay(users, out, in, both int) (list []pairing) {
	for u := range users {
		p := pairing{user: 100 + 7*u, day: 20_000, attempts: 10}
		switch {
		case u < out:
			p.today = 4
		case u < out+in:
			p.then = 1
		case u < out+in+both:
			p.today, p.then = 3, 1
		}
		list = append(list, p)
	}
	return list
}

func TestMoved(t *testing.T) {
	m := moved(oneDay(400, 40, 5, 10), 1000, 7)
	require.Equal(t, 40, m.Out)
	require.Equal(t, 5, m.In)
	require.InDelta(t, float64(40*4-5+10*2)/4000, m.Share, 1e-12)
	require.Equal(t, "users", m.Clusters)
	require.Equal(t, 1000, m.Draws)
	require.Equal(t, 1, m.Days)
	// 40 of 400 drawn anew have a standard deviation of 6.
	require.InDelta(t, 40-1.96*6, m.Out95[0], 2)
	require.InDelta(t, 40+1.96*6, m.Out95[1], 2)
	require.InDelta(t, 5-1.96*2.2, m.In95[0], 1.5)
	require.Equal(t, m, moved(oneDay(400, 40, 5, 10), 1000, 7), "the same seed, the same draws")
	require.NotEqual(t, m, moved(oneDay(400, 40, 5, 10), 1000, 8))
}

// From two weeks on days are drawn: users who are all hit on one bad day are one
// observation, not many.
func TestMovedByDays(t *testing.T) {
	week := func(days int) (list []pairing) {
		for u := range 300 {
			for d := range days {
				p := pairing{user: u, day: d, attempts: 10}
				if d == 3 && u < 60 {
					p.today = 2
				}
				list = append(list, p)
			}
		}
		return list
	}
	users := moved(week(13), 1000, 7)
	require.Equal(t, "users", users.Clusters)
	require.Greater(t, users.Out95[0], 40.)
	days := moved(week(14), 1000, 7)
	require.Equal(t, "days", days.Clusters)
	require.Equal(t, 60, days.Out)
	require.Equal(t, [2]float64{0, 60}, days.Out95, "without the bad day nobody is moved")
	require.Equal(t, 1, days.Days)
}

func TestMovedOfNobody(t *testing.T) {
	require.Zero(t, moved(nil, 1000, 7).Draws)
	require.Equal(t, 200, moved(oneDay(1, 1, 0, 0), 200, 7).Draws)
}
