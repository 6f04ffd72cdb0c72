package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/assay-rag/assay"
)

// A lateContext has passed its deadline, and its timer has not run yet.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// TestConnectLate checks that the end of the caller's time is not taken for that of the server's.
func TestConnectLate(t *testing.T) {
	t.Parallel()
	c := &connector{wait: time.Minute}
	timeout := func(context.Context) error { return context.DeadlineExceeded } // as package net returns it
	err := c.retrying(lateContext{t.Context()}, timeout)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("the caller's time is over: %v", err)
	}
	if err := c.retrying(t.Context(), timeout); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("the server does not answer: %v", err)
	}
}
