package local

import (
	"context"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/language"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// AnswerGrader grades an answer by its words: by the share of the question's content
// words that it speaks of, each statement with what it stands under, and by whether it
// has what the question's first words ask for, a name, a number or a date. It tells
// nothing of an answer in another language that has no word of the question.
//
// Measured: of the answers to 119 golden questions of eval/testdata
// those that cite a right section have 0.42 or more and half of them 1; of answers to
// another question of the file half have 0 and nine in ten 0.33 or less. Answers that
// people wrote in their own words are told apart less well: without what they stand
// under one in ten of those to clapnq-answerable has under 0.25, and one in twenty 0. So
// the grader is sure of quotations alone, and far below what a right one has.
type AnswerGrader struct{}

const (
	// wrongKind is what is left of the relevance of an answer that has nothing of the
	// kind that is asked for.
	wrongKind = 0.5

	// minRelevance is the relevance under which a quotation is beside the question.
	minRelevance = 0.2
)

// english reports whether a text is plainly in English: a question is often too short to
// tell by its letters.
func english(text string) bool {
	if code := language.Detect(text); code != "" {
		return code == "en"
	}
	const plain = 0.2 // share of the words
	words, small := surface.Words(text), 0
	for _, w := range words {
		if surface.Function(strings.ToLower(w)) {
			small++
		}
	}
	return float64(small) >= plain*float64(len(words))
}

// GradeAnswer implements role.AnswerGrader. It returns an error only when ctx has ended.
func (AnswerGrader) GradeAnswer(ctx context.Context, _ role.Caller, in role.AnswerInput) (role.AnswerGrade, error) {
	if err := ctx.Err(); err != nil {
		return role.AnswerGrade{}, err
	}
	out := role.AnswerGrade{Lacks: []string{}}
	q := read(in.Question, nil)
	texts := make([]string, len(in.Statements))
	for i, st := range in.Statements {
		texts[i] = strings.Join(append(slices.Clone(st.Under), st.Text), ": ")
	}
	c := covered(q, texts)
	if len(q.terms) == 0 || c.share == 0 && !(english(in.Question) && english(strings.Join(texts, " "))) {
		return out, nil
	}
	relevance := c.share
	if c.lacks != anything {
		relevance *= wrongKind
		out.Lacks = append(out.Lacks, string(c.lacks))
	}
	out.Lacks = append(out.Lacks, c.names...)
	out.Relevance = &relevance
	out.Beside = in.Quoted && relevance < minRelevance
	return out, nil
}
