// Package ground ties answers to the text they rest on. It cuts a draft into claims,
// finds the sentences that a claim cites, and judges whether they support it.
//
// [Local] combines a learned reader (llm.Reader) with [Check], a short list of hard
// checks on numbers, names and negation. The reader decides, and the checks may only
// refuse. [Conflicts] finds evidence that contradicts other evidence.
package ground

import (
	"context"

	"github.com/assay-rag/assay"
)

// A Verifier judges whether the cited text supports a claim. It sees only the claim and the cited
// passages. It is safe for concurrent use.
//
// A verifier that fails or cannot decide counts as Unsupported: callers treat an error as such and
// report it.
type Verifier interface {
	Verify(ctx context.Context, claim string, cited []Passage) (Judgement, error)
}

// A Service is a Verifier that is reached over a network. Its calls cost money and may
// fail with an error that is assay.ErrUnavailable.
type Service interface {
	Verifier

	// Model names the service and its settings that verdicts depend on, since the answer cache
	// tells services apart by it: "bedrock/guardrail/abc123:1@0.7".
	Model() string

	// VerifyFor is Verify for a text that answers a question: a claim, or a whole answer. The
	// judgement also says how far the text answers the question, if the service judges that. The
	// question is the user's own, not a part of it.
	VerifyFor(ctx context.Context, question, text string, cited []Passage) (Judgement, error)
}

// A Passage is text that a claim cites: the quoted words and the passage around them.
type Passage struct {
	Quote   string   `json:"quote"`
	Context string   `json:"context"` // contains Quote
	Heading []string `json:"heading"` // the document's title first

	// Obtained states how the text was obtained if the source does not contain it as text; see
	// assay.ProvenanceKind.Label.
	Obtained string `json:"obtained,omitempty"`
}

// A Judgement is the verdict of a verifier on one claim.
type Judgement struct {
	Verdict assay.Verdict `json:"verdict"`
	Score   float64       `json:"score"` // probability of Supported, in [0, 1]

	// Contradiction is the probability that the cited text contradicts the claim, in [0, 1]; 0 if
	// the verifier gives none.
	Contradiction float64 `json:"contradiction,omitempty"`

	Reason string `json:"reason"` // in a few words: "the number 30 is not in the source"

	// Refused is the reason of the hard check that refused the claim; empty if none did.
	Refused string `json:"refused,omitempty"`

	// Spans are the sentences that decide the verdict, as few as possible. Empty if none
	// of the cited text bears on the claim, or if the verifier does not report them.
	Spans []Span `json:"evidence,omitempty"`

	// Relevance is how far the text answers the question, in [0, 1]; nil if it was not judged. It is
	// independent of Verdict and Score. OffTopic is set if it is below the threshold of a Service, or
	// if the service judged it and gave no usable score.
	Relevance *float64 `json:"relevance,omitempty"`
	OffTopic  bool     `json:"off_topic,omitempty"`

	// Failed is set if there is no judgement because the verifier failed.
	Failed bool `json:"failed,omitempty"`

	// Usage is the cost of a Service. It is recorded with the step.
	Usage assay.Usage `json:"-"`
}

// A Span is the bytes [Start, End) of the Context of a cited passage.
type Span struct {
	Passage int `json:"passage"` // index, from 0
	Start   int `json:"start"`
	End     int `json:"end"`
}
