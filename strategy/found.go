package strategy

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// Found is what was found for a question or a part of it, with its grade. Strategies outside this
// package get it from Env.Look, extend it with Env.LookAgain, and end with Env.Finish.
type Found struct{ state subQuestion }

// Hits returns the hits of all searches, distinct, the most relevant first.
func (f *Found) Hits() []assay.Hit { return f.state.hits }

// Grade returns the grade of all hits.
func (f *Found) Grade() role.Grade { return f.state.grade }

// Sufficient reports whether the hits are sufficient to answer.
func (f *Found) Sufficient() bool { return f.state.sufficient() }

// Look searches for q.Text, the question or a part of it, and grades the hits. The filter and the
// collections of q narrow the caller's own. s must have no other step. An exhausted budget is no
// error: the hits then remain insufficient. An error means that the run cannot go on.
func (e Env) Look(ctx context.Context, s run.Scope, q assay.Query) (*Found, error) {
	sq, err := e.withDefaults().searchFor(ctx, s, q)
	if err != nil {
		return nil, err
	}
	return &Found{sq}, nil
}

// LookAgain makes another search for the same part of the question and grades all hits together. q
// may have other words. Its scope and errors are as for Look.
func (e Env) LookAgain(ctx context.Context, s run.Scope, f *Found, q assay.Query) error {
	return f.state.searchFurther(ctx, s, e.withDefaults(), q)
}

// Finish turns what was found into the answer, as every strategy of this package does. It numbers
// the evidence, has a draft written from it, cuts the draft into claims, verifies them against the
// bytes that they cite, and decides the status. name is the strategy's. It must be called once, in
// the scope of the strategy. Calling it with nothing found is assay.ErrInvalid.
func (e Env) Finish(ctx context.Context, s run.Scope, name string, found ...*Found) (Result, error) {
	if len(found) == 0 {
		return Result{}, fmt.Errorf("strategy %s: no search was made: %w", name, assay.ErrInvalid)
	}
	findings := make([]subQuestion, len(found))
	for i, f := range found {
		findings[i] = f.state
	}
	r, _, err := e.withDefaults().finish(ctx, s.Sub("finish", 0), name, findings)
	return r, err
}
