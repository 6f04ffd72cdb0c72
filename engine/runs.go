package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/assay-rag/assay"
)

// A RunSummary is a run in a list. It holds nothing that was read from documents:
// who lists runs has not been checked against those.
type RunSummary struct {
	ID       string         `json:"id"`
	Question string         `json:"question"`
	State    assay.RunState `json:"state"`
	Status   assay.Status   `json:"status,omitempty"` // of its answer; empty: it has none
	Stop     assay.Stop     `json:"stop,omitempty"`
	Cached   string         `json:"cached,omitempty"` // ID of the run whose answer it gave again
	Live     bool           `json:"live"`             // some process is driving it

	// Measuring is that of its request: an evaluation asked.
	Measuring bool      `json:"measuring,omitempty"`
	Steps     int       `json:"steps"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
}

// Runs lists the principal's runs, newest first, at most limit (0: all).
func (e *Engine) Runs(ctx context.Context, principal assay.Principal, limit int) ([]RunSummary, error) {
	if limit < 0 {
		return nil, fmt.Errorf("list at most %d runs: %w", limit, assay.ErrInvalid)
	}
	all, err := e.runs.List(ctx, 0)
	if err != nil {
		return nil, err
	}
	runs := []RunSummary{}
	for _, r := range all {
		if !owns(principal, r) {
			continue
		}
		if limit > 0 && len(runs) == limit {
			break
		}
		s := RunSummary{
			ID: r.ID, Question: r.Question, State: r.State, Live: r.Live, Steps: r.Steps, Created: r.Created, Updated: r.Updated,
		}
		var asked struct{ Measuring bool }
		_ = json.Unmarshal(r.Request, &asked) // of what cannot be read it is not known
		s.Measuring = asked.Measuring
		if r.Answer != nil {
			s.Status, s.Stop = r.Answer.Status, r.Answer.Stop
			if r.Answer.Cached != nil {
				s.Cached = r.Answer.Cached.Run
			}
		}
		runs = append(runs, s)
	}
	return runs, nil
}

// Run returns a run with its steps so far. A run that does not exist or is
// another principal's is assay.ErrNotFound; so is one that read a document which
// principal may not see any more.
func (e *Engine) Run(ctx context.Context, principal assay.Principal, id string) (assay.Run, []Step, error) {
	r, records, err := e.journal(ctx, principal, id)
	if err != nil {
		return assay.Run{}, nil, err
	}
	steps := make([]Step, len(records))
	for i, rec := range records {
		steps[i] = stepOf(rec)
	}
	return r, steps, nil
}

// DeleteRun removes a run with its journal; assay.ErrLeased while it is live.
func (e *Engine) DeleteRun(ctx context.Context, principal assay.Principal, id string) error {
	if _, err := e.run(ctx, principal, id); err != nil {
		return err
	}
	return e.runs.Delete(ctx, id)
}

// PrunedRuns counts what PruneRuns removed.
type PrunedRuns struct {
	Runs int `json:"runs"` // removed
	Live int `json:"live"` // left alone: a process is driving them

	// Versions is the number of replaced or deleted document versions that no run cites any
	// more. They are dropped, unless another process was writing documents.
	Versions int  `json:"versions"`
	Writing  bool `json:"writing,omitempty"` // another process was; the next ingest drops them
}

// PruneRuns removes the principal's runs that were created before a time, with their
// journals, then the replaced versions of documents that only these cited. With dry nothing
// is removed and Versions is 0. An error leaves the runs that are counted removed.
func (e *Engine) PruneRuns(ctx context.Context, principal assay.Principal, before time.Time, dry bool) (PrunedRuns, error) {
	var pruned PrunedRuns
	runs, err := e.Runs(ctx, principal, 0)
	if err != nil {
		return pruned, err
	}
	for _, r := range runs {
		if !r.Created.Before(before) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return pruned, err
		}
		if r.Live {
			pruned.Live++
			continue
		}
		if !dry {
			err = e.runs.Delete(ctx, r.ID)
		}
		switch {
		case err == nil:
			pruned.Runs++
		case errors.Is(err, assay.ErrLeased): // resumed since it was listed
			pruned.Live++
		case !errors.Is(err, assay.ErrNotFound): // another process removed it
			return pruned, err
		}
	}
	if dry || pruned.Runs == 0 {
		return pruned, nil
	}
	w, err := e.tenant.Writer(ctx)
	if errors.Is(err, assay.ErrLocked) {
		pruned.Writing = true
		return pruned, nil
	}
	if err != nil {
		return pruned, err
	}
	pruned.Versions, err = w.Prune(ctx)
	return pruned, errors.Join(err, w.Close())
}

// owns reports whether a run is the principal's.
func owns(principal assay.Principal, r assay.Run) bool {
	return principal.User != "" && principal.User == r.Principal.User
}

// run returns the principal's run of that ID.
func (e *Engine) run(ctx context.Context, principal assay.Principal, id string) (assay.Run, error) {
	r, err := e.runs.Run(ctx, id)
	if err == nil && !owns(principal, r) {
		err = assay.ErrNotFound
	}
	if errors.Is(err, assay.ErrNotFound) {
		return assay.Run{}, fmt.Errorf("run %q: %w", id, assay.ErrNotFound)
	}
	return r, err
}

// journal returns the principal's run with its records, whose hashes were
// checked, once the access to all that it read was checked again.
func (e *Engine) journal(ctx context.Context, principal assay.Principal, id string) (assay.Run, []assay.Record, error) {
	r, err := e.run(ctx, principal, id)
	if err != nil {
		return assay.Run{}, nil, err
	}
	records, err := e.runs.Records(ctx, id)
	if err != nil {
		return assay.Run{}, nil, fmt.Errorf("run %s: %w", id, err)
	}
	if err := e.checkAccess(ctx, principal.Access(), r, records); err != nil {
		return assay.Run{}, nil, fmt.Errorf("run %s: %w", id, err)
	}
	return r, records, nil
}

// checkAccess refuses a run of which principal may not see all documents that it
// read, see documentsOf, by their ACLs of today: of a document
// that was replaced the current one counts, of one that was deleted its last one;
// see store.Content. When that is not known the answer is no. The error does not
// name the document.
func (e *Engine) checkAccess(ctx context.Context, access assay.Access, r assay.Run, records []assay.Record) error {
	documents, err := documentsOf(r, records)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(documents)) {
		if err := e.checkDocument(ctx, access, id); err != nil {
			return fmt.Errorf("it read a document %w", err)
		}
	}
	return nil
}

// checkDocument says why access may not see a document.
func (e *Engine) checkDocument(ctx context.Context, access assay.Access, id string) error {
	acl, err := e.content.ACL(ctx, id)
	switch {
	case errors.Is(err, assay.ErrNotFound):
		return fmt.Errorf("that is gone, so that the right to see it cannot be checked: %w", assay.ErrNotFound)
	case err != nil:
		return fmt.Errorf("whose access cannot be checked: %w", err)
	case !access.Allows(acl):
		return fmt.Errorf("that you may not see any more: %w", assay.ErrNotFound)
	}
	return nil
}
