package role

import (
	"context"

	"github.com/assay-rag/assay"
)

// A Rewriter puts a question into other words to search with. What it makes is
// searched and never shown or cited. Its cautious output has no queries.
type Rewriter interface {
	Rewrite(ctx context.Context, c Caller, in RewriteInput) (Rewriting, error)
}

// RewriteInput is a question and what to make of it.
type RewriteInput struct {
	Question  string       `json:"question"`
	Technique Technique    `json:"technique"`
	History   []assay.Turn `json:"history,omitempty"` // of the conversation before the question, the oldest first
	Most      int          `json:"most,omitempty"`    // queries to make with Expand; 0: 3
}

// A Technique is a way to rewrite a question.
type Technique string

// The techniques.
const (
	Resolve  Technique = "resolve"   // one question that can be understood without the conversation
	Expand   Technique = "expand"    // other wordings: synonyms, the documents' own words
	HyDE     Technique = "hyde"      // a passage as it would stand in a document that answers it
	StepBack Technique = "step_back" // one more general question, whose answer is the background
)

// A Rewriting is what a question became. None of its queries is the question
// itself, and each says something.
type Rewriting struct {
	Queries []string `json:"queries"`

	// Of a follow-up that the conversation does not make plain (Resolve): its words that
	// may not be guessed at, and what they can stand for, two things or more or nothing.
	// There are no queries then.
	Open  string   `json:"open,omitempty"`
	Means []string `json:"means,omitempty"`

	Outcome
}

// A Router says how much work a question is. Its cautious output is Moderate.
type Router interface {
	Route(ctx context.Context, c Caller, question string) (Route, error)
}

// A Route is the router's word.
type Route struct {
	Complexity Complexity `json:"complexity"`
	Reason     string     `json:"reason"` // in a sentence

	Outcome
}

// Complexity is how much work a question is.
type Complexity string

// The complexities.
const (
	Simple   Complexity = "simple"   // one search answers it
	Moderate Complexity = "moderate" // several searches for the same thing
	Complex  Complexity = "complex"  // several things, or one that builds on another
)

// A Querier says what to search next for a question that is not answered yet. Its
// cautious output is that nothing better is known.
type Querier interface {
	Next(ctx context.Context, c Caller, in QueryInput) (NextQuery, error)
}

// QueryInput is a question, what was searched for it and what is still open.
type QueryInput struct {
	Question string   `json:"question"`
	History  []Asked  `json:"history"` // the oldest first
	Gaps     []string `json:"gaps"`    // what is known to be missing, in words
}

// Asked is a query that was searched and what it brought, in a few words.
type Asked struct {
	Query   string `json:"query"`
	Brought string `json:"brought"`
}

// A NextQuery is what to search next. Its words tell it from each earlier query:
// it has words of content that the other lacks, and is no rephrasing with hardly a
// word changed. Query is one line; empty: nothing better is known.
type NextQuery struct {
	Query  string `json:"query"`
	Gap    string `json:"gap"`    // what it is meant to fill
	Reason string `json:"reason"` // in a sentence

	Outcome
}

// A Scorer says for each hit how much it helps with a question, in their order.
// The cautious score is 0.5.
type Scorer interface {
	Score(ctx context.Context, c Caller, question string, hits []assay.Hit) (HitScores, error)
}

// HitScores are the scores of hits, each in [0, 1].
type HitScores struct {
	Scores []float64 `json:"scores"`

	Outcome
}

// CautiousScore is the score of a hit that could not be scored.
const CautiousScore = 0.5

// A RetrievalGrader grades each hit for a question, in their order. The cautious
// grade is PartlyRelevant.
type RetrievalGrader interface {
	GradeRetrieval(ctx context.Context, c Caller, question string, hits []assay.Hit) (RetrievalGrades, error)
}

// RetrievalGrades are the grades of hits.
type RetrievalGrades struct {
	Grades []Relevance `json:"grades"`

	Outcome
}

// Relevance is how a hit bears on a question.
type Relevance string

// The grades of a hit.
const (
	Relevant       Relevance = "relevant"
	PartlyRelevant Relevance = "partly"
	NotRelevant    Relevance = "not"
)
