//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestInterruptModel checks that Ctrl-C ends a question during a model call at once, and that
// resuming it does not repeat the calls that had been answered.
func TestInterruptModel(t *testing.T) {
	t.Parallel()
	server, err := newFakeModel("openai")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	env := []string{"OPENAI_BASE_URL=" + server.URL + "/v1", "ASSAY_MODEL=openai/gpt-6-luna"}
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		server.holdAfter(2) // after the plan and the grade; the answer never comes
		cmd := s.command("ask", "--no-cache", "--strategy", "corrective", "Who approves travel to a customer?")
		cmd.Env = append(cmd.Env, env...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.await(func() bool { return server.count() == 3 })
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		exit, ok := errors.AsType[*exec.ExitError](cmd.Wait())
		if !ok || exit.ExitCode() != exitInterrupted || !strings.Contains(stderr.String(), "assay: ask: interrupted; continue with: assay resume ") {
			t.Errorf("%v: %v, and it says\n%s", signal, exit, stderr.String())
		}
		server.holdAfter(-1)
		resume := s.command("resume", "last")
		resume.Env = append(resume.Env, env...)
		out, err := resume.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("Written, planned, graded and verified by openai/gpt-6-luna; 6 calls")) {
			t.Errorf("resume: %v\n%s", err, out)
		}
		if n := server.count(); n != 4 {
			t.Errorf("the resumed run made %d calls, want the one that was interrupted, that for what fell of it, and the verifier's for each", n)
		}
		s.want(exitAnswered, "the same answer", "replay", "last")
	}
}
