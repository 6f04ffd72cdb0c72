package strategy

import (
	"context"

	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// Agent is the single-agent baseline: one model with one prompt, which tells it to
// plan, retrieve, analyse and reflect, over the tools that React has and within the same
// bounds. Planner and reflector are not asked; what the tools brought is graded and
// answered from as everywhere, for a baseline that checked itself would be no answer.
//
// Source: the single-agent loop that vendors' guides describe, as Anthropic, "Building
// effective agents", 2024.
func Agent(ctx context.Context, s run.Scope, env Env) (Result, error) {
	return env.withDefaults().act(ctx, s, "agent", role.AllInOne)
}
