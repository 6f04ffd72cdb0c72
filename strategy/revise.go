package strategy

import (
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// revise asks the planner whether the remaining sub-questions still fit what was found, once after
// each hop, and replaces them if they do not. Without remaining sub-questions, or if the run was cut
// short, it asks nothing. A revision that the budget refuses, that failed or that cannot be used
// keeps the plan.
func (t *planRun) revise(ctx context.Context, s run.Scope) error {
	in := t.revisable()
	cut := slices.ContainsFunc(t.hops, func(h hop) bool { return h.state.cutShort() })
	if len(in.Done) == 0 || len(in.Remaining) == 0 || cut {
		return nil
	}
	notes := &t.hops[0].state.notes
	out, err := runRole(ctx, s, t.env, job[role.RevisionInput, role.Revision]{
		task:     role.PlannerRole,
		do:       t.env.revision,
		cautious: role.Revision{Decision: role.Keep},
	}, in, notes)
	if stop := stopOf(err); stop != "" {
		notes.say(assay.NoteLimit, fmt.Sprintf("planner: the run had no budget left to revise the plan (%s)", stop))
		return nil
	}
	if err != nil || out.Decision != role.Replace {
		return err
	}
	notes.say(assay.NoteRole, remarkLine("planner: the plan was revised: "+out.Reason))
	t.replace(out.SubQuestions)
	return nil
}

// revision asks the planner. A replacement that cannot be searched is a failure, and keeps the plan.
func (e Env) revision(ctx context.Context, c role.Caller, in role.RevisionInput) (role.Revision, error) {
	out, err := e.Roles.Planner.Revise(ctx, c, in)
	if err != nil || out.Decision != role.Replace {
		return out, err
	}
	if problem := unplanned(role.Plan{SubQuestions: out.SubQuestions}); problem != "" && out.Failure == "" {
		out.Failure = "its revision cannot be searched: " + problem
	}
	if out.Failure != "" {
		out.Decision, out.SubQuestions = role.Keep, nil
	}
	for i := range out.SubQuestions {
		out.SubQuestions[i].Text = visible.Line(out.SubQuestions[i].Text)
	}
	return out, nil
}

// revisable returns the plan in the form in which the planner revises it, with the sub-questions
// that were searched before the others.
func (t *planRun) revisable() role.RevisionInput {
	in := role.RevisionInput{Question: t.env.Question, Done: []role.HopResult{}, Remaining: []role.SubQuestion{}}
	at := t.order()
	for i, h := range t.hops {
		if h.done {
			in.Done = append(in.Done, h.result(t.env.Question))
			continue
		}
		if i < t.env.Limits.Parts {
			in.Remaining = append(in.Remaining, moved(h.sub, at))
		}
	}
	return in
}

// order returns the index of each sub-question when those that were searched come first.
func (t *planRun) order() []int {
	at, n := make([]int, len(t.hops)), 0
	for _, done := range []bool{true, false} {
		for i, h := range t.hops {
			if h.done == done {
				at[i] = n
				n++
			}
		}
	}
	return at
}

// moved returns a sub-question whose needs and slots refer to the new indexes.
func moved(sub role.SubQuestion, at []int) role.SubQuestion {
	needs := make([]int, len(sub.Needs))
	for i, n := range sub.Needs {
		needs[i] = at[n]
		sub.Text = replaceSlot(sub.Text, slot(n), marked(at[n]))
	}
	for _, n := range needs {
		sub.Text = replaceSlot(sub.Text, marked(n), slot(n))
	}
	sub.Needs = needs
	return sub
}

// marked returns a slot in a form that no sub-question has, so that slots can be renumbered one
// after the other.
func marked(n int) string { return fmt.Sprintf("\x00%d\x00", n) }

// result returns what was found for a sub-question that was searched.
func (h *hop) result(question string) role.HopResult {
	r := role.HopResult{Question: h.state.question, Answers: []string{}, Verdict: h.state.grade.Verdict, Found: []string{}}
	for _, c := range h.state.names() {
		r.Answers = append(r.Answers, c.name)
	}
	for _, hit := range h.state.hits[:min(maxHistoryHits, len(h.state.hits))] {
		r.Found = append(r.Found, bestSentence(question, hit))
	}
	return r
}

// replace puts sub-questions in the place of those that were not searched. A step that was searched
// and is not needed any more remains a step, to the last one. A sub-question that was no step to
// another must still be answered.
func (t *planRun) replace(subs []role.SubQuestion) {
	at := t.order()
	left := slices.DeleteFunc(slices.Clone(t.hops), func(h hop) bool { return !h.done })
	steps := make([]bool, len(left))
	for i := range left {
		steps[i] = len(left[i].state.neededBy) > 0
		var serves []int
		for _, j := range left[i].state.neededBy {
			if t.hops[j].done {
				serves = append(serves, at[j])
			}
		}
		left[i].state.neededBy = serves
	}
	t.hops = left
	t.add(subs)
	for i := range left {
		h := &t.hops[i]
		if h.needed && len(h.names) == 0 {
			h.names = h.state.names()
		}
		if steps[i] && len(h.state.neededBy) == 0 {
			h.state.neededBy = []int{len(t.hops) - 1}
		}
	}
}
