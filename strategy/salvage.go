package strategy

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
	"github.com/assay-rag/assay/run"
)

// salvage makes the best of a run that had no calls, tokens, money or time to search left
// before anything was written: the question is searched as it stands, the passages are graded without a
// model, and what they say of it is quoted and verified. Such an answer is incomplete,
// whatever the local roles think of it. Where nothing stands the answer is as it was.
func (e Env) salvage(ctx context.Context, s run.Scope, answer assay.Answer) (assay.Answer, error) {
	if !e.Salvage || len(e.Began) == 0 || e.Roles.Quoter == nil || len(answer.Claims) > 0 || answer.AskBack != "" || !spentBy(answer.Stop) {
		return answer, nil
	}
	e = e.withDefaults()
	e.Roles.Grader, e.Roles.Generator, e.Writer = local.Grader{}, e.Roles.Quoter, ""
	e.Roles.Models = maps.Clone(e.Roles.Models)
	delete(e.Roles.Models, role.GraderRole)
	delete(e.Roles.Models, role.GeneratorRole)
	e.Limits.Wall = e.Limits.Wall * 5 / 4 // in the time that is kept for writing, which nobody does now
	f, err := e.lookOnce(ctx, s, e.Question, assay.Filter{})
	if err != nil {
		return answer, err
	}
	if f.sufficient() {
		f.grade.Verdict = assay.Partly
	}
	f.stop = answer.Stop
	quoted, _, err := e.finish(ctx, s.Sub("finish", 0), answer.Strategy, []finding{f})
	if err != nil || len(quoted.Claims) == 0 {
		return answer, err
	}
	quoted.Status, quoted.Stop = assay.Incomplete, answer.Stop
	quoted.Justification = fmt.Sprintf("The run was cut short (%s) before anything was written; what stands here is quoted from passages that were found without a model.", answer.Stop)
	quoted.Searched = append(slices.Clone(answer.Searched), quoted.Searched...)
	quoted.Iterations += answer.Iterations
	quoted.Missing = answer.Missing
	if len(quoted.Missing) == 0 {
		quoted.Missing = []string{asked(e.Question).line(e.Question)}
	}
	quoted.Notes = append(slices.Clone(answer.Notes), without(quoted.Notes, answer.Notes)...)
	return quoted, nil
}

// spentBy reports whether a run stopped because something was spent that local roles need
// little of, or nothing.
func spentBy(stop assay.Stop) bool {
	return stop == assay.StopDeadline || stop == assay.StopCallBudget || stop == assay.StopTokenBudget || stop == assay.StopMoneyBudget
}
