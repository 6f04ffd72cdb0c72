package strategy

import (
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// byModel reports whether a model filled a role when the run began. Its texts other than claims are
// marked as a model's.
func (e Env) byModel(task string) bool { return e.Began[role.Of(task)] != "" }

// roleGaps returns the gaps named by a role for a question, as lines without links. A text that
// repeats the question is not marked as a model's.
func (e Env) roleGaps(question string, texts []string, byModel bool) []assay.Gap {
	var gaps []assay.Gap
	for _, text := range texts {
		own := text == question || text == e.Question
		if line := questionSources(e.Question).line(text); line != "" {
			gaps = append(gaps, assay.Gap{Text: line, ByModel: byModel && !own})
		}
	}
	return gaps
}

// subQuestionGaps returns the gaps of a sub-question by its grade, or its question if the grade has
// none.
func (e Env) subQuestionGaps(sq subQuestion) []assay.Gap {
	gaps := e.roleGaps(sq.displayText(), without(sq.grade.Missing, sq.missingCollections), e.byModel(role.GraderRole) && !sq.grade.StoodIn)
	if gaps = append(gaps, e.roleGaps(sq.displayText(), sq.missingCollections, false)...); len(gaps) > 0 {
		return gaps
	}
	return e.questionGap(sq.displayText())
}

// questionGap returns an unanswered question as a gap.
func (e Env) questionGap(question string) []assay.Gap {
	return e.roleGaps(question, []string{question}, false)
}

// withGaps appends gaps that are not yet in the list.
func withGaps(gaps []assay.Gap, others ...assay.Gap) []assay.Gap {
	gaps = slices.Clone(gaps)
	for _, o := range others {
		if !slices.ContainsFunc(gaps, func(g assay.Gap) bool { return g.Text == o.Text }) {
			gaps = append(gaps, o)
		}
	}
	return gaps
}

// withNotes appends notes that are not yet in the list.
func withNotes(all []assay.Note, others ...assay.Note) []assay.Note {
	return append(slices.Clone(all), without(others, all)...)
}
