package strategy

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// quoteFallback is the fallback for a run that exhausted its calls, tokens, money or search time, or
// was stopped, before a draft was written. It searches for the question itself, grades the passages without a
// model, quotes them and verifies the quotations. Such an answer is always incomplete. If no
// quotation is supported, quoteFallback returns the answer unchanged.
func (e Env) quoteFallback(ctx context.Context, s run.Scope, answer Result) (Result, error) {
	nothing := answer.verdicts.draft == draftNone && len(answer.Claims) == 0 && answer.AskBack == ""
	if len(e.Began) == 0 || e.Roles.Quoter == nil || !nothing || !spentBy(answer.Stop) {
		return answer, nil
	}
	e = e.withDefaults()
	e = e.withQuoteVerifier()
	e = e.withLocalGrader().withoutWriter()
	e.Roles.Generator = e.Roles.Quoter
	e.Limits.Wall = e.Limits.Wall * 5 / 4 // in the time reserved for writing, which is no longer needed
	s = s.Closing()
	sq, err := e.searchQuestion(ctx, s, e.Question, assay.Filter{})
	if err != nil {
		return answer, err
	}
	sq.stop = answer.Stop
	quoted, _, err := e.finish(ctx, s.Sub("finish", 0), answer.Strategy, []subQuestion{sq})
	if err != nil || len(quoted.Claims) == 0 {
		return answer, err
	}
	quoted.Stop = answer.Stop
	quoted.verdicts.draft, quoted.details.quotedAfter = draftQuoted, answer.Stop
	quoted.Searched = append(slices.Clone(answer.Searched), quoted.Searched...)
	quoted.Iterations += answer.Iterations
	quoted.Missing = answer.Missing
	if len(quoted.Missing) == 0 {
		quoted.Missing = e.questionGap(e.Question)
	}
	quoted.Notes = withNotes(answer.Notes, quoted.Notes...)
	quoted.updateStatus()
	return quoted, nil
}

// withQuoteVerifier returns e set up to verify the quotations of a fallback without a model.
func (e Env) withQuoteVerifier() Env {
	if e.Roles.QuoteVerifier == nil {
		return e
	}
	e.Roles.Verifier = e.Roles.QuoteVerifier
	return e.withoutModel(role.VerifierRole)
}
