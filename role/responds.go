package role

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/layout"
	"github.com/assay-rag/assay/llm"
)

const (
	// leastResponds is the probability under which an answer does not respond to its
	// question: the reader finds no answer in it, nor in the words that it cites.
	leastResponds = 0.1

	// maxStatements bounds the statements that the reader reads.
	maxStatements = 12
)

// ReaderGrader grades an answer by the probability that a statement of it, or the words that
// it cites, answers the question or a part of it.
type ReaderGrader struct{ Reader llm.Reader }

// GradeAnswer implements [AnswerGrader]. An answer that the reader cannot read is a failure.
func (g ReaderGrader) GradeAnswer(ctx context.Context, _ Caller, in AnswerInput) (AnswerGrade, error) {
	var excerpts []llm.Excerpt
	var whole []string
	for _, st := range in.Statements[:min(len(in.Statements), maxStatements)] {
		heading := strings.Join(st.Under, " > ")
		for _, text := range append([]string{st.Text, st.Labelled()}, st.Quotes...) {
			if x := (llm.Excerpt{Heading: heading, Text: text}); strings.TrimSpace(text) != "" && !slices.Contains(excerpts, x) {
				excerpts = append(excerpts, x)
			}
		}
		whole = append(whole, st.Text)
	}
	if len(whole) > 1 {
		excerpts = append(excerpts, llm.Excerpt{Text: strings.Join(whole, " ")})
	}
	best := 0.0
	for _, question := range append([]string{in.Question}, in.Parts...) {
		readings, err := g.Reader.Read(ctx, question, excerpts)
		if err == nil && len(readings) != len(excerpts) {
			err = fmt.Errorf("the reader gave %d readings for %d texts: %w", len(readings), len(excerpts), assay.ErrDamaged)
		}
		if Ends(ctx, err) {
			return AnswerGrade{}, err
		}
		if err != nil {
			return AnswerGrade{Lacks: []string{}, Outcome: Outcome{Failure: err.Error()}}, nil
		}
		for _, r := range readings {
			if !(r.Answerable >= 0 && r.Answerable <= 1) {
				return AnswerGrade{Lacks: []string{}, Outcome: Outcome{Failure: fmt.Sprintf("the reader gave the probability %v", r.Answerable)}}, nil
			}
			best = max(best, r.Answerable)
		}
	}
	return AnswerGrade{Relevance: &best, Lacks: []string{}, OffTopic: best < leastResponds}, nil
}

// Labelled writes a statement that is a row of a table with its cells behind the heads that
// it cites; empty: it is no row, or cites no heads.
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

// LowerOf returns an answer grader that has the lower relevance of two, and fails where
// either does.
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
