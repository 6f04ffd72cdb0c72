package strategy

import (
	"context"

	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// agentSpec describes Agent.
var agentSpec = Spec{
	Name:      "agent",
	Summary:   "one prompt that plans, searches and reflects by itself, with the tools of react",
	Source:    "the single-agent loop of vendors' guides: Anthropic, \"Building effective agents\", 2024",
	Func:      Agent,
	Defaults:  "those of react",
	UsualCost: "as react; fewer where the first reply asks for all that is needed",
}

// Agent is the single-agent baseline: one model with one prompt, which tells it to plan, retrieve,
// analyse and reflect, with the tools and the limits of React. It uses no planner and no reflector.
// Its evidence is graded, and its answer verified, as in every strategy.
func Agent(ctx context.Context, s run.Scope, env Env) (Result, error) {
	return env.withDefaults().act(ctx, s, "agent", role.AllInOne)
}
