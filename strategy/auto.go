package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// autoSpec describes Auto.
var autoSpec = Spec{
	Name:      "auto",
	Summary:   "searches once, and goes on as corrective or multihop only if the evidence does not suffice",
	Source:    "assay's own",
	Func:      Auto,
	Defaults:  "those of static and, where it goes on, of corrective or multihop; auto.escalate names another strategy to go on with",
	UsualCost: "as static if the first search suffices; else the steps of corrective or multihop besides",
}

// Auto searches once, like Static but with the plan's filter, and answers if the hits are
// sufficient. Otherwise it goes on like Corrective, without repeating the search for a question in
// one part. Questions that plainly ask for several things go to Corrective at once. Settings.Auto
// names another strategy to go on with.
//
// A question that describes a thing instead of naming it, as in "the spouse of the director of Jump
// for Glory", is searched once with a far walk over the entity graph, like Graph. If that is
// insufficient, the question is split as in Multihop, except that names contained in the hits are
// not searched for and only the likeliest name is tried. docs/strategies.md has figures.
func Auto(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	if name := env.Settings.Auto.Escalate; !slices.Contains(Escalations(), name) {
		return Result{}, fmt.Errorf("auto cannot go on with the strategy %q, want one of %s: %w", name, strings.Join(Escalations(), ", "), assay.ErrInvalid)
	}
	plan, notes, err := env.outline(ctx, s)
	if stop := stopOf(err); stop != "" {
		return env.unplannable("auto", stop, err, notes), nil
	}
	if err != nil {
		return Result{}, err
	}
	env = env.forPlan(plan)
	filter, common := filterOf(plan)
	if plan.Shape == role.Conjunction || !common {
		return env.escalate(ctx, s, plan, nil, notes)
	}
	query := assay.Query{Text: env.Question, Filter: filter}
	if plan.Shape == role.Chain {
		query.Walk = assay.WalkFar
	}
	sq, err := env.searchFor(ctx, s, query)
	if err != nil {
		return Result{}, err
	}
	notes.join(sq.notes)
	sq.notes = notes
	if plan.Shape == role.Chain {
		return env.autoChain(ctx, s, plan, sq)
	}
	enough := sq.sufficient()
	if plan.Shape == role.Comparison { // one passage must contain everything that is compared
		enough = enough && sq.contrastsBoth(plan, env.Limits)
	}
	if enough {
		found := []subQuestion{sq}
		answer, ungrounded, err := env.finish(ctx, s.Sub("finish", 0), "static", found)
		if err != nil || len(ungrounded) == 0 || env.Settings.Auto.Escalate == "static" {
			return answer, err
		}
		if plan.Shape != role.Single && len(answer.Claims) > 0 { // the parts would not keep what stands
			return env.redrive(ctx, s, found, answer, ungrounded)
		}
		sq = found[0]
	}
	return env.escalate(ctx, s, plan, &sq, noteList{})
}

// escalations are the strategies that Auto can go on with, the default first. Those without a Func
// use the first search; see escalate. The strategy managed is not among them, because it asks a
// service.
var escalations = []struct {
	name string
	ask  Func
}{
	{"corrective", nil}, {"static", nil}, {"multihop", Multihop}, {"graph", Graph}, {"adaptive", Adaptive}, {"advanced", Advanced},
	{"fusion", Fusion}, {"crag", CRAG}, {"self", Self}, {"judge", Judge}, {"reflect", Reflect}, {"react", React}, {"agent", Agent},
}

// Escalations names the strategies that Auto can go on with, the default first. With static it does
// not go on.
func Escalations() []string {
	names := make([]string, len(escalations))
	for i, x := range escalations {
		names[i] = x.name
	}
	return names
}

// escalate answers with the strategy that Settings.Auto names. First is the search for the question
// itself, or nil if there was none; notes holds the notes before it.
func (e Env) escalate(ctx context.Context, s run.Scope, plan role.Plan, first *subQuestion, notes noteList) (Result, error) {
	name := e.Settings.Auto.Escalate
	if first == nil && name == "static" {
		sq, err := e.searchQuestion(ctx, s, e.Question, assay.Filter{})
		if err != nil {
			return Result{}, err
		}
		notes.join(sq.notes)
		sq.notes = notes
		first = &sq
	}
	if name == "static" {
		answer, _, err := e.finish(ctx, s.Sub("finish", 0), name, []subQuestion{*first})
		return answer, err
	}
	if name == "corrective" && first != nil && plan.Shape == role.Single { // go on from the first search
		return e.correct(ctx, s.Sub(name, 0), plan, first, noteList{})
	}
	// The first search is not one of the strategy's own, but it is reported and counted.
	if first != nil {
		notes.join(first.notes)
	}
	var answer Result
	var err error
	if name == "corrective" {
		answer, err = e.correct(ctx, s.Sub(name, 0), plan, nil, notes)
	} else {
		answer, err = escalations[slices.Index(Escalations(), name)].ask(ctx, s.Sub(name, 0), e)
		answer.Notes = withNotes(notes.list(), answer.Notes...)
	}
	if first != nil {
		answer.Searched = append(slices.Clone(first.searched), answer.Searched...)
		answer.Iterations += first.iterations
	}
	return answer, err
}

// outline returns the plan by which Auto decides: Outline if the question is the one asked,
// otherwise the planner's.
func (e Env) outline(ctx context.Context, s run.Scope) (role.Plan, noteList, error) {
	if e.Outline != nil && (e.asked == "" || e.Question == e.asked) {
		return *e.Outline, noteList{}, nil
	}
	return e.plan(ctx, s)
}

// autoChain answers a question that takes several steps. It uses the first search f if that is
// sufficient, otherwise it follows the plan, starting with the names in f's hits.
func (e Env) autoChain(ctx context.Context, s run.Scope, plan role.Plan, sq subQuestion) (Result, error) {
	found, name := []subQuestion{sq}, "graph"
	insufficient := !sq.cutShort() && !sq.sufficient()
	if insufficient && e.Settings.Auto.Escalate != defaultSettings.Auto.Escalate {
		return e.escalate(ctx, s, plan, &sq, noteList{})
	}
	if insufficient {
		parts, err := e.hops(ctx, s.Sub("multihop", 0), plan, &sq)
		if err != nil {
			return Result{}, err
		}
		found, name = join(sq, parts), "multihop"
		if !slices.ContainsFunc(parts, subQuestion.sufficient) {
			if err := e.webRung(ctx, s, found[:1]); err != nil {
				return Result{}, err
			}
		}
	}
	answer, _, err := e.finish(ctx, s.Sub("finish", 0), name, found)
	return answer, err
}

// filterOf returns the filter that all sub-questions of a plan share; common is false if they
// differ.
func filterOf(plan role.Plan) (filter assay.Filter, common bool) {
	for i, sub := range plan.SubQuestions {
		if i == 0 {
			filter = sub.Filter
		} else if sub.Filter.String() != filter.String() {
			return assay.Filter{}, false
		}
	}
	return filter, true
}
