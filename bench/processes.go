package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of processor times in /proc, the same on all Linux systems.
const ticksPerSecond = 100

// processorTime returns the time that processes have used, and their children that ended. Those after
// the first may be its children, and end at any time.
func processorTime(pids []int) (time.Duration, error) {
	ticks := 0
	for i, pid := range pids {
		fields, err := stat(pid)
		if i > 0 && ended(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		for _, i := range []int{11, 12, 13, 14} { // utime, stime, cutime, cstime
			n, err := strconv.Atoi(fields[i])
			if err != nil {
				return 0, err
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// ended reports whether an error means that there is no such process any more.
func ended(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// stat returns the fields of /proc/PID/stat after the name: state, parent and so on.
func stat(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return nil, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return fields, nil
}

// withChildren returns a process and its living children.
func withChildren(parent int) ([]int, error) {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	all := []int{parent}
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			return nil, err
		}
		fields, err := stat(pid)
		if err == nil && fields[1] == strconv.Itoa(parent) {
			all = append(all, pid)
		}
	}
	return all, nil
}

// memoryOf returns the memory of processes in bytes, without mapped files. Memory that they share counts
// once.
func memoryOf(pids []int) (int64, error) {
	total := int64(0)
	for _, pid := range pids {
		f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if ended(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			key, value, _ := strings.Cut(lines.Text(), ":")
			if key != "Pss_Anon" && key != "Pss_Shmem" {
				continue
			}
			if kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64); err == nil {
				total += kb << 10
			}
		}
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	return total, nil
}
