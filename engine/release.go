package engine

import (
	"context"

	"github.com/assay-rag/assay"
)

// release decides what the caller of a run gets of its answer, and in which state the run ends. It
// is called once per drive, before anything is stored, and fails closed: after an error the answer
// is not shown.
func (e *Engine) release(ctx context.Context, r assay.Run, req storedRequest, answer assay.Answer) (assay.Answer, assay.RunState, error) {
	canaries, err := e.watch(ctx)
	if err == nil && !canaries.tripped() { // a canary may have been added since the run began
		_, canaries, err = e.watched(ctx, r.ID)
	}
	if err != nil {
		return assay.Answer{}, assay.RunFailed, err
	}
	if answer, err = canaries.screenAnswer(ctx, answer); err != nil {
		return assay.Answer{}, assay.RunFailed, err
	}
	if answer.Reason == assay.ReasonWithheld {
		return answer, assay.RunDone, nil // not even reviewers see it
	}
	return e.gate(ctx, r, req, answer)
}
