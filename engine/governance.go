package engine

import (
	"context"

	"github.com/assay-rag/assay/governance"
)

// GovernanceReport reports on all runs of the tenant and its audit log, whoever asked the questions.
// It has identifiers and numbers, and no text of a question, an answer or a document. Options.System is
// set here.
func (e *Engine) GovernanceReport(ctx context.Context, o governance.Options) (governance.Report, error) {
	system, err := e.systemOrNone(ctx)
	if err != nil {
		return governance.Report{}, err
	}
	o.System = system
	return governance.Collect(ctx, e.tenant, o)
}
