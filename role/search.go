package role

import (
	"context"

	"github.com/assay-rag/assay"
)

// A Rewriter rewrites a question as search queries, which are never shown or cited. Its
// cautious output has no queries. It also chooses the next query and decides whether a
// question is ambiguous.
type Rewriter interface {
	Rewrite(ctx context.Context, c Caller, in RewriteInput) (Rewriting, error)
	Querier
	Clarifier
}

// RewriteInput is a question and the technique to rewrite it with.
type RewriteInput struct {
	Question  string       `json:"question"`
	Technique Technique    `json:"technique"`
	History   []assay.Turn `json:"history,omitempty"` // earlier turns of the conversation, oldest first
	Most      int          `json:"most,omitempty"`    // most queries of Expand; 0: 3
}

// A Technique is a way to rewrite a question.
type Technique string

// The techniques.
const (
	Resolve  Technique = "resolve"   // one question that can be understood without the conversation
	Expand   Technique = "expand"    // other wordings: synonyms, the documents' own words
	HyDE     Technique = "hyde"      // a passage as in a document that answers the question
	StepBack Technique = "step_back" // one more general question, whose answer is the background
)

// A Rewriting is the rewritten question. Its queries are not empty and differ from the
// question.
type Rewriting struct {
	Queries []string `json:"queries"`

	// Open are the words of a follow-up (Resolve) that the conversation does not resolve,
	// and Means their possible antecedents, two or more, or none. There are then no queries.
	Open  string   `json:"open,omitempty"`
	Means []string `json:"means,omitempty"`

	Outcome
}

// A Router estimates the work for a question. Its cautious output is Moderate.
type Router interface {
	Route(ctx context.Context, c Caller, question string) (Route, error)
}

// A Route is the estimate of a Router.
type Route struct {
	Complexity Complexity `json:"complexity"`
	Reason     string     `json:"reason"` // in a sentence

	Outcome
}

// Complexity is the amount of work that a question needs.
type Complexity string

// The complexities.
const (
	Simple   Complexity = "simple"   // one search answers it
	Moderate Complexity = "moderate" // several searches for the same thing
	Complex  Complexity = "complex"  // several things, or one that builds on another
)

// A Querier chooses the next query for a question that is not answered yet. Its cautious
// output has no query.
type Querier interface {
	Next(ctx context.Context, c Caller, in QueryInput) (NextQuery, error)
}

// QueryInput is a question, the queries so far and the gaps that they left.
type QueryInput struct {
	Question string   `json:"question"`
	History  []Asked  `json:"history"` // oldest first
	Gaps     []string `json:"gaps"`    // known gaps, in words
}

// Asked is an earlier query and a summary of its results.
type Asked struct {
	Query   string   `json:"query"`
	Brought string   `json:"brought"`
	Sources []string `json:"sources,omitempty"` // URIs of the documents of Brought
}

// A NextQuery is the query to search next. It has content words that each earlier query
// lacks, and is not a rephrasing of one. Query is one line; empty: no better query is known.
type NextQuery struct {
	Query  string `json:"query"`
	Gap    string `json:"gap"`    // the gap that it may fill
	Reason string `json:"reason"` // in a sentence

	Outcome
}

// A Scorer scores how much each hit helps to answer a question, in order, and finds the parts of
// hits that do. The cautious score is 0.5, and the cautious part the whole hit.
type Scorer interface {
	Score(ctx context.Context, c Caller, question string, hits []assay.Hit) (HitScores, error)
	Refine(ctx context.Context, c Caller, question string, hits []assay.Hit) (Refinement, error)
}

// A Refinement holds the parts of each hit that bear on the question: ascending spans of the hit's
// text. A hit without such parts has none.
type Refinement struct {
	Parts [][]Span `json:"parts"`

	Outcome
}

// HitScores are the scores of hits, each in [0, 1].
type HitScores struct {
	Scores []float64 `json:"scores"`

	Outcome
}

// CautiousScore is the score of a hit that could not be scored.
const CautiousScore = 0.5

// WholeHits returns the parts of hits that are used whole.
func WholeHits(hits []assay.Hit) [][]Span {
	parts := make([][]Span, len(hits))
	for i, h := range hits {
		if h.Text != "" {
			parts[i] = []Span{{End: len(h.Text)}}
		}
	}
	return parts
}

// A RetrievalGrader grades each hit for a question, in order. The cautious grade is
// PartlyRelevant.
type RetrievalGrader interface {
	GradeRetrieval(ctx context.Context, c Caller, question string, hits []assay.Hit) (RetrievalGrades, error)
}

// RetrievalGrades are the grades of hits.
type RetrievalGrades struct {
	Grades []Relevance `json:"grades"`

	Outcome
}

// Relevance is the grade of a hit.
type Relevance string

// The grades of a hit.
const (
	Relevant       Relevance = "relevant"
	PartlyRelevant Relevance = "partly"
	NotRelevant    Relevance = "not"
)
