package prompted

import (
	"context"

	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// routeReply is the reply requested from the model.
type routeReply struct {
	Reason     string          `json:"reason,omitempty"`
	Complexity role.Complexity `json:"complexity"`
}

var routeOutput = outputOf[routeReply]("route")

// Route implements role.Router. It estimates how complex a question is.
func (r Planner) Route(ctx context.Context, c role.Caller, question string) (role.Route, error) {
	return typed[routeReply, role.Route]{
		job: job[routeReply]{
			Config: r.Config, task: role.RouterTask, out: routeOutput(), maxTokens: 200,
			write: fitting(0, "", func(int) any { return map[string]any{"Question": question} }),
		},
		local: ifAny(r.Local != nil, func() (role.Route, error) { return r.Local.Route(ctx, c, question) }),
		cautious: func(o role.Outcome) role.Route {
			return role.Route{Complexity: role.Moderate, Reason: "the router failed: " + o.Failure, Outcome: o}
		},
		finish: func(reply routeReply, outcome role.Outcome) role.Route {
			return role.Route{Complexity: reply.Complexity, Reason: shorten(visible.Line(reply.Reason), maxPhrase), Outcome: outcome}
		},
	}.do(ctx, c)
}
