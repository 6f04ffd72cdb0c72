package engine

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/strategy"
)

// managedName names the service that answers questions by itself; empty: there is none.
func (e *Engine) managedName() string {
	if e.config.Managed == nil {
		return ""
	}
	return e.config.Managed.Name()
}

// checkManaged refuses, as assay.ErrInvalid, a question for a managed service that cannot
// be handed to one.
func (e *Engine) checkManaged(req Request) error {
	switch {
	case req.Strategy != "managed":
		return nil
	case req.Local:
		return fmt.Errorf("the strategy managed asks a service, and the question is to be answered locally: %w", assay.ErrInvalid)
	case e.config.Managed == nil:
		return fmt.Errorf("the strategy managed hands questions to a service, and none is configured; see managed: in docs/models.md: %w", assay.ErrInvalid)
	case req.Budget.CostMicros > 0:
		return fmt.Errorf("what %s costs is not known, so the cost of a run cannot be limited: limit calls instead: %w", e.config.Managed.Name(), assay.ErrInvalid)
	}
	return nil
}

// managedOf returns the service that a run was begun with; nil: it was begun with none.
func (e *Engine) managedOf(req stored) strategy.Managed {
	if req.Managed == "" {
		return nil
	}
	return begun{name: req.Managed, service: e.config.Managed}
}

// A begun service is the one that was configured when a run began. In a replay it is not
// asked.
type begun struct {
	name    string
	service strategy.Managed // of today; nil: none
}

// Name implements strategy.Managed.
func (b begun) Name() string { return b.name }

// Most implements strategy.Managed.
func (b begun) Most(question string) assay.Usage {
	if b.service == nil {
		return assay.Usage{Calls: 1}
	}
	return b.service.Most(question)
}

// Ask implements strategy.Managed.
func (b begun) Ask(ctx context.Context, access assay.Access, q strategy.ManagedQuestion) (strategy.ManagedAnswer, assay.Usage, error) {
	if b.service == nil || b.service.Name() != b.name {
		return strategy.ManagedAnswer{}, assay.Usage{}, fmt.Errorf("%s was configured when the run began, and is not any more: %w", b.name, assay.ErrUnavailable)
	}
	return b.service.Ask(ctx, access, q)
}

// managedStep is the name of the step that asks a managed service.
const managedStep = "managed"

// managedSummary says what a managed service brought.
func managedSummary(rec assay.Record) string {
	said := decode[strategy.ManagedAnswer](rec.Output)
	if said == nil {
		return rec.Model
	}
	return fmt.Sprintf("%s wrote %s and gives sources for %s of it, not verified yet", rec.Model, counted(len(said.Text), "byte"), counted(len(said.Parts), "part"))
}
