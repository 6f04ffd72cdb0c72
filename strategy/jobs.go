package strategy

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A job is what a role is handed: a group of steps, in which each of its model's calls
// is one. Its name is the role's, and so is that of its step.
type job[In, Out any] struct {
	role     string
	share    float64 // of the time that the run has left; 0: searchShare
	do       func(context.Context, role.Caller, In) (Out, error)
	outcome  func(*Out) *role.Outcome
	cautious Out
}

// hand has a role do a job, as one step of kind StepRole. A role that fails has brought
// the cautious output, which says so, as do the notes.
func hand[In, Out any](ctx context.Context, s run.Scope, e Env, j job[In, Out], in In, said *notes) (Out, error) {
	if j.share == 0 {
		j.share = searchShare
	}
	step := run.Step{Name: j.role, Kind: assay.StepRole, Model: e.Roles.Models[j.role]}
	out, err := run.Group(ctx, s, step, in, func(ctx context.Context, s run.Scope, in In) (Out, error) {
		out, err := j.do(ctx, e.caller(s, j.share), in)
		if role.Ends(ctx, err) {
			var none Out
			return none, err
		}
		if err != nil {
			out = j.cautious
			j.outcome(&out).Failure = err.Error()
		}
		return out, nil
	})
	if err == nil {
		said.outcome(j.role, *j.outcome(&out))
	}
	return out, err
}
