package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
)

// A ProofState says whether a run is what the audit log recorded.
type ProofState string

// The states of a proof.
const (
	ProofHolds       ProofState = "proven"      // the proof under the newest published checkpoint holds
	ProofUncovered   ProofState = "uncovered"   // the newest checkpoint is older than the last entry about the run
	ProofUnpublished ProofState = "unpublished" // no checkpoint was published
	ProofFails       ProofState = "failed"      // something was altered
)

// A ProofCheck is the result of checking the proof of a run. It was made with the verifier key that
// the store has for its log. Whoever can alter the store can alter that key, so only a check with a
// key and a checkpoint from elsewhere shows that the store was not altered.
type ProofCheck struct {
	State     ProofState `json:"state"`
	Size      int64      `json:"size,omitempty"`     // entries of the log under the checkpoint; 0: there is none
	Published time.Time  `json:"published,omitzero"` // when the checkpoint was kept
	Keys      []string   `json:"keys,omitempty"`     // verifier keys of its good signatures
	Entries   int        `json:"entries,omitempty"`  // of the log, about the run
	Withheld  bool       `json:"withheld,omitempty"` // the proof has no payloads, see Engine.Prove
	Erased    bool       `json:"erased,omitempty"`   // payloads were erased
	Problem   string     `json:"problem,omitempty"`  // the first thing that does not hold
}

// CheckProof proves a run of the principal under the newest published checkpoint, as Prove does, and
// checks the proof as its receiver would. The error is assay.ErrNotFound if the run does not exist or
// is another's.
func (s *Session) CheckProof(ctx context.Context, id string) (ProofCheck, error) {
	return call(ctx, s, "CheckProof", func(c *sessionCall) (ProofCheck, error) {
		own := c.principal
		own.Roles = nil
		if _, err := c.engine.run(ctx, own, id); err != nil && !errors.Is(err, assay.ErrDamaged) {
			return ProofCheck{}, err
		}
		return c.engine.checkProof(ctx, own, id)
	})
}

// AuditCheckProof is CheckProof for a run of any principal.
func (s *Session) AuditCheckProof(ctx context.Context, id string) (ProofCheck, error) {
	return call(ctx, s, "AuditCheckProof", func(c *sessionCall) (ProofCheck, error) {
		if _, err := c.engine.runs.Run(ctx, id); err != nil && !errors.Is(err, assay.ErrDamaged) {
			return ProofCheck{}, err
		}
		return c.engine.checkProof(ctx, c.acting, id)
	})
}

// checkProof checks the proof of a run that exists.
func (e *Engine) checkProof(ctx context.Context, principal assay.Principal, id string) (ProofCheck, error) {
	signed, err := e.newestCheckpoint(ctx)
	switch {
	case errors.Is(err, assay.ErrNotFound):
		return ProofCheck{State: ProofUnpublished}, nil
	case err != nil:
		return failedProof(ProofCheck{}, err)
	}
	check := ProofCheck{Size: signed.Size, Keys: signed.Keys}
	if check.Published, err = audit.PublishedAt(ctx, e.tenant.Registry(), signed.Size); err != nil {
		return check, err
	}
	if err := e.checkOrigin(ctx, signed); err != nil {
		return failedProof(check, err)
	}
	proof, err := e.Prove(ctx, principal, id, signed)
	if errors.Is(err, assay.ErrInvalid) && !errors.Is(err, assay.ErrDamaged) {
		check.State = ProofUncovered
		return check, nil
	}
	if err != nil {
		return failedProof(check, err)
	}
	return verified(check, proof)
}

// checkOrigin returns assay.ErrDamaged if a checkpoint in the store is of another log.
func (e *Engine) checkOrigin(ctx context.Context, signed audit.Signed) error {
	origin, err := audit.Origin(ctx, e.tenant.Audit())
	if err == nil && origin != signed.Origin {
		err = fmt.Errorf("the newest checkpoint is of the log %s, this is %s: %w", signed.Origin, origin, assay.ErrDamaged)
	}
	return err
}

// verified checks a proof by its bytes.
func verified(check ProofCheck, proof audit.Proof) (ProofCheck, error) {
	data, err := proof.Bytes()
	if err != nil {
		return check, err
	}
	v, err := audit.NewVerifier(check.Keys...)
	if err != nil {
		return check, err
	}
	account, err := audit.CheckProof(data, v)
	if err != nil {
		return failedProof(check, err)
	}
	check.State, check.Entries = ProofHolds, len(proof.Entries)
	check.Withheld, check.Erased = account.Withheld, account.Erased
	return check, nil
}

// failedProof returns a check that failed if err says that something was altered, and otherwise err.
func failedProof(check ProofCheck, err error) (ProofCheck, error) {
	if !errors.Is(err, assay.ErrDamaged) {
		return check, err
	}
	check.State, check.Problem = ProofFails, err.Error()
	return check, nil
}

// A PublishedCheckpoint is a signed checkpoint that is kept beside the audit log.
type PublishedCheckpoint struct {
	Origin    string    `json:"origin"`
	Size      int64     `json:"size"` // entries of the log under it
	Root      string    `json:"root"` // in base64
	Published time.Time `json:"published"`
	Keys      []string  `json:"keys"` // verifier keys of its good signatures
	Note      string    `json:"note"` // the signed note (C2SP tlog-checkpoint)

	// Problem is why the log does not continue the checkpoint; empty: it does.
	Problem string `json:"problem,omitempty"`
}

