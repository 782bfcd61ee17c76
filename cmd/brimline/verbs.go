package main

import "github.com/spf13/cobra"

// verbs lists every verb; each has a file of its own name.
func verbs(w world) []*cobra.Command {
	return []*cobra.Command{
		serveVerb(w),
		checkVerb(w),
		loadVerb(w),
		replayVerb(w),
		reportVerb(w),
		demoVerb(w),
		adminVerb(w),
	}
}
