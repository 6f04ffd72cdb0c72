package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
)

// An AuditedRun is a run of any principal without the text of documents: there is no answer, and
// steps have neither input nor output.
type AuditedRun struct {
	RunSummary
	Principal assay.Principal `json:"principal"`
	Usage     assay.Usage     `json:"usage"`
	Trace     []AuditedStep   `json:"trace,omitempty"` // set by AuditRun
}

// An AuditedStep is a step without its input and output.
type AuditedStep struct {
	Ordinal int            `json:"ordinal"`
	Path    string         `json:"path"`
	Kind    assay.StepKind `json:"kind"`
	Model   string         `json:"model,omitempty"`
	Failed  bool           `json:"failed,omitempty"`
	Usage   assay.Usage    `json:"usage"`
	Started time.Time      `json:"started"`
	Elapsed time.Duration  `json:"elapsed_ns"`
}

// AuditRuns returns the runs of all principals, newest first, at most limit (0: all).
func (s *Session) AuditRuns(ctx context.Context, limit int) ([]AuditedRun, error) {
	return call(ctx, s, "AuditRuns", func(c *sessionCall) ([]AuditedRun, error) {
		runs, err := c.engine.runs.List(ctx, max(0, limit))
		all := []AuditedRun{}
		for _, r := range runs {
			all = append(all, auditedRun(r))
		}
		return all, err
	})
}

// AuditRun returns the run of any principal with its trace.
func (s *Session) AuditRun(ctx context.Context, id string) (AuditedRun, error) {
	return call(ctx, s, "AuditRun", func(c *sessionCall) (AuditedRun, error) {
		r, err := c.engine.runs.Run(ctx, id)
		if err != nil {
			return AuditedRun{}, err
		}
		records, err := c.engine.runs.Records(ctx, id)
		audited := auditedRun(r)
		for _, rec := range records {
			audited.Trace = append(audited.Trace, AuditedStep{
				Ordinal: rec.Ordinal, Path: rec.Path, Kind: rec.Kind, Model: rec.Model, Failed: rec.Error != nil,
				Usage: rec.Usage, Started: rec.Started, Elapsed: rec.Elapsed,
			})
		}
		return audited, err
	})
}

func auditedRun(r assay.Run) AuditedRun {
	a := AuditedRun{RunSummary: summaryOf(r), Principal: r.Principal}
	if r.Answer != nil {
		a.Usage = r.Answer.Usage
	}
	return a
}

// AuditCheckpoint opens a signed checkpoint of the tenant's log, for AuditProve: the signed note, or
// the newest published one if it is empty. key is the verifier key of its signature; empty: that of
// the log, which whoever can alter the store can alter. The error is assay.ErrNotFound if no
// checkpoint was published, and assay.ErrInvalid for a note or a key without a valid form, and for a
// note that the key has not signed.
func (s *Session) AuditCheckpoint(ctx context.Context, note, key string) (audit.Signed, error) {
	return call(ctx, s, "AuditCheckpoint", func(c *sessionCall) (audit.Signed, error) {
		return c.engine.openCheckpoint(ctx, note, key)
	})
}

func (e *Engine) openCheckpoint(ctx context.Context, note, key string) (audit.Signed, error) {
	registry := e.tenant.Registry()
	current, err := audit.CurrentKey(ctx, registry)
	if err != nil {
		return audit.Signed{}, err
	}
	if key = cmp.Or(key, current); key == "" {
		return audit.Signed{}, fmt.Errorf("no checkpoint was published yet: %w", assay.ErrNotFound)
	}
	v, err := audit.NewVerifier(key)
	if err != nil {
		return audit.Signed{}, fmt.Errorf("verifier key: %w: %w", assay.ErrInvalid, err)
	}
	if note != "" {
		signed, err := v.Open([]byte(note))
		if err != nil {
			return audit.Signed{}, fmt.Errorf("checkpoint: %w: %w", assay.ErrInvalid, err)
		}
		return signed, nil
	}
	published, err := audit.Published(ctx, registry)
	if err != nil {
		return audit.Signed{}, err
	}
	return newestSigned(v, published)
}

// newestSigned returns the largest of the checkpoints that a known key signed.
func newestSigned(v *audit.Verifier, notes [][]byte) (newest audit.Signed, err error) {
	found := false
	for _, note := range notes {
		signed, openErr := v.Open(note)
		if openErr != nil { // another key's
			continue
		}
		if !found || signed.Size > newest.Size {
			newest, found = signed, true
		}
	}
	if !found {
		return newest, fmt.Errorf("no published checkpoint is signed by this key: %w", assay.ErrNotFound)
	}
	return newest, nil
}
