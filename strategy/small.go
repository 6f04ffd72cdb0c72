package strategy

import (
	"context"

	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// SmallGenerator is what Roles.Models calls the model of Roles.Small.
const SmallGenerator = "generator_small"

// A writer is who writes a first draft.
type writer struct {
	role  role.Generator
	model string // that it asks today, for the record
	name  string // as people know it
	small bool   // the large one has not been asked
}

// writerFor says who writes the first draft: the small generator, where there is one and
// the router calls the question simple. What was written before and did not do, what is
// written for several parts, and what comes with advice are the large one's.
func (e Env) writerFor(ctx context.Context, s run.Scope, in role.GenerateInput, said *notes, last *checkedDraft) (writer, error) {
	large := writer{role: e.Roles.Generator, model: e.Roles.Models[role.GeneratorRole], name: e.writer()}
	if e.Began[SmallGenerator] == "" || e.Roles.Router == nil || len(in.Parts) != 1 || len(in.Advice) > 0 || last.from != "" {
		return large, nil
	}
	route, err := e.route(ctx, s, said)
	if stopOf(err) != "" {
		return large, nil // which has no room either, and says so
	}
	if err != nil {
		return writer{}, err
	}
	if route.Complexity != role.Simple {
		return large, nil
	}
	small := writer{role: e.Roles.Small, model: e.Roles.Models[SmallGenerator], name: e.Began[SmallGenerator], small: true}
	if small.role == nil { // the run goes on where there is none: the large one writes in its place
		small.role, small.model = large.role, large.model
	}
	return small, nil
}

// poor reports whether a draft of the small generator leaves something to the large one:
// nothing of it stands, it could not be used, or it says itself that something is open.
func (w checkedDraft) poor() bool {
	return w.readable && failures(w.checked) == 0 && (w.draft.Failure != "" || len(w.draft.Open) > 0 || len(w.supported()) == 0)
}
