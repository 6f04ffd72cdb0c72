package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/assay-rag/assay"
)

// A Share is a link to the answer of a run. The store keeps a hash of the link's token only.
type Share struct {
	Run     string
	ID      string // names the share among those of the run; it opens nothing
	Hash    string // of the token
	Created time.Time
	Expires time.Time
}

// MaxShares is the most shares of a run.
const MaxShares = 50

// Shares holds the links to answers. Those of a run are removed with it, and when it is erased.
type Shares interface {
	// Create stores a share with an act of the kind KindShareCreated. The error is assay.ErrNotFound if
	// there is no such run, and assay.ErrInvalid if it was erased, has MaxShares, or one has the ID or
	// the hash.
	Create(ctx context.Context, s Share, actor assay.Principal) error

	// List returns the shares of a run, the oldest first.
	List(ctx context.Context, run string) ([]Share, error)

	// Find returns the share with a hash, expired or not, or assay.ErrNotFound.
	Find(ctx context.Context, hash string) (Share, error)

	// Revoke removes a share with an act of the kind KindShareRevoked, or returns assay.ErrNotFound.
	Revoke(ctx context.Context, run, id string, actor assay.Principal) error
}

// A Feedback is the judgement of a user about the answer of a run.
type Feedback struct {
	Run, User string
	Verdict   string
	Body      json.RawMessage // JSON; its texts
	Updated   time.Time       // set by the store
	Sets      []string        // question sets with a question from the run, sorted; set by the store
}

// A FeedbackPlace is the place of a Feedback in a list, newest first. The zero value is before all.
type FeedbackPlace struct {
	Updated   time.Time
	Run, User string
}

// A FeedbackFilter selects feedback. Zero fields select all.
type FeedbackFilter struct {
	Verdict    string
	Unlabelled bool // only of runs from which no question was made

	After FeedbackPlace
	Limit int // at most so many
}

// Feedbacks holds the feedback of users, at most one for each run and user. It is removed with the
// run, and when that is erased.
type Feedbacks interface {
	// Set creates or replaces a user's feedback and appends the act, whose Subject is the run's ID
	// whatever it says. The error is assay.ErrNotFound if there is no such run, and assay.ErrInvalid
	// if it was erased.
	Set(ctx context.Context, f Feedback, act Act) error

	// Feedback returns a user's feedback about a run, or assay.ErrNotFound.
	Feedback(ctx context.Context, run, user string) (Feedback, error)

	// List returns feedback, the last changed first.
	List(ctx context.Context, f FeedbackFilter) ([]Feedback, error)

	// Remove removes a user's feedback and appends the act as Set does, or returns assay.ErrNotFound.
	Remove(ctx context.Context, run, user string, act Act) error
}

// A Question is a labelled question that was made from a run.
type Question struct {
	Set, Run  string
	Line      json.RawMessage // a line of a set of questions, JSON
	Documents []string        // IDs of the documents that its texts come from, sorted
	Updated   time.Time       // set by the store
}

// A QuestionSet is a named set of questions. It exists while it has any.
type QuestionSet struct {
	Name      string
	Questions int
	Updated   time.Time // last change of a question that it has
}

// MaxQuestions is the most questions of a set.
const MaxQuestions = 2000

// Questions holds labelled questions, at most one for each set and run. They are removed when their run
// is erased or deleted by a KindRunDeleted act, and stay when it expires.
type Questions interface {
	// Add stores a question and appends the act, whose Subject is the run's ID whatever it says. The
	// error is assay.ErrNotFound if there is no such run, and assay.ErrInvalid if it was erased, the
	// set has a question from it, or the set has MaxQuestions.
	Add(ctx context.Context, q Question, act Act) error

	// Change replaces the line and the documents of a question and appends the act as Add does, or
	// returns assay.ErrNotFound.
	Change(ctx context.Context, q Question, act Act) error

	// Sets returns the sets by name, and Set the questions of one, the oldest first. A set without
	// questions is assay.ErrNotFound.
	Sets(ctx context.Context) ([]QuestionSet, error)
	Set(ctx context.Context, name string) ([]Question, error)

	// Remove removes a question and appends the act as Add does, or returns assay.ErrNotFound.
	Remove(ctx context.Context, set, run string, act Act) error
}
