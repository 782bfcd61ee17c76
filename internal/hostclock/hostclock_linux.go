package hostclock

import (
	"syscall"
	"time"
)

// Of adjtimex(2).
const (
	timeError = 5 // the clock is not synchronised
	unsynced  = 0x40
)

func now() State {
	var t syscall.Timex // no mode: nothing is set
	state, err := syscall.Adjtimex(&t)
	if err != nil {
		return State{}
	}
	return State{
		Known:        true,
		Synchronised: state != timeError && t.Status&unsynced == 0,
		MostOff:      time.Duration(t.Maxerror) * time.Microsecond,
	}
}
