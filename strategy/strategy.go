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
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A Func answers one question. It reads clocks, random sources and map orders only through the
// run, so that a replay takes the same path. It does not set Run, Usage and ElapsedMS of the
// answer. A question that cannot be answered is an answer with that status. An error means that
// the run could not go on: it was cancelled, its journal cannot be written, or its filter is
// invalid.
type Func func(ctx context.Context, s run.Scope, env Env) (Result, error)

// plan asks the planner. A planner that fails leaves the question whole, and the
// plan says so, as do the notes.
func (e Env) plan(ctx context.Context, s run.Scope) (role.Plan, notes, error) {
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
	var said notes
	said.outcome(role.PlannerRole, p.Outcome)
	for i := range p.SubQuestions {
		p.SubQuestions[i].Text = visible.Line(p.SubQuestions[i].Text)
	}
	p.SubQuestions = withoutRepeats(p.SubQuestions)
	return p, said, err
}

// withoutRepeats returns sub-questions without those that ask the same as an earlier one, with
// the same filter. What needs a repeated one needs the first. Sub-questions that name others by
// number stay as they are.
func withoutRepeats(subs []role.SubQuestion) []role.SubQuestion {
	if slices.ContainsFunc(subs, slotted) {
		return subs
	}
	at := make([]int, len(subs)) // the new index of each
	first := map[try]int{}
	var out []role.SubQuestion
	for i, sub := range subs {
		sub.Needs = slices.Clone(sub.Needs)
		for k, n := range sub.Needs {
			if n >= 0 && n < i {
				sub.Needs[k] = at[n]
			}
		}
		key := tryOf(sub.Text, sub.Filter)
		if k, ok := first[key]; ok {
			at[i] = k
			continue
		}
		first[key], at[i] = len(out), len(out)
		out = append(out, sub)
	}
	return out
}

// unplanned says why a plan is none; empty: it is one.
func unplanned(p role.Plan) string {
	if len(p.SubQuestions) == 0 {
		return "it planned nothing"
	}
	for i, sub := range p.SubQuestions {
		if visible.Line(sub.Text) == "" {
			return fmt.Sprintf("its sub-question %d asks nothing", i+1)
		}
		if len(sub.Text) > maxQuery {
			return fmt.Sprintf("its sub-question %d has %d bytes, more than a question may have", i+1, len(sub.Text))
		}
	}
	return ""
}

// maxQuery is the length of the longest query, in bytes, that a role can have
// searched.
const maxQuery = 8 << 10

// searchInput is what a search step records: the query and whose eyes it is
// searched with.
type searchInput struct {
	Query  assay.Query  `json:"query"`
	Access assay.Access `json:"access"`
}

// search makes one search, or where the question spans several collections one in each,
// whose results it merges. Its filter narrows the caller's own, and so do its
// collections, where it names some; a limit of 0 is that of the candidates.
//
// Searching ends at three quarters of the run's wall time, so that what was
// found by then can still be written and verified: a search that starts or is
// still going on later is assay.ErrDeadline.
func (e Env) search(ctx context.Context, s run.Scope, q assay.Query) (found assay.Results, err error) {
	itself := q.Text == e.Question && q.Filter.IsZero() && len(q.Collections) == 0
	if each := e.spans(q); len(each) > 1 {
		found, err = e.searchEach(ctx, s, q, each)
	} else {
		found, err = e.searchOne(ctx, s, q)
	}
	found = e.ofChosen(found)
	if itself && err == nil && e.first != nil {
		e.first.saw(s.Path(), found)
	}
	return found, err
}

// searchOne makes one search as one step.
func (e Env) searchOne(ctx context.Context, s run.Scope, q assay.Query) (assay.Results, error) {
	q.Filter = assay.And(e.Filter, q.Filter)
	q.Text = surface.Quiet(q.Text)
	if q.Collections = e.within(q.Collections); q.Limit == 0 {
		q.Limit = e.Limits.Candidates
	}
	q.Limit = max(q.Limit, e.Limits.Passages) // else a search for few would hand on fewer than are asked for
	if q.VectorWeight == 0 {
		q.VectorWeight = e.Limits.VectorWeight
	}
	q.Unranked = q.Unranked || e.Limits.Unranked
	in := searchInput{Query: q, Access: e.Access}
	step := run.Step{Name: "search", Kind: assay.StepSearch, Model: e.Services}
	left := leftFor(s)
	return run.Do(ctx, s.Until(e.Limits.Wall*3/4), step, in, func(ctx context.Context, in searchInput) (assay.Results, assay.Usage, error) {
		meter := llm.NewMeter(left)
		found, err := e.Retriever.Retrieve(llm.WithMeter(ctx, meter), e.Access, in.Query)
		usage := meter.Spent()
		usage.Searches = 1
		return found, usage, err
	})
}

// within returns the collections to search of those named: they narrow the caller's,
// and where none of them is one of those it is the caller's that are searched.
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

// leftFor returns what a search in s may spend on encoders and rerankers that are
// services: what is left. It can do without them.
func leftFor(s run.Scope) assay.Usage {
	of := func(one assay.Usage) int {
		switch n := s.Affords(one); n {
		case 0:
			return -1 // nothing
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

// grade asks the grader. A grader that fails has not found the evidence
// sufficient.
func (e Env) grade(ctx context.Context, s run.Scope, f finding) (role.Grade, error) {
	in := role.GradeInput{
		Question: f.question,
		Hits:     f.hits[:min(len(f.hits), e.Limits.Candidates)],
		Terms:    f.terms,
		Tried:    f.tried(),
		Floor:    e.Limits.Floor,
	}
	if !e.steps || len(f.serves) == 0 {
		in.Held = e.Limits.Held
		if e.steps && f.question != e.Question {
			in.Tried = append([]string{e.Question}, in.Tried...) // the last step is a further search for what was asked
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

// caller returns the caller for one role's job, which is the group whose scope is s and
// which may take that share of the time that the run has left.
func (e Env) caller(s run.Scope, share float64) role.Caller {
	return &caller{scope: s, stream: e.Stream, share: share}
}

// stopOf returns why the run has to stop searching, when err says that it ran
// out of something, else "".
func stopOf(err error) assay.Stop {
	if stop, ok := run.StopReason(err); ok {
		return stop
	}
	if errors.Is(err, assay.ErrBudget) { // a role's own, which does not say of what
		return assay.StopCallBudget
	}
	return ""
}
