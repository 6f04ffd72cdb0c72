package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A clock is processor time in milliseconds, as Linux counts it in /proc.
type clock struct {
	CPU   float64 // that was used
	Delay float64 // in which threads were ready to run and another one had their core
}

func (c clock) minus(o clock) clock { return clock{c.CPU - o.CPU, c.Delay - o.Delay} }
func (c clock) plus(o clock) clock  { return clock{c.CPU + o.CPU, c.Delay + o.Delay} }

// clocks read the clocks of some processes.
type clocks struct {
	files []string // /proc/PID/task/TID/schedstat
}

// clocksOf returns the clocks of the present threads of processes.
func clocksOf(pids ...int) (clocks, error) {
	var c clocks
	for _, pid := range pids {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			return c, err
		}
		c.files = append(c.files, files...)
	}
	if len(c.files) == 0 {
		return c, fmt.Errorf("processor time of processes %v: the kernel does not tell it in /proc/PID/schedstat", pids)
	}
	return c, nil
}

// read returns the sum. Threads that have ended count 0.
func (c clocks) read() clock {
	var sum clock
	for _, file := range c.files {
		data, _ := os.ReadFile(file)
		fields := strings.Fields(string(data))
		if len(fields) < 2 {
			continue
		}
		cpu, _ := strconv.ParseFloat(fields[0], 64)
		delay, _ := strconv.ParseFloat(fields[1], 64)
		sum = sum.plus(clock{cpu / 1e6, delay / 1e6})
	}
	return sum
}

// parent returns the parent of a process.
func parent(pid int) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0, fmt.Errorf("process %d has no parent", pid)
	}
	return strconv.Atoi(fields[1])
}

// family returns a process and its children.
func family(pid int) []int {
	pids := []int{pid}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			continue
		}
		if p, err := parent(child); err == nil && p == pid {
			pids = append(pids, child)
		}
	}
	return pids
}

// machine returns the processor time that all processes of the machine have used, in milliseconds.
func machine() float64 {
	const user, nice, system, irq, softirq, perTick = 1, 2, 3, 6, 7, 10
	data, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(data), "\n")
	fields := strings.Fields(line)
	if len(fields) <= softirq {
		return 0
	}
	sum := 0.0
	for _, i := range []int{user, nice, system, irq, softirq} {
		ticks, _ := strconv.ParseFloat(fields[i], 64)
		sum += ticks * perTick
	}
	return sum
}
