//go:build !unix

package local

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
