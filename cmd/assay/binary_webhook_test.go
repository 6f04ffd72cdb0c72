//go:build unix

package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestInterruptDeliver checks that Ctrl-C ends webhook deliver --watch while a receiver does not
// respond, that the message stays, and that another process delivers it then.
func TestInterruptDeliver(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			arrived, release := make(chan bool, 10), make(chan bool)
			receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				arrived <- true
				select {
				case <-release:
				case <-r.Context().Done():
				}
			}))
			defer receiver.Close()
			s := newSandbox(t)
			t.Cleanup(func() { receiver.CloseClientConnections() })
			s.want(exitAnswered, "2 added", "ingest", "handbook")
			s.write("hook", hookSecret)
			s.want(exitAnswered, "added ops", "webhook", "add", "ops", receiver.URL, "--event", "run.ended", "--secret", "file:hook")
			s.want(exitAnswered, "head of the department", "ask", "Who approves travel to a customer?") // a dead receiver is none of its business
			cmd := s.command("webhook", "deliver", "--watch")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-arrived
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			exit, ok := errors.AsType[*exec.ExitError](cmd.Wait()) // long before the receiver responds
			if !ok || exit.ExitCode() != exitInterrupted || !strings.Contains(stderr.String(), "interrupted") {
				t.Errorf("interrupted: %v, %q", exit, stderr.String())
			}
			close(release)
			s.want(exitAnswered, "0 new, 1 delivered, 0 failed, 0 given up", "webhook", "deliver")
		})
	}
}
