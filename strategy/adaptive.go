package strategy

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// adaptiveSpec describes Adaptive.
var adaptiveSpec = Spec{
	Name:    "adaptive",
	Summary: "does as much work as the question needs: simple, moderate or complex",
	Source: "Jeong et al., \"Adaptive-RAG: Learning to Adapt Retrieval-Augmented Large Language Models through " +
		"Question Complexity\", 2024; there a simple question is not searched for at all, which a cited answer " +
		"cannot do without",
	Func: Adaptive,
	Defaults: "simple: 3 hits (adaptive.simple); moderate: 2 rounds (adaptive.rounds) of 5 hits (adaptive.moderate); " +
		"complex: 3 hits for each search of a sub-question (adaptive.complex)",
	UsualCost: "a route more than static for a simple question; a moderate one costs all steps of static, a query and " +
		"a grade of the answer again with each further round; a complex one costs those of multihop, and a draft and " +
		"its verification for each sub-question",
}

// Adaptive does as much work as a question needs. A simple question is searched once, for few hits.
// A moderate one is searched and answered, then searched again for what the answer lacks. A complex
// one is planned: its sub-questions are searched as in Multihop, with few hits each. Each gets an
// answer of its own, which is verified and kept in the answer's Review, and the generator puts these
// together. If the router fails, the question counts as moderate.
//
// The route is decided once. If the one search for a simple question is insufficient, Adaptive
// reports that status and searches no further, unlike Auto.
func Adaptive(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	const name = "adaptive"
	var notes noteList
	route, err := env.route(ctx, s, &notes)
	if stop := stopOf(err); stop != "" {
		return env.unplannable(name, stop, err, notes), nil
	}
	if err != nil {
		return Result{}, err
	}
	var found []subQuestion
	switch route.Complexity {
	case role.Simple:
		env.Limits.Candidates = env.Settings.Adaptive.Simple
		found, err = env.rounds(ctx, s, assay.Filter{}, 1)
	case role.Complex:
		env.Limits.Candidates = env.Settings.Adaptive.Complex
		found, err = env.plannedSubQuestions(ctx, s)
	default:
		env.Limits.Candidates = env.Settings.Adaptive.Moderate
		return env.moderate(ctx, s, name, notes)
	}
	if err != nil {
		return Result{}, err
	}
	found[0].notes.join(notes)
	if len(found) == 1 { // searched as one question
		answer, _, err := env.finish(ctx, s.Sub("finish", 0), name, found)
		return answer, err
	}
	answers, err := env.subAnswers(ctx, s, found)
	if err != nil {
		return Result{}, err
	}
	return env.synthesise(ctx, s, name, found, answers)
}

// moderate searches and answers in rounds until an answer is complete: its evidence is sufficient
// and the answer grader finds nothing missing. It returns the best answer of all rounds.
func (e Env) moderate(ctx context.Context, s run.Scope, name string, notes noteList) (Result, error) {
	found := []subQuestion{{question: e.Question, stop: assay.StopIterationLimit, notes: notes}}
	sq := &found[0]
	var best Result
	var t searchHistory
	query, outer := e.Question, s
	loop := e
	loop.inLoop = true
	complete := e
	if e.byModel(role.JudgeRole) { // it says what the answer lacks
		complete.Roles.Relevance = role.LowerOf(e.Roles.Judge, e.Roles.Relevance)
	}
	for round := range e.Settings.Adaptive.Rounds {
		s := s.Sub("round", round)
		if round > 0 {
			next, stop, err := e.nextQuery(ctx, s, e.Question, sq, t, append(slices.Clone(sq.grade.Missing), best.lacks...))
			if cut := stopOf(err); cut != "" {
				sq.endSearch(cut, err)
				break
			}
			if err != nil {
				return Result{}, err
			}
			if stop != "" {
				sq.stop = stop
				break
			}
			query = next
		}
		err := sq.inTime(ctx, s, e, func(s run.Scope) error { return sq.lookOn(ctx, s, e, query, &t) })
		if stop := stopOf(err); stop != "" {
			sq.endSearch(stop, err)
		} else if err != nil {
			return Result{}, err
		}
		answer, _, err := loop.finish(ctx, s.Sub("finish", 0), name, found)
		if err == nil {
			err = complete.relevance(ctx, s.Sub("complete", 0), &answer, &sq.notes)
		}
		if err != nil {
			return Result{}, err
		}
		if best.Status == "" || !betterThan(best, answer) {
			best = answer
		}
		switch {
		case sq.cutShort():
		case answer.Status == assay.Answered && len(answer.lacks) == 0:
			sq.stop = assay.StopSufficient
		case sq.noProgress.stalled():
			sq.stop = assay.StopNoProgress
		default:
			continue
		}
		break
	}
	if sq.gradeSkipped {
		var err error
		if best, _, err = e.finish(ctx, outer.Sub("finish", 0), name, found); err != nil {
			return Result{}, err
		}
	}
	return withSearchesOf(best, e.base(name, found), best.Notes), nil
}

