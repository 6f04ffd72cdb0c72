package engine

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/strategy"
)

// managedName returns the name of the managed service, which answers questions by itself; empty:
// none.
func (e *Engine) managedName() string {
	if e.config.Managed == nil {
		return ""
	}
	return e.config.Managed.Name()
}

// checkManaged returns assay.ErrInvalid if a request uses the strategy "managed" and cannot be
// sent to a managed service.
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

// managedOf returns the managed service that a run began with; nil: none.
func (e *Engine) managedOf(req storedRequest) strategy.Managed {
	if req.Managed == "" {
		return nil
	}
	return recordedManaged{name: req.Managed, service: e.config.Managed, screen: e.screenCall}
}

// recordedManaged is the managed service that was configured when a run began. It fails if another
// service, or none, is configured now. A replay does not call it.
type recordedManaged struct {
	name    string
	service strategy.Managed // the current one; nil: none
	screen  func(ctx context.Context, place string, texts ...string) error
}

// Name implements strategy.Managed.
func (b recordedManaged) Name() string { return b.name }

// Most implements strategy.Managed.
func (b recordedManaged) Most(question string) assay.Usage {
	if b.service == nil {
		return assay.Usage{Calls: 1}
	}
	return b.service.Most(question)
}

// Ask implements strategy.Managed.
func (b recordedManaged) Ask(ctx context.Context, access assay.Access, q strategy.ManagedQuestion) (strategy.ManagedAnswer, assay.Usage, error) {
	if b.service == nil || b.service.Name() != b.name {
		return strategy.ManagedAnswer{}, assay.Usage{}, fmt.Errorf("%s was configured when the run began, and no longer is: %w", b.name, assay.ErrUnavailable)
	}
	if err := b.screen(ctx, "managed", q.Text); err != nil {
		return strategy.ManagedAnswer{}, assay.Usage{}, err
	}
	return b.service.Ask(ctx, access, q)
}

// managedStep is the name of the step that asks a managed service.
const managedStep = "managed"

// managedSummary describes the answer of a managed service.
func managedSummary(rec assay.Record) string {
	said := decode[strategy.ManagedAnswer](rec.Output)
	if said == nil {
		return rec.Model
	}
	return fmt.Sprintf("%s wrote %s and gives sources for %s of it, not verified yet", rec.Model, counted(len(said.Text), "byte"), counted(len(said.Parts), "part"))
}
