package main

import (
	"os"
	"runtime/debug"
)

// fewUsers is how many users take so little memory that the heap may grow larger
// beside them.
const fewUsers = 10_000

// roomy lets the heap grow to five times what is in use before it is swept, if
// that is little: a sweep makes the stacks of idle workers smaller, and the next
// request makes them larger again, which costs more than anything else here. The
// caller ends it.
func roomy(users int) (end func()) {
	if _, told := os.LookupEnv("GOGC"); told || users > fewUsers {
		return func() {}
	}
	before := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(before) }
}
