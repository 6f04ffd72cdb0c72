package llm

import "context"

// A Reader is a small learned model that reads a pair of texts: a question and a passage, or a
// claim and a passage. It calls no service and is deterministic. All probabilities are in [0, 1]. A
// Reader is safe for concurrent use.
type Reader interface {
	// Model returns the name of the reader and its weights, for example "reader@50b99043".
	Model() string

	// Read reads a question against each passage and returns one Reading per passage, in the order
	// given. A passage longer than the model's input is read in overlapping windows and never
	// truncated. A question that leaves no room for a passage is a *TooLongError.
	Read(ctx context.Context, question string, passages []Excerpt) ([]Reading, error)

	// Entail reads the claim of each pair against its passage and returns one Entailment per pair,
	// in the order given. It treats long passages and claims as Read does.
	Entail(ctx context.Context, pairs []ClaimPair) ([]Entailment, error)
}

// An Excerpt is a passage with its headings.
type Excerpt struct {
	Heading string // the document's title and headings, for example "Handbook > Leave"; may be empty
	Text    string
}

// A Reading is the result of reading a question against one passage.
type Reading struct {
	Answerable float64   // calibrated probability that the text answers the question
	Relevance  float64   // calibrated probability that the text helps to answer the question
	Spans      []Extract // the likeliest answers, best first, at most 5, none inside another
}

// An Extract is the bytes [Start, End) of an excerpt's text.
type Extract struct {
	Start, End int
	Score      float64 // probability that this is the answer, given that the text contains one
}

// A ClaimPair is a claim and the passage that it is checked against.
type ClaimPair struct {
	Claim   string
	Passage Excerpt
}

// An Entailment classifies the relation of a passage to a claim. The three probabilities sum to 1.
type Entailment struct {
	Supported, Contradicted, Neutral float64

	// Decisive is the part of the text that decides the classification, at least one word.
	Decisive Extract
}
