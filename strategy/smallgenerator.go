package strategy

import (
	"context"

	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// SmallGenerator is the key of the model of Roles.Small in Roles.Models.
const SmallGenerator = "generator_small"

// A writer is the generator of a first draft.
type writer struct {
	role  role.Generator
	model string // the model that it asks now, for the record
	name  string // display name
	small bool   // it is the small generator
}

// writerFor returns the writer of the first draft. It is the small generator, if there is one and
// the router calls the question simple. The large generator writes if there was a draft before, the
// question has several parts or there is advice.
func (e Env) writerFor(ctx context.Context, s run.Scope, in role.GenerateInput, notes *noteList, last *checkedDraft) (writer, error) {
	large := writer{role: e.Roles.Generator, model: e.Roles.Models[role.GeneratorRole], name: e.writer()}
	hasSmall := e.Began[SmallGenerator] != ""
	isFirstDraft := last.from == "" && len(in.Advice) == 0
	if !hasSmall || !isFirstDraft || len(in.Parts) != 1 {
		return large, nil
	}
	route, err := e.route(ctx, s, notes)
	if stopOf(err) != "" {
		return large, nil // which will run out of room as well and report it
	}
	if err != nil {
		return writer{}, err
	}
	if route.Complexity != role.Simple {
		return large, nil
	}
	small := writer{role: e.Roles.Small, model: e.Roles.Models[SmallGenerator], name: e.Began[SmallGenerator], small: true}
	if small.role == nil { // if a resumed run has no small one, the large one writes
		small.role, small.model = large.role, large.model
	}
	return small, nil
}

// needsLargeModel reports whether the large generator should rewrite a draft of the small one: no
// claim is supported, the draft is unusable, or it reports an open point.
func (w checkedDraft) needsLargeModel() bool {
	incomplete := w.draft.Failure != "" || len(w.draft.Open) > 0 || len(w.supported()) == 0
	return w.wasVerified() && incomplete
}
