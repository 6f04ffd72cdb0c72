package role

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sense"
)

// A Clarifier says whether a question can mean several things. It chooses among what
// the passages speak of and adds no words of its own. Its cautious output is that the
// question is not ambiguous.
type Clarifier interface {
	Clarify(ctx context.Context, c Caller, in ClarifyInput) (Clarity, error)
}

// ClarifyInput is a question, what was found for it, and what it may mean.
type ClarifyInput struct {
	Question string       `json:"question"`
	History  []assay.Turn `json:"history,omitempty"` // of the conversation before it, which did not tell what it means

	// Open are the words of the question that stand for something which it does not say:
	// "it" in "How do I configure it?". Empty: it says what it is about, and documents that
	// are called alike answer it differently.
	Open string `json:"open,omitempty"`

	Hits  []assay.Hit   `json:"hits"`            // best first
	Means []sense.Sense `json:"means,omitempty"` // what it may mean, the likeliest first
}

// Clarity says whether a question is ambiguous.
type Clarity struct {
	Ambiguous bool `json:"ambiguous"`

	// Readings are those of ClarifyInput.Means that the question can mean, by index,
	// ascending: of an ambiguous one none or at least two.
	Readings []int `json:"readings"`

	Outcome
}
