package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// surroundings add up what this machine does beside the servers and their database.
type surroundings struct {
	took    float64 // milliseconds
	used    clock   // by servers and database
	machine float64 // processor time that all programs used
	running float64 // threads that ran or were ready to run, times milliseconds
}

// observed calls do and adds what happens meanwhile.
func (s *surroundings) observed(c clocks, do func() error) error {
	began, was, machineWas := time.Now(), c.read(), machine()
	running := watchRunning()
	err := do()
	took := milliseconds(time.Since(began))
	s.running += running() * took
	s.took += took
	s.used = s.used.plus(c.read().minus(was))
	s.machine += machine() - machineWas
	return err
}

// threads returns how many threads of other programs ran or were ready to run on average.
func (s *surroundings) threads() float64 {
	return max(0, (s.running-s.used.CPU-s.used.Delay)/s.took)
}

// weight returns how much processor time such a thread had for each millisecond that one of the servers or
// the database had. 1 if there were almost none.
func (s *surroundings) weight() float64 {
	const few = 0.05
	others := s.threads()
	if others < few {
		return 1
	}
	return max(0, (s.machine-s.used.CPU)/(others*s.took)) * (s.used.CPU + s.used.Delay) / s.used.CPU
}

// watchRunning counts, until the returned function is called, the threads of the machine that run or are ready to run,
// without that which counts. The function returns their mean.
func watchRunning() func() float64 {
	done, counted := make(chan struct{}), make(chan float64)
	go func() {
		again := time.NewTicker(10 * time.Millisecond)
		defer again.Stop()
		sum, n := 0.0, 0.0
		for {
			data, _ := os.ReadFile("/proc/loadavg")
			if fields := strings.Fields(string(data)); len(fields) > 3 {
				running, _, _ := strings.Cut(fields[3], "/")
				threads, _ := strconv.ParseFloat(running, 64)
				sum, n = sum+max(threads-1, 0), n+1
			}
			select {
			case <-again.C:
			case <-done:
				counted <- sum / max(n, 1)
				return
			}
		}
	}()
	return func() float64 {
		close(done)
		return <-counted
	}
}
