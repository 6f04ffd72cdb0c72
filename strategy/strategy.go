// Package strategy decides how a question is answered. Each strategy is one file: an ordinary
// function over a run and a Spec that describes it. It plans, searches, grades and writes
// through the roles it is given, makes every effect a step of the run, and ends in the same
// finish, which cuts the draft into claims, verifies and cites them, and decides the status.
package strategy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A Func answers one question. It reads clocks, random sources and map orders only through the
// run, so that a replay takes the same path. It does not set Run, Usage and ElapsedMS of the
// answer. A question that cannot be answered is an answer with that status. An error means that
// the run could not go on: it was cancelled, its journal cannot be written, or its filter is
// invalid. The result is that of Env.Finish or of another Func, whose status and claims it keeps;
// the run of any other fails with assay.ErrInvalid.
type Func func(ctx context.Context, s run.Scope, env Env) (Result, error)

// plan asks the planner. If the planner fails, the plan is the question itself, and the plan and
// the notes record the failure.
func (e Env) plan(ctx context.Context, s run.Scope) (role.Plan, noteList, error) {
	step := run.Step{Name: "plan", Kind: assay.StepPlan, Model: e.Roles.Models[role.PlannerRole]}
	p, err := run.Group(ctx, s, step, e.Question, func(ctx context.Context, s run.Scope, question string) (role.Plan, error) {
		p, err := e.Roles.Planner.Plan(ctx, e.caller(s, searchShare), question)
		if role.Ends(ctx, err) {
			return role.Plan{}, err
		}
		switch {
		case err != nil:
			p.Failure = err.Error()
		case p.Failure == "":
			p.Failure = unplanned(p)
		}
		if p.Failure != "" {
			p.Shape, p.SubQuestions = role.Single, []role.SubQuestion{{Text: question}}
		}
		return p, nil
	})
	var notes noteList
	notes.outcome(role.PlannerRole, p.Outcome)
	for i := range p.SubQuestions {
		p.SubQuestions[i].Text = visible.Line(p.SubQuestions[i].Text)
	}
	p.SubQuestions = withoutRepeats(p.SubQuestions)
	return p, notes, err
}

// withoutRepeats drops sub-questions that repeat an earlier one with the same filter, and redirects
// references to them to the earlier one. Sub-questions that name others by number are returned
// unchanged.
func withoutRepeats(subs []role.SubQuestion) []role.SubQuestion {
	if slices.ContainsFunc(subs, hasSlots) {
		return subs
	}
	at := make([]int, len(subs)) // the new index of each
	first := map[searchKey]int{}
	var out []role.SubQuestion
	for i, sub := range subs {
		sub.Needs = slices.Clone(sub.Needs)
		for k, n := range sub.Needs {
			if n >= 0 && n < i {
				sub.Needs[k] = at[n]
			}
		}
		key := searchKeyOf(sub.Text, sub.Filter)
		if k, ok := first[key]; ok {
			at[i] = k
			continue
		}
		first[key], at[i] = len(out), len(out)
		out = append(out, sub)
	}
	return out
}

// unplanned returns why a plan is unusable, or "".
func unplanned(p role.Plan) string {
	if len(p.SubQuestions) == 0 {
		return "the plan is empty"
	}
	for i, sub := range p.SubQuestions {
		if visible.Line(sub.Text) == "" {
			return fmt.Sprintf("its sub-question %d is empty", i+1)
		}
		if len(sub.Text) > maxQuery {
			return fmt.Sprintf("its sub-question %d has %d bytes, more than a question may be", i+1, len(sub.Text))
		}
	}
	return ""
}

// maxQuery is the maximum length, in bytes, of a query from a role.
const maxQuery = 8 << 10

// searchInput is the recorded input of a search step: the query and the access rights it is
// searched with.
type searchInput struct {
	Query  assay.Query  `json:"query"`
	Access assay.Access `json:"access"`
}

// search makes one search. If the question spans several collections, it searches each of them and
// merges the results. The filter and the collections of q narrow the caller's own. A limit of 0
// means Limits.Candidates.
//
// Searching ends at three quarters of the run's wall time, so that time is left to write and
// verify. A search that starts or is still running later fails with assay.ErrDeadline.
func (e Env) search(ctx context.Context, s run.Scope, q assay.Query) (found assay.Results, err error) {
	itself := q.Text == e.Question && q.Filter.IsZero() && len(q.Collections) == 0
	if each := e.splitsFor(q); len(each) > 1 {
		found, err = e.searchEach(ctx, s, q, each)
	} else {
		found, err = e.searchOne(ctx, s, q)
	}
	found = e.keepChosenMeaning(found)
	if itself && err == nil && e.first != nil {
		e.first.record(s.Path(), found)
	}
	return found, err
}

