package strategy

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// Auto tries the floor first: a question that is not plainly in several parts is
// looked up once, as Static does, and answered if that suffices. Otherwise it
// goes on as Corrective does, without repeating the search.
func Auto(ctx context.Context, s run.Scope, env Env) (assay.Answer, error) {
	env.Limits = env.Limits.withDefaults()
	plan, err := env.plan(ctx, s)
	if stop := stopOf(err); stop != "" {
		return notFound("auto", env.Question, []finding{{question: env.Question, stop: stop}}), nil
	}
	if err != nil {
		return assay.Answer{}, err
	}
	if plan.Shape != role.Single {
		return env.correct(ctx, s.Sub("corrective", 0), plan, nil)
	}

	f, err := env.lookOnce(ctx, s, env.Question)
	if err != nil {
		return assay.Answer{}, err
	}
	if f.grade.Verdict == assay.Sufficient {
		answer, ungrounded, err := env.finish(ctx, s.Sub("finish", 0), "static", []finding{f})
		if err != nil || len(ungrounded) == 0 {
			return answer, err
		}
	}
	return env.correct(ctx, s.Sub("corrective", 0), plan, &f)
}
