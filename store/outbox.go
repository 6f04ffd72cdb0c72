package store

import (
	"context"
	"time"
)

// An Outbox holds messages about acts of the tenant's audit log until they are delivered. It knows
// up to which act messages were made, and moves that position in the transaction that stores them,
// so that each act becomes exactly one message per target however often a program is interrupted. The
// messages of an act go with the payload of the act, when that is erased, and count as removed.
type Outbox interface {
	// Make calls fn with the acts after the position, in order, and stores the messages that it
	// returns. It goes through all acts that the log has at the time. Acts with a sequence up to
	// skip are passed over. fn must not use the store. Make returns the number of messages stored.
	// A message of an act and a target that has one is ignored.
	Make(ctx context.Context, skip int64, fn func(LoggedAct) ([]Message, error)) (int, error)

	// Due returns at most limit messages whose time to be sent has come, those with the fewest
	// attempts first, then by act.
	Due(ctx context.Context, limit int) ([]Message, error)

	// Next returns when the next message is to be sent; zero: none waits.
	Next(ctx context.Context) (time.Time, error)

	// Delivered removes a message that its target accepted, and counts it. A message that does not
	// exist is ignored.
	Delivered(ctx context.Context, id string) error

	// Failed records an attempt that failed and why. The message is sent again at next; if that is
	// zero, it is dead and only Retry sends it again. A wait above 0 also postpones the other
	// messages of the target until that much later than now, without an attempt.
	Failed(ctx context.Context, id, why string, next time.Time, wait time.Duration) error

	// Dead returns the dead messages by act and target.
	Dead(ctx context.Context) ([]Message, error)

	// Retry makes dead messages due, as if they were new, and returns their number. No ID: all.
	// If one of the IDs is of no dead message, the error is assay.ErrNotFound and nothing changes.
	Retry(ctx context.Context, ids ...string) (int, error)

	// Drop gives up the messages of a target that wait: they are dead, with the reason. It returns
	// their number.
	Drop(ctx context.Context, target, why string) (int, error)

	// Expire removes the dead messages that were made before a time, and of each target the oldest
	// messages beyond the given number, dead or not. It counts them as removed and returns their
	// number.
	Expire(ctx context.Context, before time.Time, most int) (int, error)

	// Forget removes all messages and counts of a target.
	Forget(ctx context.Context, target string) error

	// Targets returns the counts of the targets that have or had messages, by name.
	Targets(ctx context.Context) ([]TargetCount, error)
}

// A LoggedAct is an act of the audit log. If its payload was erased, it has no Actor, Reason and
// Detail.
type LoggedAct struct {
	Sequence int64
	Time     time.Time
	Act
}

// A Message is one message to one target.
type Message struct {
	ID     string // unique and lasting: a repeated delivery has the same
	Act    int64  // sequence of the act
	Kind   string // of the act
	Target string
	Body   []byte // UTF-8

	Made     time.Time // set by the store; after Retry, that time
	Attempts int       // that failed
	Due      time.Time // zero: dead
	Error    string    // of the last attempt
}

// A TargetCount counts the messages of a target.
type TargetCount struct {
	Target    string    `json:"target"`
	Waiting   int       `json:"waiting"`
	Dead      int       `json:"dead"`
	Delivered int       `json:"delivered"`
	Last      time.Time `json:"last_delivered"` // zero: none yet

	// Removed counts the messages that were removed before they were delivered: by Expire, or because
	// their acts were erased.
	Removed int `json:"removed"`

	// Failures counts the attempts since then that postponed all messages of the target.
	Failures int `json:"failures"`
}
