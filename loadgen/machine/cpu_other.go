//go:build !unix

package machine

import "time"

// cpuTime is not known on this system.
func cpuTime() time.Duration { return 0 }

// DescriptorLimit is not known on this system.
func DescriptorLimit() int64 { return 0 }
