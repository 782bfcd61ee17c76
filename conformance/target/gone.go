package target

import "errors"

// Gone is how often a request found nobody listening, so far. What is known of
// buckets ends there: whoever answers next may have begun anew.
func (t *Target) Gone() int64 { return t.gone.Load() }

// missed takes in why a request could not leave.
func (t *Target) missed(err error) {
	if errors.Is(err, ErrAway) {
		t.gone.Add(1)
	}
}

// sinceGone forgets what was known before the target was last gone, unless that
// was done; seen is what it was done for.
func (t *Target) sinceGone(seen *int64, forget func(instant int64)) {
	if n := t.gone.Load(); n != *seen {
		*seen = n
		forget(t.time.atMost())
	}
}
