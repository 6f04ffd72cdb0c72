package strategy

import (
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// byModel reports whether a model did a role when the run began. What it says beside claims
// is marked as its own.
func (e Env) byModel(name string) bool { return e.Began[name] != "" }

// lacking returns the gaps of a question that a role has named, as lines without links. The
// question itself, where a role repeats it, is not its words.
func (e Env) lacking(question string, texts []string, byModel bool) []assay.Gap {
	var gaps []assay.Gap
	for _, text := range texts {
		own := text == question || text == e.Question
		if line := asked(e.Question).line(text); line != "" {
			gaps = append(gaps, assay.Gap{Text: line, ByModel: byModel && !own})
		}
	}
	return gaps
}

// lacks returns what a finding lacks by its grade; where that names nothing, its question.
func (e Env) lacks(f finding) []assay.Gap {
	gaps := e.lacking(f.spoken(), without(f.grade.Missing, f.sides), e.byModel(role.GraderRole) && !f.grade.StoodIn)
	if gaps = append(gaps, e.lacking(f.spoken(), f.sides, false)...); len(gaps) > 0 {
		return gaps
	}
	return e.asking(f.spoken())
}

// asking returns the gap that a question is which is not answered.
func (e Env) asking(question string) []assay.Gap {
	return e.lacking(question, []string{question}, false)
}

// withGaps adds gaps to those that are there, each once.
func withGaps(gaps []assay.Gap, others ...assay.Gap) []assay.Gap {
	gaps = slices.Clone(gaps)
	for _, o := range others {
		if !slices.ContainsFunc(gaps, func(g assay.Gap) bool { return g.Text == o.Text }) {
			gaps = append(gaps, o)
		}
	}
	return gaps
}

// withNotes adds notes to those that are there, each once.
func withNotes(all []assay.Note, others ...assay.Note) []assay.Note {
	return append(slices.Clone(all), without(others, all)...)
}
