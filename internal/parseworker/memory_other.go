//go:build !linux

package parseworker

import (
	"os"
	"runtime/metrics"
	"sync/atomic"
)

func program() (string, error) { return os.Executable() }

// limitMemory does nothing: other systems have no limit that counts only memory in use.
func limitMemory(int64) error { return nil }

var highest atomic.Int64

// resident returns the bytes that the Go runtime has obtained and not returned.
func resident() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	n := int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
	if n > highest.Load() {
		highest.Store(n)
	}
	return n
}

// A meter measures nothing: the memory of other processes is not known.
type meter struct{}

func openMeter(string) meter { return meter{} }

func (meter) close() {}

func (meter) resident() int64 { return 0 }

// peak returns the highest value of resident.
func peak() int64 { return max(resident(), highest.Load()) }

// peakOf returns 0: it is not known for other processes.
func peakOf(string) int64 { return 0 }
