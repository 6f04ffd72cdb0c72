package role

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ambiguity"
)

// A Clarifier decides whether a question is ambiguous. It chooses among given meanings and
// adds no words of its own. Its cautious output is that the question is not ambiguous.
type Clarifier interface {
	Clarify(ctx context.Context, c Caller, in ClarifyInput) (Clarity, error)
}

// ClarifyInput is a question with its hits and its possible meanings.
type ClarifyInput struct {
	Question string       `json:"question"`
	History  []assay.Turn `json:"history,omitempty"` // of the conversation, which does not resolve the question

	// Open are words of the question without an antecedent: "it" in "How do I configure
	// it?". If it is empty, documents with similar names answer the question differently.
	Open string `json:"open,omitempty"`

	Hits  []assay.Hit         `json:"hits"`            // best first
	Means []ambiguity.Meaning `json:"means,omitempty"` // possible meanings, likeliest first
}

// Clarity is the decision whether a question is ambiguous.
type Clarity struct {
	Ambiguous bool `json:"ambiguous"`

	// Readings are the possible meanings: indexes of ClarifyInput.Means, ascending. An
	// ambiguous question has none or at least two.
	Readings []int `json:"readings"`

	Outcome
}
