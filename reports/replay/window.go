package replay

// window counts the most attempts in any stretch of time [t, t+span), whose
// stamps are told to a unit. It keeps one entry for each different stamp of the
// last stretch, so at most span of them.
type window struct {
	ticks  []tick // a ring
	first  int
	length int
	sum    int64
	most   int64
}

// tick is the attempts of one stamp.
type tick struct{ at, n int64 }

// add is an attempt at a stamp no earlier than the last.
func (w *window) add(at, span int64) {
	for w.length > 0 && since(w.ticks[w.first].at, at) >= span {
		w.sum -= w.ticks[w.first].n
		w.first = (w.first + 1) % len(w.ticks)
		w.length--
	}
	w.sum++
	w.most = max(w.most, w.sum)
	if w.length > 0 {
		if last := &w.ticks[(w.first+w.length-1)%len(w.ticks)]; last.at == at {
			last.n++
			return
		}
	}
	if w.length == len(w.ticks) {
		ticks := make([]tick, max(4, 2*len(w.ticks)))
		for i := range w.length {
			ticks[i] = w.ticks[(w.first+i)%len(w.ticks)]
		}
		w.ticks, w.first = ticks, 0
	}
	w.ticks[(w.first+w.length)%len(w.ticks)] = tick{at, 1}
	w.length++
}
