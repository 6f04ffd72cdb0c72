package strategy

import (
	"context"
	"slices"

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
	Defaults:  "those of static and, where it goes on, of corrective or multihop",
	UsualCost: "as static if the first search suffices; else the steps of corrective or multihop besides",
}

// Auto searches once, like Static but with the plan's filter, and answers if the hits are
// sufficient. Otherwise it goes on like Corrective, without repeating the search for a question in
// one part. Questions that plainly ask for several things go to Corrective at once.
//
// A question that describes a thing instead of naming it, as in "the spouse of the director of Jump
// for Glory", is searched once with a far walk over the entity graph, like Graph. If that is
// insufficient, the question is split as in Multihop, except that names contained in the hits are
// not searched for and only the likeliest name is tried. The table has the share of questions with
// all gold in ten passages, the match of the answer, and the steps, on hotpotqa-train100,
// musique-train100 and clapnq-answerable:
//
//	           static       multihop         auto
//	hotpotqa   .99 .37 5.0  .99 .46  9.1  .98 .38 5.7
//	musique    .76 .15 5.0  .84 .46 12.7  .83 .32 6.2
//	clapnq     .99 .06 5.0  .99 .05  6.5  .99 .06 5.3
func Auto(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	plan, said, err := env.outline(ctx, s)
	if stop := stopOf(err); stop != "" {
		return env.unplannable("auto", stop, err, said), nil
	}
	if err != nil {
		return Result{}, err
	}
	env = env.inSteps(plan)
	filter, common := filterOf(plan)
	if plan.Shape == role.Conjunction || !common {
		return env.correct(ctx, s.Sub("corrective", 0), plan, nil, said)
	}
	query := assay.Query{Text: env.Question, Filter: filter}
	if plan.Shape == role.Chain {
		query.Walk = assay.WalkFar
	}
	f, err := env.lookFor(ctx, s, query)
	if err != nil {
		return Result{}, err
	}
	said.join(f.notes)
	f.notes = said
	if plan.Shape == role.Chain {
		return env.autoChain(ctx, s, plan, f)
	}
	enough := f.sufficient()
	if plan.Shape == role.Comparison { // one passage must contain everything that is compared
		enough = enough && f.holdTogether(plan, env.Limits)
	}
	if enough {
		found := []finding{f}
		answer, ungrounded, err := env.finish(ctx, s.Sub("finish", 0), "static", found)
		if err != nil || len(ungrounded) == 0 {
			return answer, err
		}
		if plan.Shape != role.Single && len(answer.Claims) > 0 { // the parts would not keep what stands
			return env.redrive(ctx, s, found, answer, ungrounded)
		}
		f = found[0]
	}
	if plan.Shape == role.Single {
		return env.correct(ctx, s.Sub("corrective", 0), plan, &f, notes{})
	}
	// The first search is not one of the plan's parts, but it is reported and counted.
	answer, err := env.correct(ctx, s.Sub("corrective", 0), plan, nil, f.notes)
	answer.Searched = append(slices.Clone(f.searched), answer.Searched...)
	answer.Iterations += f.iterations
	return answer, err
}

// outline returns the plan by which Auto decides: Outline if the question is the one asked,
// otherwise the planner's.
func (e Env) outline(ctx context.Context, s run.Scope) (role.Plan, notes, error) {
	if e.Outline != nil && (e.asked == "" || e.Question == e.asked) {
		return *e.Outline, notes{}, nil
	}
	return e.plan(ctx, s)
}

// autoChain answers a question that takes several steps. It uses the first search f if that is
// sufficient, otherwise it follows the plan, starting with the names in f's hits.
func (e Env) autoChain(ctx context.Context, s run.Scope, plan role.Plan, f finding) (Result, error) {
	found, name := []finding{f}, "graph"
	if !f.cutShort() && !f.sufficient() {
		parts, err := e.hops(ctx, s.Sub("multihop", 0), plan, &f)
		if err != nil {
			return Result{}, err
		}
		found, name = join(f, parts), "multihop"
		if !slices.ContainsFunc(parts, finding.sufficient) {
			if err := e.lastRung(ctx, s, found[:1]); err != nil {
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
