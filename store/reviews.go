package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/assay-rag/assay"
)

// A Review is an answer that waits for a person, or that a person has decided. There is at most one
// for each run.
type Review struct {
	Run     string
	Open    bool      // waits for a decision
	Version int64     // from 1; counts the changes
	Created time.Time // set by the store

	// Case is the state of the review, and Draft the answer that it is about. Both are JSON. Draft is
	// nil in lists.
	Case  json.RawMessage
	Draft json.RawMessage
}

// A Pin names a version of a document that must be kept as long as the run.
type Pin struct {
	Document string
	Version  string
}

// A ReviewChange is what changes together with a review, in one transaction.
type ReviewChange struct {
	Records []assay.Record // appended to the run's journal
	Acts    []Act          // whose Subject is the run's ID, whatever they say

	// Account is the account of this store under which the calls in Records were reserved. Their
	// reservations end, and their usage is counted. nil: they were not reserved.
	Account Account

	// Answer ends the run and closes the review. nil: the run stays suspended and the review open.
	Answer *assay.Answer
}

// Reviews holds the answers that wait for a person, and the decisions. Lease.Suspend creates a review.
// Drafts are readable only through this interface.
type Reviews interface {
	// List returns the reviews without drafts, the oldest first, all or only the open ones.
	List(ctx context.Context, onlyOpen bool) ([]Review, error)

	// Review returns one review, or assay.ErrNotFound.
	Review(ctx context.Context, run string) (Review, error)

	// Change stores r.Case and r.Draft (nil: unchanged) with everything in c, in one transaction, if
	// r.Version is still the stored version. Otherwise it stores nothing and the error is
	// assay.ErrLocked. If the review is closed, the error is assay.ErrInvalid.
	Change(ctx context.Context, r Review, c ReviewChange) error
}
