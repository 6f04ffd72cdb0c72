package strategy

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A job describes a task for a role. It runs as a group of steps, one for each call of the role's
// model. The job and its step have the role's name.
type job[In, Out any] struct {
	role     string
	share    float64 // of the run's remaining time; 0: searchShare
	do       func(context.Context, role.Caller, In) (Out, error)
	outcome  func(*Out) *role.Outcome
	cautious Out
}

// hand runs a role's job as one step of kind StepRole. If the role fails, the result is the
// cautious output, with the failure recorded in it and in the notes.
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
