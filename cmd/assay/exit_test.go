package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	wrapped := func(kind error) error { return fmt.Errorf("do a thing: %w", kind) }
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{wrapped(assay.ErrNotFound), 1}, // a run or document, not a question without an answer
		{wrapped(assay.ErrFull), 1},
		{wrapped(assay.ErrReadOnly), 1},
		{wrapped(assay.ErrInvalid), 2},
		{end(assay.NotFound.ExitCode()), 3},
		{end(assay.Incomplete.ExitCode()), 4},
		{end(assay.Conflicting.ExitCode()), 5},
		{end(assay.PendingReview.ExitCode()), 6},
		{end(assay.Rejected.ExitCode()), 6},
		{wrapped(assay.ErrSuspended), 6},
		{wrapped(assay.ErrLocked), 7},
		{wrapped(assay.ErrLeased), 7},
		{wrapped(assay.ErrDamaged), 8},
		{wrapped(assay.ErrForeign), 8},
		{wrapped(assay.ErrNewer), 8},
		{wrapped(assay.ErrDiverged), 8},
		{&engine.RunError{Run: "r", Err: wrapped(context.Canceled)}, 130},
		{hinted{wrapped(assay.ErrInvalid), "see"}, 2},
	}
	for _, test := range tests {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("exitCode(%v) = %d, want %d", test.err, got, test.want)
		}
	}
	if got := end(assay.Answered.ExitCode()); got != nil {
		t.Errorf("an answered question ends in %v, want no error", got)
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  error
		want string
	}{
		{usagef("no question"), "no question"},
		{hinted{usagef("no question"), "ask one"}, "no question; ask one"},
		{fmt.Errorf("open x: %w", assay.ErrForeign), "open x: not assay's data; name another directory with --data"},
		{fmt.Errorf("step plan: %w", context.Canceled), "interrupted"},
		{hinted{context.Canceled, "continue with: assay resume r"}, "interrupted; continue with: assay resume r"},
	}
	for _, test := range tests {
		if got := message(test.err); got != test.want {
			t.Errorf("message(%v) = %q, want %q", test.err, got, test.want)
		}
	}
}

func TestShellQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a/b.md":  "a/b.md",
		"":        "''",
		"a b":     "'a b'",
		"it's":    `'it'\''s'`,
		"$(rm x)": "'$(rm x)'",
	} {
		if got := shellQuote(in); got != want {
			t.Errorf("shellQuote(%q) = %s, want %s", in, got, want)
		}
	}
}

// TestHintDoctor checks that errors of damaged data name the command that examines it.
func TestHintDoctor(t *testing.T) {
	t.Parallel()
	damaged := fmt.Errorf("open: %w", assay.ErrDamaged)
	for _, test := range []struct {
		app  app
		err  error
		want string
	}{
		{app{}, damaged, "; see: assay doctor"},
		{app{data: "my data"}, damaged, "; see: assay doctor --data 'my data'"},
		{app{docs: []string{"a", "b"}}, damaged, "; see: assay doctor --docs a --docs b; if you remove the folder, the documents are read again"},
		{app{}, hinted{damaged, "do this"}, "; do this"},
		{app{}, assay.ErrInvalid, ""},
	} {
		if got := hintOf(test.app.hintDoctor(test.err)); got != test.want {
			t.Errorf("hint of %v is %q, want %q", test.err, got, test.want)
		}
	}
}

// TestHintResume checks that the hint repeats the flags that the run depends on.
func TestHintResume(t *testing.T) {
	a := &app{data: "my data", config: "lab.yaml", models: []string{"generator=lab/big"}}
	got := message(a.hintResume(&engine.RunError{Run: "r1", Resumable: true, Err: context.Canceled}))
	want := "interrupted; continue with: assay resume r1 --model generator=lab/big --config lab.yaml --data 'my data'"
	if got != want {
		t.Errorf("the hint is %q, want %q", got, want)
	}
}
