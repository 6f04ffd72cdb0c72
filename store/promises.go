package store

import (
	"fmt"

	"github.com/assay-rag/assay"
)

// A Promise is a server's promise to drive a run to its end, also if its process dies. It is stored
// with the run and goes with it, and with its payloads when it is erased. It gives no right.
type Promise struct {
	Run string

	// Slot identifies the idempotency key of a principal; empty: none. A tenant has at most one run
	// with a slot. Request is a hash of what was asked under that key.
	Slot    string
	Request string

	// Attempts counts how often driving the run began, from the last attempt in which its journal grew
	// on, since Calm was called.
	Attempts int

	// Stuck is set by Promised if the journal has not grown since the last attempt began.
	Stuck bool
}

// A SlotError reports that a run with the slot of a new one exists. It wraps assay.ErrLocked.
type SlotError struct {
	Promise Promise // of the existing run
}

func (e *SlotError) Error() string {
	return fmt.Sprintf("run %s has its idempotency key: %v", e.Promise.Run, assay.ErrLocked)
}

// Unwrap returns assay.ErrLocked.
func (e *SlotError) Unwrap() error { return assay.ErrLocked }
