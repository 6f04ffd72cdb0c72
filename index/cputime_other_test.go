//go:build !unix

package index

import "time"

// cpuTime returns 0, for want of a portable way to learn it.
func cpuTime() time.Duration { return 0 }
