package strategy

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A job describes a task of a role. It runs as a group of steps, one for each call of the role's
// model. The job and its step have the task's name.
type job[In, Out any] struct {
	task     string
	share    float64 // of the run's remaining time; 0: searchShare
	do       func(context.Context, role.Caller, In) (Out, error)
	cautious Out
}

// modelOf returns the model of a task when the run began or was resumed, or "" for a local one. An
// answer is graded by several graders; the calls of their models name these.
func (e Env) modelOf(task string) string {
	if task == role.AnswerGraderTask {
		return ""
	}
	return e.Roles.Models[role.Of(task)]
}

// runRole runs a role's job as one step of kind StepRole. If the role fails, the result is the
// cautious output, with the failure recorded in it and in the notes.
func runRole[In, Out any](ctx context.Context, s run.Scope, e Env, j job[In, Out], in In, notes *noteList) (Out, error) {
	if j.share == 0 {
		j.share = searchShare
	}
	step := run.Step{Name: j.task, Kind: assay.StepRole, Model: e.modelOf(j.task)}
	out, err := run.Group(ctx, s, step, in, func(ctx context.Context, s run.Scope, in In) (Out, error) {
		out, err := j.do(ctx, e.caller(s, j.share), in)
		if role.Ends(ctx, err) {
			var none Out
			return none, err
		}
		if err != nil {
			out = j.cautious
			role.OutcomeOf(&out).Failure = err.Error()
		}
		return out, nil
	})
	if err == nil {
		notes.outcome(j.task, *role.OutcomeOf(&out))
	}
	return out, err
}
