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
	UsualCost: "an act and its calls with each step, without a plan and critiques of their own; fewer where the first reply asks for all that is needed",
}

// Agent is the single-agent baseline: one model with one prompt, which tells it to plan, retrieve,
// analyse and reflect, in the loop of React with its tools and limits. The plan and the reflection
// are part of the actor's replies and no steps of their own.
// Its evidence is graded, and its answer verified, as in every strategy.
func Agent(ctx context.Context, s run.Scope, env Env) (Result, error) {
	return env.withDefaults().act(ctx, s, "agent", role.AllInOne)
}
