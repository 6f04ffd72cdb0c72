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

// A RunSummary is a run in a list. It holds no text from documents, because listing runs does not
// check access to the documents that they read.
type RunSummary struct {
	ID       string         `json:"id"`
	Question string         `json:"question"`
	State    assay.RunState `json:"state"`
	Status   assay.Status   `json:"status,omitempty"` // status of the answer; empty: no answer
	Stop     assay.Stop     `json:"stop,omitempty"`
	Cached   string         `json:"cached,omitempty"` // ID of the run whose answer was reused
	Live     bool           `json:"live"`             // a process is driving it

	// Measuring is the Measuring field of the request: an evaluation asked.
	Measuring  bool        `json:"measuring,omitempty"`
	ForkedFrom *ForkedFrom `json:"forked_from,omitempty"` // nil: the run is no fork

	Steps   int       `json:"steps"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// Runs returns the principal's runs, newest first, at most limit (0: all).
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
		var asked struct {
			Measuring  bool
			ForkedFrom *ForkedFrom `json:"forked_from"`
		}
		_ = json.Unmarshal(r.Request, &asked) // unknown if the request cannot be decoded
		s.Measuring, s.ForkedFrom = asked.Measuring, asked.ForkedFrom
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

// Run returns a run and its steps so far. It returns assay.ErrNotFound if the run does not exist,
// belongs to another principal, or read a document that principal may no longer see.
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

// DeleteRun removes a run and its journal. It returns assay.ErrLeased while the run is live.
func (e *Engine) DeleteRun(ctx context.Context, principal assay.Principal, id string) error {
	if _, err := e.run(ctx, principal, id); err != nil {
		return err
	}
	return e.runs.Delete(ctx, id)
}

// PrunedRuns counts what PruneRuns removed.
type PrunedRuns struct {
	Runs int `json:"runs"` // removed
	Live int `json:"live"` // kept because a process is driving them

	// Versions is the number of dropped document versions: replaced or deleted ones that no
	// remaining run cites. It is 0 if another process was writing documents.
	Versions int  `json:"versions"`
	Writing  bool `json:"writing,omitempty"` // another process was writing; the next ingest drops the versions
}

// PruneRuns removes the principal's runs created before the given time, with their journals, and
// then the replaced versions of documents that only these runs cited. If dry is true it removes
// nothing and Versions is 0. If it returns an error, the runs it counted have been removed.
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
		case errors.Is(err, assay.ErrLeased): // resumed after it was listed
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

// owns reports whether a run belongs to principal.
func owns(principal assay.Principal, r assay.Run) bool {
	return principal.User != "" && principal.User == r.Principal.User
}

// run returns the principal's run with that ID.
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

// journal returns the principal's run and its records. It checks the hashes of the records, and
// again the access to all documents that the run read.
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

// checkAccess returns an error unless access allows all documents that a run read (see
// documentsOf). It uses the current ACL of each document: that of the current version if the
// document was replaced, and the last one if it was deleted (see store.Content). If the ACL is
// unknown, access is denied. The error does not name the document.
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

// checkDocument returns an error that states why access may not see a document; nil: it may.
func (e *Engine) checkDocument(ctx context.Context, access assay.Access, id string) error {
	acl, err := e.content.ACL(ctx, id)
	switch {
	case errors.Is(err, assay.ErrNotFound):
		return fmt.Errorf("that was deleted, so access to it cannot be checked: %w", assay.ErrNotFound)
	case err != nil:
		return fmt.Errorf("whose access cannot be checked: %w", err)
	case !access.Allows(acl):
		return fmt.Errorf("that you may no longer see: %w", assay.ErrNotFound)
	}
	return nil
}
