package strategy

import (
	"context"
	"maps"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
	"github.com/assay-rag/assay/run"
)

// salvage makes the best of a run that had no calls, tokens, money or time to search left
// before anything was written: the question is searched as it stands, the passages are
// graded without a model, and what they say of it is quoted and verified. Such an answer is incomplete,
// whatever the local roles think of it. Where nothing stands the answer is as it was.
func (e Env) salvage(ctx context.Context, s run.Scope, answer Result) (Result, error) {
	nothing := answer.verdicts.draft == draftNone && len(answer.Claims) == 0 && answer.AskBack == ""
	if len(e.Began) == 0 || e.Roles.Quoter == nil || !nothing || !spentBy(answer.Stop) {
		return answer, nil
	}
	e = e.withDefaults()
	e = e.verifyingQuotes()
	e = e.withoutWriter()
	e.Roles.Grader, e.Roles.Generator = local.Grader{Reader: e.Roles.Reader}, e.Roles.Quoter
	e.Roles.Models = maps.Clone(e.Roles.Models)
	delete(e.Roles.Models, role.GraderRole)
	delete(e.Roles.Models, role.GeneratorRole)
	e.Limits.Wall = e.Limits.Wall * 5 / 4 // in the time that is kept for writing, which nobody does now
	f, err := e.lookOnce(ctx, s, e.Question, assay.Filter{})
	if err != nil {
		return answer, err
	}
	f.stop = answer.Stop
	quoted, _, err := e.finish(ctx, s.Sub("finish", 0), answer.Strategy, []finding{f})
	if err != nil || len(quoted.Claims) == 0 {
		return answer, err
	}
	quoted.Stop = answer.Stop
	quoted.verdicts.draft, quoted.details.salvaged = draftSalvaged, answer.Stop
	quoted.Searched = append(slices.Clone(answer.Searched), quoted.Searched...)
	quoted.Iterations += answer.Iterations
	quoted.Missing = answer.Missing
	if len(quoted.Missing) == 0 {
		quoted.Missing = e.asking(e.Question)
	}
	quoted.Notes = withNotes(answer.Notes, quoted.Notes...)
	quoted.settle()
	return quoted, nil
}

// verifyingQuotes returns e for quotations that stand in for a draft: they are verified
// without a model.
func (e Env) verifyingQuotes() Env {
	if e.Roles.QuoteVerifier == nil {
		return e
	}
	e.Roles.Verifier, e.Roles.Models = e.Roles.QuoteVerifier, maps.Clone(e.Roles.Models)
	delete(e.Roles.Models, role.VerifierRole)
	return e
}
