package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// waiting is standard input without data. It calls read on each Read.
type waiting struct {
	io.Reader
	read func()
}

func (w waiting) Read(p []byte) (int, error) {
	w.read()
	return w.Reader.Read(p)
}

// TestInterruptStdin checks that Ctrl-C ends a command that waits for standard input.
func TestInterruptStdin(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"ask"}, {"ask", "-"}, {"ask", "--docs", "-", "Who signs?"}, {"ingest", "-", "--data", t.TempDir()}} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		silent, writer := io.Pipe()
		var complaint strings.Builder
		a := newApp()
		a.piped, a.watched, a.escapes = true, false, false
		a.stdin = waiting{silent, cancel}
		a.stdout, a.stderr = &output{w: io.Discard}, &output{w: &complaint}
		a.cacheDir = func() (string, error) { return t.TempDir(), nil }
		if code := a.run(ctx, args); code != exitInterrupted || !strings.Contains(complaint.String(), "interrupted") {
			t.Errorf("assay %s = %d, %q; want %d", strings.Join(args, " "), code, complaint.String(), exitInterrupted)
		}
		writer.Close()
		cancel()
	}
}
