package strategy

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// Auto tries the floor first: a question that is not plainly several is looked up
// once, as Static does but with the plan's filter, and answered if that suffices.
// Otherwise it goes on as Corrective does; for a question in one part, without
// repeating the search.
func Auto(ctx context.Context, s run.Scope, env Env) (assay.Answer, error) {
	env = env.withDefaults()
	plan, said, err := env.plan(ctx, s)
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

	f, err := env.lookOnce(ctx, s, env.Question, filter)
	if err != nil {
		return assay.Answer{}, err
	}
	said.join(f.notes)
	f.notes = said
	enough := f.grade.Verdict == assay.Sufficient
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
