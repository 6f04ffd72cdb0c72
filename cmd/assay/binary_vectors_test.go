//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestInterruptWait checks that stored vectors survive, however the process that makes them ends.
func TestInterruptWait(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for i := range 240 { // enough to take a while
		s.write(fmt.Sprintf("notes/%d.md", i), fmt.Sprintf("# Note %d\n\n", i)+
			strings.Repeat(fmt.Sprintf("The ship number %d sails along the coast of the island and comes back at night. ", i), 4))
	}
	s.want(exitAnswered, "0 of 240 passages", "ingest", "notes")
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGKILL} {
		before := s.vectors()
		cmd := s.command("ingest", "--wait")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.await(func() bool { return s.vectors() > before })
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		exit, ok := errors.AsType[*exec.ExitError](cmd.Wait())
		if !ok {
			t.Skip("all vectors were made before the signal arrived")
		}
		if want := "assay: ingest: interrupted; everything stored so far is kept"; signal == os.Interrupt &&
			(exit.ExitCode() != exitInterrupted || !strings.Contains(stderr.String(), want)) {
			t.Errorf("interrupted: %v, %q; want exit code %d and %q", exit, stderr.String(), exitInterrupted, want)
		}
		if after := s.vectors(); after <= before {
			t.Errorf("after %v: %d vectors, before %d", signal, after, before)
		}
		s.want(exitAnswered, "Note: ", "search", "the ship by night")
	}
	s.want(exitAnswered, "240 of 240 passages", "ingest", "--wait")
}

// vectors returns the number of passages with a vector, as doctor counts them.
func (s *sandbox) vectors() int {
	s.t.Helper()
	out, err := s.command("doctor").Output()
	if err != nil {
		s.t.Fatalf("doctor: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if _, counts, ok := strings.Cut(line, "/384: "); ok {
			var n int
			if _, err := fmt.Sscanf(counts, "%d of", &n); err == nil {
				return n
			}
		}
	}
	s.t.Fatalf("doctor counts no vectors:\n%s", out)
	return 0
}
