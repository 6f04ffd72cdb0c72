package strategy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/role"
)

// A candidate is a name that a description may refer to, with its likelihood. Scores are comparable
// within one list only.
type candidate struct {
	name  string
	chunk string // the chunk that contains it
	score float64
}

// maxSubstitutions is the number of names that are tried in a sub-question, each in its own search.
const maxSubstitutions = 3

// substitution is a sub-question with names inserted for the answers that it needs.
type substitution struct {
	text      string
	displayed string // the question as asked if the name is uncertain; empty: same as text
	names     []string
	score     float64 // of the names, 1 for the likeliest
}

// neededQuestion is a sub-question that another one needs, with its possible answers.
type neededQuestion struct {
	question string      // as searched
	asked    string      // as asked
	names    []candidate // possible answers, the likeliest first
}

// withAnswers returns the sub-question with the given possible answers.
func (sq *subQuestion) withAnswers(names []candidate) neededQuestion {
	return neededQuestion{sq.question, sq.displayText(), names}
}

// displayText returns a sub-question for display. It omits an inserted name that is
// uncertain.
func (sq *subQuestion) displayText() string {
	if sq.displayed != "" {
		return sq.displayed
	}
	return sq.question
}

// substitute inserts the names found for the sub-questions that sub needs. A name replaces its
// slot, such as "#2" for the second sub-question, or is appended if there is no slot. The result
// has at most maxSubstitutions elements, the likeliest first. If a sub-question has no names, its
// own text is inserted.
func substitute(sub role.SubQuestion, by func(n int) neededQuestion) []substitution {
	list := []substitution{{text: sub.Text, score: 1}}
	spoken, certain := sub.Text, true
	for _, n := range sub.Needs {
		from := by(n)
		spoken = replaceSlot(spoken, slot(n), strings.TrimRight(from.asked, "?. "))
		certain = certain && isClear(from.names) && from.asked == from.question
		if len(from.names) == 0 {
			for i, f := range list {
				list[i].text = replaceSlot(f.text, slot(n), strings.TrimRight(from.question, "?. "))
			}
			continue
		}
		var next []substitution
		for _, f := range list {
			for _, c := range from.names {
				text := replaceSlot(f.text, slot(n), c.name)
				if text == f.text && len(text)+len(c.name) < maxQuery {
					text += " " + c.name
				}
				next = append(next, substitution{
					text: text, names: append(slices.Clone(f.names), c.name), score: f.score * c.score / from.names[0].score,
				})
			}
		}
		slices.SortStableFunc(next, func(a, b substitution) int { return cmp.Compare(b.score, a.score) })
		list = next[:min(len(next), maxSubstitutions)]
	}
	for i := range list {
		if !certain || i > 0 {
			list[i].displayed = spoken
		}
	}
	return list
}

// alsoLikely is the share of the likeliest name's score from which another name may be meant.
const alsoLikely = 0.3

// isClear reports whether the first of the names is clearly the likeliest.
func isClear(names []candidate) bool {
	return len(names) < 2 || names[1].score < alsoLikely*names[0].score
}

// asQuestion returns a sub-question in the form of a question. The local planner describes an
// entity on the way, as in "the founder of Brandvik Works", and readers answer questions.
func asQuestion(text string) string {
	first, _, _ := strings.Cut(strings.ToLower(text), " ")
	if slices.Contains([]string{"the", "a", "an"}, first) && !strings.HasSuffix(text, "?") {
		return "What is " + strings.TrimRight(text, ". ") + "?"
	}
	return text
}

// replaceSlot returns text with slot replaced, or text itself if the result would exceed maxQuery.
func replaceSlot(text, slot, what string) string {
	if len(text)+strings.Count(text, slot)*len(what) > maxQuery {
		return text
	}
	return strings.ReplaceAll(text, slot, what)
}

// slot returns the reference of a sub-question to the answer of the sub-question with index n.
func slot(n int) string { return "#" + strconv.Itoa(n+1) }

// hasSlots reports whether a sub-question has slots for the answers that it needs.
func hasSlots(sub role.SubQuestion) bool {
	return slices.ContainsFunc(sub.Needs, func(n int) bool { return strings.Contains(sub.Text, slot(n)) })
}

// displayQuestions returns the sub-questions of a plan for display, with earlier questions inserted
// in the slots for their answers.
func displayQuestions(plan role.Plan) []string {
	texts := make([]string, len(plan.SubQuestions))
	for i, sub := range plan.SubQuestions {
		texts[i] = sub.Text
		for _, n := range earlier(sub.Needs, i) {
			texts[i] = replaceSlot(texts[i], slot(n), strings.TrimRight(texts[n], "?. "))
		}
	}
	return texts
}

// substitutions returns sub-question i of a plan with the names found for those that it needs
// inserted, the likeliest first. It returns nil if the sub-question has no slots.
func substitutions(plan role.Plan, found []subQuestion, i int) []substitution {
	sub := plan.SubQuestions[i]
	sub.Needs = earlier(sub.Needs, i)
	if !hasSlots(sub) {
		return nil
	}
	return substitute(sub, func(n int) neededQuestion { return found[n].withAnswers(found[n].names()) })
}

// earlier returns the needs of sub-question i that come before it.
func earlier(needs []int, i int) []int {
	return slices.DeleteFunc(slices.Clone(needs), func(n int) bool { return n < 0 || n >= i })
}