// route asks the router how complex the question is. If the router fails, the route is Moderate.
func (e Env) route(ctx context.Context, s run.Scope, notes *noteList) (role.Route, error) {
	return runRole(ctx, s, e, job[string, role.Route]{
		task:     role.RouterTask,
		do:       e.Roles.Planner.Route,
		cautious: role.Route{Complexity: role.Moderate, Reason: "the router failed"},
	}, e.Question, notes)
}

// rounds searches for the question itself, then for its gaps, with at most n searches, all of them
// narrowed by filter, and within the time of a sub-question.
func (e Env) rounds(ctx context.Context, s run.Scope, filter assay.Filter, n int) ([]subQuestion, error) {
	sq := subQuestion{question: e.Question, filter: filter, stop: assay.StopIterationLimit}
	err := sq.inTime(ctx, s, e, func(s run.Scope) error { return sq.continueRounds(ctx, s, e, n) })
	if stop := stopOf(err); stop != "" {
		sq.endSearch(stop, err)
		err = nil
	}
	return []subQuestion{sq}, err
}

// continueRounds searches until the hits of f are sufficient, the querier knows no better query,
// two searches in a row made no progress, or n searches were made.
func (sq *subQuestion) continueRounds(ctx context.Context, s run.Scope, env Env, n int) error {
	var t searchHistory
	query := sq.question
	for round := range n {
		s := s.Sub("round", round)
		if round > 0 {
			next, stop, err := env.nextQuery(ctx, s, sq.question, sq, t, sq.grade.Missing)
			if err != nil {
				return err
			}
			if stop != "" {
				sq.stop = stop
				return nil
			}
			query = next
		}
		err := sq.lookOn(ctx, s, env, query, &t)
		switch {
		case err != nil:
			return err
		case sq.sufficient():
			sq.stop = assay.StopSufficient
			return nil
		case sq.noProgress.stalled():
			sq.stop = assay.StopNoProgress
			return nil
		}
	}
	return nil
}

// plannedSubQuestions plans the question and searches for its sub-questions, each after those that
// it needs. A question that the plan does not split is searched in rounds.
func (e Env) plannedSubQuestions(ctx context.Context, s run.Scope) ([]subQuestion, error) {
	plan, notes, err := e.plan(ctx, s)
	if stop := stopOf(err); stop != "" {
		sq := subQuestion{question: e.Question, notes: notes}
		sq.endSearch(stop, err)
		return []subQuestion{sq}, nil
	}
	if err != nil {
		return nil, err
	}
	if len(plan.SubQuestions) == 1 { // not split, so each search leads to the next
		found, err := e.rounds(ctx, s, plan.SubQuestions[0].Filter, e.Limits.Iterations)
		if err == nil {
			found[0].notes.join(notes)
		}
		return found, err
	}
	if plan.Shape != role.Chain {
		found, err := e.hops(ctx, s, plan, nil)
		if err != nil {
			return nil, err
		}
		found[0].notes.join(notes)
		return found, nil
	}
	e = e.forPlan(plan)
	whole, err := e.searchQuestion(ctx, s, e.Question, assay.Filter{}) // in case a name is not found
	if err != nil {
		return nil, err
	}
	whole.notes.join(notes)
	if whole.cutShort() {
		return []subQuestion{whole}, nil
	}
	parts, err := e.hops(ctx, s, plan, nil)
	return join(whole, parts), err
}
