package pdfium

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestPrepare checks that waiting is called while another goroutine compiles, and not needed after.
func TestPrepare(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	c := &compiler{started: make(chan struct{}, 1), done: make(chan struct{}), err: broken} // compiling
	calls := 0
	err := c.prepare(t.Context(), time.Millisecond, func() {
		if calls++; calls == 3 { // later calls may come before the end is seen
			close(c.done)
		}
	})
	if !errors.Is(err, broken) || calls < 3 {
		t.Errorf("prepare = %v after %d calls, want its error after 3", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c = &compiler{started: make(chan struct{}, 1), done: make(chan struct{})}
	if err := c.prepare(ctx, time.Hour, func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("prepare with a cancelled context = %v", err)
	}
}
