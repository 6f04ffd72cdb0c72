package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
)

// Prove returns the proof of a run under a signed checkpoint of the tenant's audit log; see
// audit.Prove. Its owner gets one, and so does an auditor or administrator. The proof has neither the
// payloads of its steps nor the answer (audit.Proof.Withheld) without access to all documents that the
// run read, and while its steps are not released: see Run. The zero checkpoint is the newest that was
// published. The error is assay.ErrNotFound if the run does not exist or is another's, and if there is
// no checkpoint.
func (e *Engine) Prove(ctx context.Context, principal assay.Principal, id string, c audit.Signed) (audit.Proof, error) {
	withhold, err := e.withholds(ctx, principal, id)
	if err == nil && c.Note == nil {
		c, err = e.newestCheckpoint(ctx)
	}
	if err != nil {
		return audit.Proof{}, err
	}
	p, err := audit.Prove(ctx, e.tenant.Audit(), id, c, withhold)
	if err != nil {
		return audit.Proof{}, fmt.Errorf("prove run %s: %w", id, err)
	}
	return p, nil
}

// newestCheckpoint returns the largest published checkpoint that the key of the log signed.
func (e *Engine) newestCheckpoint(ctx context.Context) (audit.Signed, error) {
	registry := e.tenant.Registry()
	key, err := audit.CurrentKey(ctx, registry)
	if err != nil {
		return audit.Signed{}, err
	}
	notes, err := audit.Published(ctx, registry)
	if err != nil {
		return audit.Signed{}, err
	}
	if key == "" || len(notes) == 0 {
		return audit.Signed{}, fmt.Errorf("no checkpoint of the audit log was published yet: %w", assay.ErrNotFound)
	}
	v, err := audit.NewVerifier(key)
	if err != nil {
		return audit.Signed{}, err
	}
	return v.Newest(notes)
}

// withholds reports whether the principal may not see what the run read and wrote. A deleted run, of which only
// an auditor gets a proof, has nothing to withhold but its acts.
func (e *Engine) withholds(ctx context.Context, principal assay.Principal, id string) (bool, error) {
	r, err := e.runs.Run(ctx, id)
	missing := errors.Is(err, assay.ErrNotFound)
	switch {
	case err != nil && !missing:
		return true, err
	case missing && !audits(principal), !missing && !owns(principal, r) && !audits(principal):
		return true, fmt.Errorf("run %q: %w", id, assay.ErrNotFound)
	case missing:
		return true, nil
	}
	if withheld, err := e.withheld(ctx, r); err != nil || withheld != "" {
		return true, err
	}
	records, err := e.runs.Records(ctx, id)
	if err != nil {
		return true, err
	}
	err = e.checkAccess(ctx, principal.Access(), r, records)
	if errors.Is(err, assay.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return true, err
	}
	return false, nil
}
