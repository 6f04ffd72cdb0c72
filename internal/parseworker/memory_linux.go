package parseworker

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// program is the running program, also after its file was replaced.
func program() (string, error) { return "/proc/self/exe", nil }

// limitMemory makes the kernel refuse an allocation of data far above limit bytes, which is too fast
// for watchMemory. The Go runtime then ends the process as out of memory. The kernel also counts
// memory that is reserved and not in use, of which the runtime has some.
func limitMemory(limit int64) error {
	most := uint64(limit + limit/2)
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
}

var own = sync.OnceValue(func() meter { return openMeter("self") })

// resident returns the bytes that this process has in memory; 0 if that is not known.
func resident() int64 { return own().resident() }

// A meter measures the memory of a process.
type meter struct{ statm *os.File }

// openMeter returns a meter for the process pid. It measures 0 if that is not possible.
func openMeter(pid string) meter {
	f, err := os.Open("/proc/" + pid + "/statm")
	if err != nil {
		return meter{}
	}
	return meter{f}
}

func (m meter) close() {
	if m.statm != nil {
		m.statm.Close()
	}
}

func (m meter) resident() int64 {
	if m.statm == nil {
		return 0
	}
	var buf [128]byte
	n, _ := m.statm.ReadAt(buf[:], 0)
	fields := bytes.Fields(buf[:n])
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// peak returns the most bytes that this process has had in memory; 0 if that is not known.
func peak() int64 { return peakOf("self") }

// peakOf returns the peak of the process pid.
func peakOf(pid string) int64 {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(status, []byte("VmHWM:"))
	if !ok {
		return 0
	}
	var kb int64
	if _, err := fmt.Sscan(string(rest[:min(len(rest), 40)]), &kb); err != nil {
		return 0
	}
	return kb << 10
}
