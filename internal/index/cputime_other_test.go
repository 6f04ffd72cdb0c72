//go:build !unix

package index

import "time"

// cpuTime returns 0, because there is no portable way to read the CPU time.
func cpuTime() time.Duration { return 0 }
