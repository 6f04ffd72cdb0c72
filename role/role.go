// Package role says which jobs a strategy hands out, as small interfaces. The
// package local does them without a language model.
//
// A role takes values and returns values. It knows neither the run nor the
// store: a strategy calls it inside a step, and what it is given is all that it
// can see. Roles are safe for concurrent use, and deterministic where they need
// no model: equal input gives equal output.
package role

import (
	"context"
	"strings"

	"github.com/assay-rag/assay"
)

// A Planner cuts a question into what has to be looked up.
type Planner interface {
	Plan(ctx context.Context, question string) (Plan, error)
}

// A Plan is a question's sub-questions, at least one, in an order in which they
// can be answered.
type Plan struct {
	// Shape says how the sub-questions make up the question.
	Shape        PlanShape     `json:"shape"`
	SubQuestions []SubQuestion `json:"sub_questions"`

	// Failure is set where the planner failed and the question stands as it is.
	// A planner leaves it empty.
	Failure string `json:"failure,omitempty"`
}

// A PlanShape is how a plan's sub-questions make up its question.
type PlanShape string

// The shapes of a plan.
const (
	Single      PlanShape = "single"
	Conjunction PlanShape = "conjunction" // several questions in one: all of them are to be answered
	Comparison  PlanShape = "comparison"  // the same question about several things
	Chain       PlanShape = "chain"       // an answer is needed to ask the next question
)

// A SubQuestion is one thing to look up.
type SubQuestion struct {
	Text string `json:"text"`
	// Needs lists the sub-questions, by index, whose evidence this one builds
	// on. All are smaller than its own index.
	Needs []int `json:"needs,omitempty"`
	// Filter narrows the search; it is ANDed with the caller's own.
	Filter assay.Filter `json:"filter"`
}

// A Grader judges what searches for one question brought.
type Grader interface {
	Grade(ctx context.Context, in GradeInput) (Grade, error)
}

// GradeInput is a question and what was found for it so far.
type GradeInput struct {
	Question string       `json:"question"`
	Hits     []assay.Hit  `json:"hits"`  // of all its searches, best first by relevance
	Terms    []assay.Term `json:"terms"` // of the question, as the index sees them
	Tried    []string     `json:"tried"` // queries that were searched already
	Floor    float64      `json:"floor"` // relevance under which a hit does not count
}

// A Grade is the word on a question's evidence.
type Grade struct {
	Verdict  assay.GradeVerdict `json:"verdict"`
	Relevant []string           `json:"relevant_chunks"`    // chunk IDs, best first
	Missing  []string           `json:"missing"`            // what the hits do not say, in words
	Query    string             `json:"reformulated_query"` // to search next; empty: nothing better is known
	Reason   string             `json:"reason"`             // in a sentence
}

// A Generator writes an answer from evidence and from nothing else.
type Generator interface {
	Generate(ctx context.Context, in GenerateInput) (Draft, error)
}

// GenerateInput is a question and the evidence accepted for it.
type GenerateInput struct {
	Question string           `json:"question"`
	Parts    []Part           `json:"parts"`
	Evidence []assay.Evidence `json:"evidence"`

	// Context is what of the evidence to read where not all of it fits, and in which
	// order: the best first and last. Numbers stay those of the evidence. A generator
	// that reads as much as it likes may take the evidence itself.
	Context []Excerpt `json:"context"`
}

// An Excerpt is what to read of a piece of evidence: the spans of its document's
// text, ascending and apart from one another.
type Excerpt struct {
	Evidence int    `json:"n"`
	Spans    []Span `json:"spans"`
}

// A Span is the bytes [Start, End) of a document's text.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Text returns what an excerpt of a piece of evidence says, with an ellipsis where
// something is left out between two spans.
func (x Excerpt) Text(ev assay.Evidence) string {
	parts := make([]string, len(x.Spans))
	for i, s := range x.Spans {
		parts[i] = ev.Hit.Text[s.Start-ev.Hit.Chunk.Start : s.End-ev.Hit.Chunk.Start]
	}
	return strings.Join(parts, " … ")
}

// A Part is a sub-question and the evidence that was found for it, by number.
type Part struct {
	Question string       `json:"question"`
	Evidence []int        `json:"evidence"` // best first
	Terms    []assay.Term `json:"terms"`
}

// A Draft is an answer that nobody has verified yet. A draft without statements
// says that the evidence does not answer the question.
type Draft struct {
	Statements []Statement `json:"statements"`

	// Failure is set where the generator failed and has written nothing. A
	// generator leaves it empty.
	Failure string `json:"failure,omitempty"`
}

// A Statement is one or more sentences and the evidence they rest on. A number
// that was not given is an error of the generator and is dropped; a statement
// left without a number is not shown.
type Statement struct {
	Text     string `json:"text"`
	Evidence []int  `json:"evidence"`
	Item     bool   `json:"item"` // of a list: shown on a line of its own
}
