package prompted

import (
	"context"

	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// Router says how much work a question is.
type Router struct{ Config }

// routeReply is what the model is asked for.
type routeReply struct {
	Reason     string          `json:"reason,omitempty"`
	Complexity role.Complexity `json:"complexity"`
}

var routeOutput = outputOf[routeReply]("route")

// Route implements role.Router.
func (r Router) Route(ctx context.Context, c role.Caller, question string) (role.Route, error) {
	reply, outcome, err := attempt(ctx, c, job[routeReply]{
		Config: r.Config, role: role.RouterRole, out: routeOutput(), maxTokens: 200,
		write: fitting(0, "", func(int) any { return map[string]any{"Question": question} }),
	})
	if err != nil {
		return role.Route{}, err
	}
	if outcome.Failure != "" {
		return role.Route{Complexity: role.Moderate, Reason: "the router failed: " + outcome.Failure, Outcome: outcome}, nil
	}
	return role.Route{Complexity: reply.Complexity, Reason: shorten(visible.Line(reply.Reason), maxPhrase), Outcome: outcome}, nil
}
