package role

import (
	"context"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/layout"
)

// AnswerGraderRole is the name of the role that grades the relevance of an answer.
const AnswerGraderRole = "answer_grader"

// An AnswerGrader grades how far an answer responds to its question. It ignores the evidence:
// a true and cited statement may be off topic. Its cautious output is a failure, whose
// relevance is ignored.
type AnswerGrader interface {
	GradeAnswer(ctx context.Context, c Caller, in AnswerInput) (AnswerGrade, error)
}

// AnswerInput is a question and the answer to it.
type AnswerInput struct {
	Question   string           `json:"question"`
	Parts      []string         `json:"parts,omitempty"` // the sub-questions that it was split into
	Statements []ShownStatement `json:"statements"`      // at least one

	// Quoted is set if the statements are verbatim quotations. A grader that compares words
	// can then tell that an answer is off topic.
	Quoted bool `json:"quoted,omitempty"`
}

// A ShownStatement is one statement of an answer, with the sources that it cites.
type ShownStatement struct {
	Text   string   `json:"text"`
	Under  []string `json:"under,omitempty"`  // the title and headings of the passages that it cites
	Quotes []string `json:"quotes,omitempty"` // the words that it cites

	// Passages are the texts that the quotes are from, as far as they are known. A sentence
	// that answers in its passage may not do so by itself.
	Passages []string `json:"passages,omitempty"`
}

// Labelled returns a statement that is a row of a table with each cell preceded by the head of its
// column, as far as the statement cites the heads. It returns "" for any other statement.
func (st ShownStatement) Labelled() string {
	row, ok := strings.CutPrefix(st.Text, "| ")
	if !ok {
		return ""
	}
	cells := layout.Cells(strings.TrimSuffix(row, "|"))
	for _, q := range st.Quotes {
		if heads := layout.Cells(q); len(heads) == len(cells) && !slices.Equal(heads, cells) {
			return layout.Labelled(heads, cells)
		}
	}
	return ""
}

// An AnswerGrade is the relevance of an answer to its question.
type AnswerGrade struct {
	Relevance *float64 `json:"relevance"` // in [0, 1]; nil: unknown
	Lacks     []string `json:"lacks"`     // parts of the question that the answer leaves open, in words

	// OffTopic is set if the answer certainly does not respond to the question.
	OffTopic bool `json:"off_topic,omitempty"`

	Outcome
}

// LowerOf returns an answer grader that returns the lower relevance of two graders, and fails
// if either fails.
func LowerOf(a, b AnswerGrader) AnswerGrader { return lowerOf{a, b} }

type lowerOf struct{ a, b AnswerGrader }

// GradeAnswer implements [AnswerGrader].
func (l lowerOf) GradeAnswer(ctx context.Context, c Caller, in AnswerInput) (AnswerGrade, error) {
	one, err := l.a.GradeAnswer(ctx, c, in)
	if err != nil {
		return one, err
	}
	other, err := l.b.GradeAnswer(ctx, c, in)
	if err != nil {
		return other, err
	}
	one.OffTopic = one.OffTopic || other.OffTopic
	if one.Relevance == nil || other.Relevance != nil && *other.Relevance < *one.Relevance {
		one.Relevance = other.Relevance
	}
	one.Lacks = append(slices.Clone(one.Lacks), other.Lacks...)
	if one.Failure == "" {
		one.Failure = other.Failure
	}
	one.Notes = append(slices.Clone(one.Notes), other.Notes...)
	return one, nil
}