// AuditCheckpoints returns the published checkpoints, the largest first, and the number of entries of
// the log. Each is compared with the stored tree of the log; AuditCompare checks the entries too.
func (s *Session) AuditCheckpoints(ctx context.Context) (list []PublishedCheckpoint, size int64, err error) {
	_, err = call(ctx, s, "AuditCheckpoints", func(c *sessionCall) (_ struct{}, err error) {
		list, size, err = c.engine.checkpoints(ctx)
		return struct{}{}, err
	})
	return list, size, err
}

func (e *Engine) checkpoints(ctx context.Context) ([]PublishedCheckpoint, int64, error) {
	size, err := e.tenant.Audit().Size(ctx)
	if err != nil {
		return nil, 0, err
	}
	registry := e.tenant.Registry()
	notes, err := audit.Published(ctx, registry)
	if err != nil {
		return nil, 0, err
	}
	keys, err := audit.AnnouncedKeys(ctx, e.tenant.Audit())
	if errors.Is(err, assay.ErrDamaged) { // an entry was altered, so earlier keys are not known
		var current string
		current, err = audit.CurrentKey(ctx, registry)
		keys = []string{current}
	}
	if err != nil {
		return nil, 0, err
	}
	list := []PublishedCheckpoint{}
	if len(notes) == 0 {
		return list, size, nil
	}
	v, err := audit.NewVerifier(keys...)
	if err != nil {
		return nil, 0, err
	}
	for i := len(notes) - 1; i >= 0; i-- {
		one := e.published(ctx, v, notes[i])
		if one.Size > 0 {
			if one.Published, err = audit.PublishedAt(ctx, registry, one.Size); err != nil {
				return nil, 0, err
			}
		}
		list = append(list, one)
	}
	return list, size, nil
}

// published returns a checkpoint of the registry, compared with the log.
func (e *Engine) published(ctx context.Context, v *audit.Verifier, note []byte) PublishedCheckpoint {
	one := PublishedCheckpoint{Note: string(note)}
	signed, err := v.Open(note)
	if err != nil {
		one.Problem = err.Error()
		return one
	}
	one.Origin, one.Size, one.Root, one.Keys = signed.Origin, signed.Size, signed.Root.String(), signed.Keys
	if err := e.continues(ctx, signed.Checkpoint); err != nil {
		one.Problem = err.Error()
	}
	return one
}

// continues returns an error unless the log begins with the entries that a checkpoint fixes.
func (e *Engine) continues(ctx context.Context, c audit.Checkpoint) error {
	log := e.tenant.Audit()
	origin, err := audit.Origin(ctx, log)
	if err != nil {
		return err
	}
	if origin != c.Origin {
		return fmt.Errorf("it is of the log %s, this is %s: %w", c.Origin, origin, assay.ErrInvalid)
	}
	size, err := log.Size(ctx)
	if err != nil {
		return err
	}
	if c.Size > size {
		return fmt.Errorf("it has %d entries and the log %d, so the log was rolled back: %w", c.Size, size, assay.ErrDamaged)
	}
	root, err := audit.RootAt(ctx, log, c.Size)
	if err != nil {
		return err
	}
	if root != c.Root {
		return fmt.Errorf("the first %d entries of the log have another root, so one of them was altered: %w", c.Size, assay.ErrDamaged)
	}
	return nil
}

// AuditCompare opens a signed checkpoint that was kept elsewhere with the verifier key of its
// signature, and checks the whole log against it: the hashes of all entries, and that the log begins
// with those that the checkpoint fixes. An empty key is that of the log. What does not hold is the
// Problem of the result. The errors are those of AuditCheckpoint.
func (s *Session) AuditCompare(ctx context.Context, note, key string) (PublishedCheckpoint, error) {
	return call(ctx, s, "AuditCompare", func(c *sessionCall) (PublishedCheckpoint, error) {
		if note == "" {
			return PublishedCheckpoint{}, fmt.Errorf("there is no checkpoint: %w", assay.ErrInvalid)
		}
		signed, err := c.engine.openCheckpoint(ctx, note, key)
		if err != nil {
			return PublishedCheckpoint{}, err
		}
		one := PublishedCheckpoint{Origin: signed.Origin, Size: signed.Size, Root: signed.Root.String(), Keys: signed.Keys, Note: note}
		one.Problem, err = c.engine.compare(ctx, signed)
		return one, err
	})
}

// compare checks all entries of the log against a checkpoint, and returns the first thing that does
// not hold.
func (e *Engine) compare(ctx context.Context, signed audit.Signed) (problem string, err error) {
	in := audit.Input{Log: e.tenant.Audit(), Notes: [][]byte{signed.Note}, Keys: signed.Keys}
	if in.Origin, err = audit.Origin(ctx, e.tenant.Audit()); err != nil {
		return "", err
	}
	if in.Size, err = e.tenant.Audit().Size(ctx); err != nil {
		return "", err
	}
	report, err := audit.Verify(ctx, in)
	if err != nil || len(report.Findings) == 0 {
		return "", err
	}
	first := report.Findings[0]
	if first.Sequence > 0 {
		return fmt.Sprintf("entry %d, %s: %s", first.Sequence, first.Object, first.Problem), nil
	}
	return first.Object + ": " + first.Problem, nil
}
