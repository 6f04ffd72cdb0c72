package prompted

import (
	"context"

	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// Router estimates how complex a question is.
type Router struct {
	Config
	Local role.Router // used if the provider fails; nil: the cautious output
}

// routeReply is the reply requested from the model.
type routeReply struct {
	Reason     string          `json:"reason,omitempty"`
	Complexity role.Complexity `json:"complexity"`
}

var routeOutput = outputOf[routeReply]("route")

// Route implements role.Router.
func (r Router) Route(ctx context.Context, c role.Caller, question string) (role.Route, error) {
	reply, outcome, err := ask(ctx, c, job[routeReply]{
		Config: r.Config, role: role.RouterRole, out: routeOutput(), maxTokens: 200,
		write: fitting(0, "", func(int) any { return map[string]any{"Question": question} }),
	})
	behind := stander[role.Route]{
		role:    role.RouterRole,
		outcome: func(r *role.Route) *role.Outcome { return &r.Outcome },
		cautious: func(o role.Outcome) role.Route {
			return role.Route{Complexity: role.Moderate, Reason: "the router failed: " + o.Failure, Outcome: o}
		},
	}
	if r.Local != nil {
		behind.local = func() (role.Route, error) { return r.Local.Route(ctx, c, question) }
	}
	if out, err, done := behind.instead(ctx, outcome, err); done {
		return out, err
	}
	return role.Route{Complexity: reply.Complexity, Reason: shorten(visible.Line(reply.Reason), maxPhrase), Outcome: outcome}, nil
}