// searchOne makes one search as one step. A search of the run with the same query is not repeated.
func (e Env) searchOne(ctx context.Context, s run.Scope, q assay.Query) (assay.Results, error) {
	q.Filter = assay.And(e.Filter, q.Filter)
	q.Text = lexical.Quiet(q.Text)
	if q.Collections = e.within(q.Collections); q.Limit == 0 {
		q.Limit = e.Limits.Candidates
	}
	q.Limit = max(q.Limit, e.Limits.Passages) // a search for few hits must return enough passages
	if q.VectorWeight == 0 {
		q.VectorWeight = e.Limits.VectorWeight
	}
	q.Unranked = q.Unranked || e.Limits.Unranked
	q.BM25 = q.BM25.Over(e.Limits.BM25)
	in := searchInput{Query: q, Access: e.Access}
	step := run.Step{Name: "search", Kind: assay.StepSearch, Model: e.Services}
	meter := llm.NewMeter(leftFor(s))
	meter.Further = s.Further(step.Name)
	return run.Do(ctx, s.Until(e.Limits.Wall*3/4), step, in, func(ctx context.Context, in searchInput) (assay.Results, assay.Usage, error) {
		return e.searches.once(ctx, in, meter, e.Retriever)
	})
}

// within returns those of the named collections that the caller allows. If there are none, it
// returns all of the caller's.
func (e Env) within(named []string) []string {
	if len(e.Collections) == 0 {
		return named
	}
	both := slices.DeleteFunc(slices.Clone(named), func(c string) bool { return !slices.Contains(e.Collections, c) })
	if len(both) == 0 {
		return e.Collections
	}
	return both
}

// leftFor returns the remaining budget of s for remote encoders and rerankers. In the result, -1
// means no budget and 0 means no limit. A search works without these services.
func leftFor(s run.Scope) assay.Usage {
	of := func(one assay.Usage) int {
		switch n := s.Affords(one); n {
		case 0:
			return -1 // no budget
		case math.MaxInt:
			return 0 // no limit
		default:
			return n
		}
	}
	return assay.Usage{
		Calls: of(assay.Usage{Calls: 1}), InputTokens: of(assay.Usage{InputTokens: 1}), CostMicros: int64(of(assay.Usage{CostMicros: 1})),
	}
}

// grade asks the grader. If the grader fails, the evidence is insufficient.
func (e Env) grade(ctx context.Context, s run.Scope, sq subQuestion) (role.Grade, error) {
	in := role.GradeInput{
		Question: sq.question,
		Hits:     sq.hits[:min(len(sq.hits), e.Limits.Candidates)],
		Terms:    sq.terms,
		Tried:    sq.gradedQueries(),
		Floor:    e.Limits.Floor,
	}
	if onTheWay := e.steps && len(sq.neededBy) > 0; onTheWay {
		in.Question = asQuestion(sq.question)
	} else {
		in.MinAnswerability = e.Limits.MinAnswerability
		if e.steps && sq.question != e.Question {
			in.Tried = append([]string{e.Question}, in.Tried...) // the last step is another search for the question
		}
	}
	step := run.Step{Name: "grade", Kind: assay.StepGrade, Model: e.Roles.Models[role.GraderRole]}
	return run.Group(ctx, s, step, in, func(ctx context.Context, s run.Scope, in role.GradeInput) (role.Grade, error) {
		g, err := e.Roles.Grader.Grade(ctx, e.caller(s, searchShare), in)
		if role.Ends(ctx, err) {
			return role.Grade{}, err
		}
		if err != nil {
			reason := "the grader failed: " + err.Error()
			g = role.Grade{Verdict: assay.Insufficient, Missing: []string{in.Question}, Reason: reason, Outcome: role.Outcome{Failure: err.Error()}}
		}
		return g, nil
	})
}

// caller returns the caller for the job of one role. The job is the group whose scope is s, and it
// may take the given share of the run's remaining time.
func (e Env) caller(s run.Scope, share float64) role.Caller {
	return &caller{scope: s, stream: e.Stream, share: share}
}

// stopOf returns why the run must stop searching if err reports an exhausted budget, otherwise "".
func stopOf(err error) assay.Stop {
	if stop, ok := run.StopReason(err); ok {
		return stop
	}
	if errors.Is(err, assay.ErrBudget) { // a role's own error, which does not name the budget
		return assay.StopCallBudget
	}
	return ""
}
