package strategy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/role"
)

// A candidate is a name that may be what a description stands for, and how likely that
// is; scores are comparable within one list only.
type candidate struct {
	name  string
	chunk string // where it stands
	score float64
}

// maxFills is how many names are put into a sub-question, each in a search of its own.
const maxFills = 3

// A filling is a sub-question with names in the place of what was asked before.
type filling struct {
	text  string
	asked string // as it was asked, where another name may be meant; empty: as it is
	names []string
	score float64 // of the names, 1 for the likeliest
}

// An answered is a sub-question that another one needs.
type answered struct {
	question string      // as it was searched for
	asked    string      // as it was asked
	names    []candidate // that may be its answer, the likeliest first
}

// answeredBy returns what a finding says of the sub-question that it is for.
func (f *finding) answeredBy(names []candidate) answered {
	return answered{f.question, f.spoken(), names}
}

// spoken returns a finding's question as a reader is told of it: a name that is filled in
// and not certain is not said.
func (f *finding) spoken() string {
	if f.asked != "" {
		return f.asked
	}
	return f.question
}

// fillIn puts the names that were found for the sub-questions which sub needs into it:
// where it says "#2", for the second one, else after it. The likeliest come first, at
// most maxFills. Where there is no name, what was asked stays in its place.
func fillIn(sub role.SubQuestion, by func(n int) answered) []filling {
	list := []filling{{text: sub.Text, score: 1}}
	spoken, certain := sub.Text, true
	for _, n := range sub.Needs {
		from := by(n)
		spoken = put(spoken, slot(n), strings.TrimRight(from.asked, "?. "))
		certain = certain && len(from.names) < 2 && from.asked == from.question
		if len(from.names) == 0 {
			for i, f := range list {
				list[i].text = put(f.text, slot(n), strings.TrimRight(from.question, "?. "))
			}
			continue
		}
		var next []filling
		for _, f := range list {
			for _, c := range from.names {
				text := put(f.text, slot(n), c.name)
				if text == f.text && len(text)+len(c.name) < maxQuery {
					text += " " + c.name
				}
				next = append(next, filling{
					text: text, names: append(slices.Clone(f.names), c.name), score: f.score * c.score / from.names[0].score,
				})
			}
		}
		slices.SortStableFunc(next, func(a, b filling) int { return cmp.Compare(b.score, a.score) })
		list = next[:min(len(next), maxFills)]
	}
	if !certain {
		for i := range list {
			list[i].asked = spoken
		}
	}
	return list
}

// put returns a text with something in a slot; as it is, where that is too long to be
// searched for.
func put(text, slot, what string) string {
	if len(text)+strings.Count(text, slot)*len(what) > maxQuery {
		return text
	}
	return strings.ReplaceAll(text, slot, what)
}

// slot is how a sub-question refers to the answer of the one with index n.
func slot(n int) string { return "#" + strconv.Itoa(n+1) }

// slotted reports whether a sub-question has places for the answers that it needs.
func slotted(sub role.SubQuestion) bool {
	return slices.ContainsFunc(sub.Needs, func(n int) bool { return strings.Contains(sub.Text, slot(n)) })
}

// spelledOut returns the sub-questions of a plan with what is asked before in the place of
// its answer, as a reader is told of them.
func spelledOut(plan role.Plan) []string {
	texts := make([]string, len(plan.SubQuestions))
	for i, sub := range plan.SubQuestions {
		texts[i] = sub.Text
		for _, n := range earlier(sub.Needs, i) {
			texts[i] = put(texts[i], slot(n), strings.TrimRight(texts[n], "?. "))
		}
	}
	return texts
}

// fillings returns sub-question i of a plan with the names in it that were found for those
// that it needs, the likeliest first; none, where it has no places for them.
func fillings(plan role.Plan, found []finding, i int) []filling {
	sub := plan.SubQuestions[i]
	sub.Needs = earlier(sub.Needs, i)
	if !slotted(sub) {
		return nil
	}
	return fillIn(sub, func(n int) answered { return found[n].answeredBy(found[n].names()) })
}

// earlier returns those of the needs of sub-question i that come before it.
func earlier(needs []int, i int) []int {
	return slices.DeleteFunc(slices.Clone(needs), func(n int) bool { return n < 0 || n >= i })
}
