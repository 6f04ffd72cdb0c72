//go:build unix

package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// TestStart checks the number and size of allocations by assay's packages before main runs, which
// every command pays for.
func TestStart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the program as a user builds it; linking takes seconds")
	}
	const mostAllocations, mostBytes = 7_000, 1 << 20 // 27,000 and 7 MB while patterns were compiled here
	s := newSandbox(t)
	cmd := exec.CommandContext(t.Context(), s.binary, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	traced := regexp.MustCompile(`(?m)^init github\.com/assay-rag/assay.* (\d+) bytes, (\d+) allocs$`).FindAllSubmatch(out, -1)
	if len(traced) == 0 {
		t.Fatalf("no trace of an init in\n%s", out)
	}
	bytes, allocations := 0, 0
	for _, m := range traced {
		b, _ := strconv.Atoi(string(m[1]))
		n, _ := strconv.Atoi(string(m[2]))
		bytes, allocations = bytes+b, allocations+n
	}
	t.Logf("%d bytes in %d allocations, %d packages", bytes, allocations, len(traced))
	if bytes > mostBytes || allocations > mostAllocations {
		t.Errorf("start allocates %d bytes in %d allocations, want at most %d and %d:\n%s", bytes, allocations, mostBytes, mostAllocations, out)
	}
}
