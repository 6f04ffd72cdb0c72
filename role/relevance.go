package role

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/layout"
)

// An AnswerGrader grades how far an answer responds to its question. It ignores the evidence:
// a true and cited statement may be off topic. Its cautious output is a failure, whose
// relevance is ignored. An answer whose relevance is unknown counts as not judged.
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

	// OffTopic is set if the relevance is below a threshold of the grader's own, beside that of the
	// strategy.
	OffTopic bool `json:"off_topic,omitempty"`

	Outcome
}

// RelevanceBy returns an answer grader that asks a service for the relevance of the whole answer,
// with what it cites. If the service does not judge relevance, the relevance is unknown.
func RelevanceBy(s ground.Service) AnswerGrader { return relevanceBy{s} }

type relevanceBy struct{ service ground.Service }

// GradeAnswer implements [AnswerGrader].
func (g relevanceBy) GradeAnswer(ctx context.Context, c Caller, in AnswerInput) (AnswerGrade, error) {
	out := AnswerGrade{Lacks: []string{}}
	claim := Claim{Question: in.Question}
	var texts []string
	for _, st := range in.Statements {
		texts = append(texts, st.Text)
		for _, q := range st.Quotes {
			claim.Cited = append(claim.Cited, ground.Passage{Quote: q, Context: q, Heading: st.Under})
		}
	}
	claim.Text = strings.Join(texts, "\n")
	j, err := c.Check(ctx, g.service, claim)
	switch {
	case Ends(ctx, err):
		return AnswerGrade{}, err
	case err != nil:
		out.Failure = reason(err)
	case j.Failed || j.Refused != "":
		out.Failure = g.service.Model() + ": " + cmp.Or(j.Refused, j.Reason, "no judgement")
	case j.Relevance == nil && j.OffTopic:
		out.Failure = g.service.Model() + ": no usable score of the relevance"
	default:
		out.Relevance, out.OffTopic = j.Relevance, j.OffTopic
	}
	return out, nil
}

// lower returns the lower of two relevances of which either may be unknown. NaN is the lowest.
func lower(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil || math.IsNaN(*a) || *a < *b:
		return a
	}
	return b
}

// LowerOf returns an answer grader that returns the lower relevance of two graders, and fails
// if either fails. A relevance that one of them does not know does not count.
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
	one.Relevance = lower(one.Relevance, other.Relevance)
	one.Lacks = append(slices.Clone(one.Lacks), other.Lacks...)
	if one.Failure == "" {
		one.Failure = other.Failure
	}
	one.Notes = append(slices.Clone(one.Notes), other.Notes...)
	return one, nil
}
