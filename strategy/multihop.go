package strategy

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// multihopSpec describes Multihop.
var multihopSpec = Spec{
	Name:    "multihop",
	Summary: "finds what an answer is needed for first, and fills it into the next question",
	Source: "Press et al., \"Measuring and Narrowing the Compositionality Gap in Language Models\" (self-ask), 2022, " +
		"for questions that follow from answers; Trivedi et al., \"MuSiQue\", 2022, for their form; that several " +
		"names are tried is assay's",
	Func:     Multihop,
	Defaults: "5 hops (multihop.hops), 3 names for each",
	UsualCost: "a plan more than static, one grade and one to three searches for each sub-question, and a revision of " +
		"the plan after each hop but the last",
}

// Multihop searches for the question itself and along a plan. An entity that the question describes
// without naming it is searched for first, and its name is inserted in the next sub-question, as in
// "Who is the spouse of #1?" after "the director of Jump for Glory". Sub-questions that do not need
// each other are searched in parallel. The answers of earlier hops are read by the grader, a model
// or the reader. After each hop the planner may replace the remaining sub-questions if a result
// contradicts the plan. If the plan has no parts and the one search is insufficient, Multihop
// follows the answers that were read in its hits.
func Multihop(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	const name = "multihop"
	plan, notes, err := env.plan(ctx, s)
	if stop := stopOf(err); stop != "" {
		return env.unplannable(name, stop, err, notes), nil
	}
	if err != nil {
		return Result{}, err
	}
	env = env.forPlan(plan)
	env.revises = true
	whole, err := env.searchQuestion(ctx, s, env.Question, assay.Filter{})
	if err != nil {
		return Result{}, err
	}
	whole.notes.join(notes)
	var parts []subQuestion
	switch {
	case whole.cutShort():
	case plan.Shape != role.Single:
		parts, err = env.hops(ctx, s, plan, nil)
	case !whole.sufficient():
		parts, err = env.bridge(ctx, s.Sub("bridge", 0), whole)
	}
	if err != nil {
		return Result{}, err
	}
	found := join(whole, parts)
	answer, _, err := env.finish(ctx, s.Sub("finish", 0), name, found)
	return answer, err
}

// forPlan returns e set up for a plan. In a chain, the evidence of a step on the way need not
// contain an answer, so it is graded by the words that passages cover. The question itself and its
// last step must have evidence that contains the answer. Grammar takes many questions for chains
// that one passage answers, and of 150 questions of xquad-en whose answer was removed, six more
// were answered from the first step. With a fixed number of passages all hits are handed on, and no
// evidence has to contain the answer.
func (e Env) forPlan(plan role.Plan) Env {
	e.compares = plan.Shape == role.Comparison && e.Limits.Passages == 0
	if e.steps = plan.Shape == role.Chain; e.steps && e.Limits.Passages > 0 {
		e.Limits.MinAnswerability = 0
	}
	return e
}

// minAnswerability is the probability that the hits for a question in several steps hold its
// answer, below which the steps will not find it either. In hotpotqa-train100 and musique-train100
// it excludes 2 and 11 of a hundred questions with an answer, and 39 and 57 of those without one;
// in clapnq-answerable 2 and 82.
const minAnswerability = 0.15

// offTopic reports whether the hits answer another question, as far as that was judged: no step led
// to hits that are likely to hold the answer, or the documents lack one of the things compared.
func (e Env) offTopic(found []subQuestion) bool {
	judged, led, lacks := false, false, false
	for _, sq := range found {
		held := sq.grade.Answerability
		if held == nil {
			continue
		}
		if e.steps && sq.question == e.Question && *held < minAnswerability {
			return true
		}
		judged, led, lacks = true, led || len(sq.accepted(1)) > 0, lacks || !sq.sufficient()
	}
	return e.steps && judged && !led || e.compares && lacks
}

// join puts the sub-question for the whole question before those for its parts. Either can answer
// it: if the whole question has sufficient evidence, its parts need none, and if the last parts of
// the plan do, the whole question needs none.
func join(whole subQuestion, parts []subQuestion) []subQuestion {
	found := []subQuestion{whole}
	last := 0
	for i, sq := range parts {
		serves := []int{0}
		for _, j := range sq.neededBy {
			serves = append(serves, j+1)
		}
		if len(sq.neededBy) == 0 {
			last++
			found[0].neededBy = append(found[0].neededBy, i+1)
		}
		if sq.cutShort() && !found[0].sufficient() {
			found[0].stop, found[0].shortfall = sq.stop, sq.shortfall // why there is no better answer
		}
		sq.neededBy = serves
		found = append(found, sq)
	}
	if last != 1 { // one of several parts does not answer the question
		found[0].neededBy = nil
	}
	return found
}
