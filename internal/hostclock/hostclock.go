// Package hostclock asks the system how good its clock is, for what several
// machines measure side by side. All callers want [Now].
package hostclock

import "time"

// State is what a system says of its clock.
type State struct {
	Known        bool          // it says something
	Synchronised bool          // somebody keeps it right
	MostOff      time.Duration // its own bound; of a clock that nobody keeps right it means nothing
}

// Now is the state of this system's clock.
func Now() State { return now() }
