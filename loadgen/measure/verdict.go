package measure

// Known is what is known of an exchange once it has ended, in a word; empty:
// nothing yet, or nothing to say. A 429 that overlaps others of its user is judged
// only later.
func (j *Judge) Known(x *Exchange) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case x.missing:
		return "missing"
	case x.kind != RefusedRate && x.kind != RefusedConcurrency, !x.settled:
		return ""
	case x.undue:
		return "undue"
	case x.due:
		return "due"
	}
	return "undecided"
}
