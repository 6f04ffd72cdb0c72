package strategy

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
	"github.com/assay-rag/assay/run"
)

// Auto tries the floor first: a question that is not plainly several is looked up
// once, as Static does but with the plan's filter, and answered if that suffices.
// Otherwise it goes on as Corrective does; for a question in one part, without
// repeating the search.
//
// A question that names a thing only by what is said of it, as in "the spouse of the
// director of Jump for Glory", is looked up once with a far walk over the entity graph.
// What that brings is answered from, with what is missing, and only where nothing of it is
// relevant the question is taken apart as Multihop does. All gold in ten passages, by the
// shape of the question, on hotpotqa-train100, musique-train100 and clapnq-answerable:
//
//	          static   far walk   multihop
//	hotpotqa    .99        .98        .99
//	musique     .76        .80        .83
//	clapnq      .99        .99        .99
//	steps         5          5    6 to 24
func Auto(ctx context.Context, s run.Scope, env Env) (assay.Answer, error) {
	env = env.withDefaults()
	plan, said, err := env.outline(ctx, s)
	if stop := stopOf(err); stop != "" {
		return unplannable("auto", env.Question, stop, err, said), nil
	}
	if err != nil {
		return assay.Answer{}, err
	}
	filter, common := filterOf(plan)
	if plan.Shape == role.Conjunction || !common {
		return env.correct(ctx, s.Sub("corrective", 0), plan, nil, said)
	}
	query := assay.Query{Text: env.Question, Filter: filter}
	if env.FloorFirst && plan.Shape == role.Chain {
		query.Walk = assay.WalkFar
	}
	f, err := env.lookFor(ctx, s, query)
	if err != nil {
		return assay.Answer{}, err
	}
	said.join(f.notes)
	f.notes = said
	if env.FloorFirst && plan.Shape == role.Chain {
		return env.autoChain(ctx, s, plan, f)
	}
	enough := f.sufficient()
	if plan.Shape == role.Comparison { // one passage has to speak of all that is compared
		enough = enough && f.holdTogether(plan, env.Limits)
	}
	if enough {
		found := []finding{f}
		answer, ungrounded, err := env.finish(ctx, s.Sub("finish", 0), "static", found)
		if err != nil || len(ungrounded) == 0 {
			return answer, err
		}
		f = found[0]
	}
	if plan.Shape == role.Single {
		return env.correct(ctx, s.Sub("corrective", 0), plan, &f, notes{})
	}
	// What was looked up is none of its parts, but was searched all the same.
	answer, err := env.correct(ctx, s.Sub("corrective", 0), plan, nil, f.notes)
	answer.Searched = append(slices.Clone(f.searched), answer.Searched...)
	answer.Iterations += f.iterations
	return answer, err
}

// outline returns the plan by which Auto decides. That of the local planner follows from
// the question alone and is no step: it is free, and the same in every replay.
func (e Env) outline(ctx context.Context, s run.Scope) (role.Plan, notes, error) {
	if !e.FloorFirst || e.Began[role.PlannerRole] != "" {
		return e.plan(ctx, s)
	}
	plan, err := local.Planner{}.Plan(ctx, nil, e.Question)
	return plan, notes{}, err
}

// autoChain answers a question that takes several steps from one search, where that
// brought something, else along its plan.
func (e Env) autoChain(ctx context.Context, s run.Scope, plan role.Plan, f finding) (assay.Answer, error) {
	if f.cutShort() || len(f.accepted(1)) > 0 {
		answer, _, err := e.finish(ctx, s.Sub("finish", 0), "static", []finding{f})
		return answer, err
	}
	parts, err := e.hops(ctx, s.Sub("multihop", 0), plan)
	if err != nil {
		return assay.Answer{}, err
	}
	answer, _, err := e.finish(ctx, s.Sub("finish", 0), "multihop", join(f, parts))
	return answer, err
}

// filterOf returns the filter that all sub-questions of a plan have; common is false
// where they have different ones.
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
