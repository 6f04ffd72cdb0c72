// Package ground ties answers to the bytes they rest on: it cuts a draft into
// claims, finds the words of the evidence that each claim cites, and holds the
// interface of the verifier that judges them, with the local one.
package ground

import (
	"context"

	"github.com/assay-rag/assay"
)

// A Verifier judges whether what a claim cites says the claim. It sees the
// claim and the cited words, nothing else. It is safe for concurrent use.
//
// A verifier that fails or cannot decide counts as Unsupported: callers treat
// an error so, and say it.
type Verifier interface {
	Verify(ctx context.Context, claim string, cited []Passage) (Judgement, error)
}

// A Service is a Verifier that is reached over a network: what it does costs calls,
// and may fail with an error that is assay.ErrUnavailable.
type Service interface {
	Verifier

	// Model names it: "bedrock/guardrail/abc123:1".
	Model() string
}

// A Passage is text that a claim cites: the words of the citation, and the
// passage around them from which a reader understands them.
type Passage struct {
	Quote   string   `json:"quote"`
	Context string   `json:"context"` // contains Quote
	Heading []string `json:"heading"` // the document's title first
}

// A Judgement is a verifier's word on one claim.
type Judgement struct {
	Verdict assay.Verdict `json:"verdict"`
	Score   float64       `json:"score"`  // confidence in Supported, in [0, 1]
	Reason  string        `json:"reason"` // in a few words: "number 30 is not in the source"

	// Spans are the words that decide it, the fewest that do together; empty where
	// nothing that was cited bears on the claim, or the verifier does not say.
	Spans []Span `json:"evidence,omitempty"`

	// Failed is set where there is no judgement because the verifier failed.
	Failed bool `json:"failed,omitempty"`

	// Usage is what a Service has spent on it: calls, and tokens up to those of what it
	// was given. It is recorded with the step.
	Usage assay.Usage `json:"-"`
}

// A Span is the bytes [Start, End) of the Context of a passage that was cited.
type Span struct {
	Passage int `json:"passage"` // index, from 0
	Start   int `json:"start"`
	End     int `json:"end"`
}

// An Encoder gives each token of a text a vector that knows what stands around it.
type Encoder interface {
	// Encode returns the tokens of each text, in the order given. A text that has more
	// tokens than the encoder takes is an error, never cut. It is safe for concurrent use.
	Encode(ctx context.Context, texts []string) ([][]Token, error)
}

// A Token is the bytes [Start, End) of a text and their vector, of unit length.
type Token struct {
	Start, End int
	Vector     []float32
}
