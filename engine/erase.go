package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/store"
)

// DeleteRun removes a run and its journal. The audit log keeps the leaves of its records and the
// reason, which may be empty. It returns assay.ErrLeased while the run is live, assay.ErrSuspended while
// it waits for a review, and assay.ErrForbidden, which names the hold, if a hold covers it.
func (e *Engine) DeleteRun(ctx context.Context, principal assay.Principal, id, reason string) error {
	if _, err := e.run(ctx, principal, id); err != nil {
		return err
	}
	return e.runs.Delete(ctx, id, deletion(principal, reason))
}

// deletion is the act of deleting a run.
func deletion(principal assay.Principal, reason string) store.Act {
	return store.Act{Kind: store.KindRunDeleted, Actor: principal, Reason: reason}
}

// PrunedRuns counts what PruneRuns removed.
type PrunedRuns struct {
	Runs int `json:"runs"` // removed
	Live int `json:"live"` // kept because a process is driving them
	Held int `json:"held"` // kept because a hold covers them

	Waiting int `json:"waiting,omitempty"` // kept because they wait for a review

	// Holds say which holds kept runs, each once.
	Holds []string `json:"holds,omitempty"`

	// Versions is the number of dropped document versions: replaced or deleted ones that no
	// remaining run cites. It is 0 if another process was writing documents.
	Versions int  `json:"versions"`
	Writing  bool `json:"writing,omitempty"` // another process was writing; the next ingest drops the versions
}

// PruneRuns removes the principal's runs created before the given time, with their journals, and
// then the replaced versions of documents that only these runs cited. The audit log keeps the leaves
// of their records and the reason. Runs that a hold covers stay. If dry is true it removes nothing
// and Versions is 0. If it returns an error, the runs it counted have been removed.
func (e *Engine) PruneRuns(ctx context.Context, principal assay.Principal, before time.Time, reason string, dry bool) (PrunedRuns, error) {
	var pruned PrunedRuns
	all, err := e.runs.List(ctx, 0)
	if err != nil {
		return pruned, err
	}
	holds, err := e.holds(ctx)
	if err != nil {
		return pruned, err
	}
	for _, r := range all {
		if !owns(principal, r) || !r.Created.Before(before) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return pruned, err
		}
		err := holds.Run(r)
		if err == nil && r.Live {
			err = assay.ErrLeased
		}
		if err == nil && r.State == assay.RunSuspended {
			err = assay.ErrSuspended
		}
		if err == nil && !dry {
			err = e.runs.Delete(ctx, r.ID, deletion(principal, reason))
		}
		if err := pruned.count(err); err != nil {
			return pruned, err
		}
	}
	if dry || pruned.Runs == 0 {
		return pruned, nil
	}
	pruned.Versions, pruned.Writing, err = e.pruneVersions(ctx)
	return pruned, err
}

// count counts a run that was removed, if err is nil, or kept. It returns other errors.
func (p *PrunedRuns) count(err error) error {
	switch {
	case err == nil:
		p.Runs++
	case errors.Is(err, assay.ErrLeased): // perhaps resumed after it was listed
		p.Live++
	case errors.Is(err, assay.ErrSuspended):
		p.Waiting++
	case errors.Is(err, assay.ErrForbidden):
		p.Held++
		if text := holdOf(err); !slices.Contains(p.Holds, text) {
			p.Holds = append(p.Holds, text)
		}
	case !errors.Is(err, assay.ErrNotFound): // another process removed it
		return err
	}
	return nil
}

// holdOf returns the part of an error that names the hold.
func holdOf(err error) string {
	text := strings.TrimSuffix(err.Error(), ": "+assay.ErrForbidden.Error())
	if i := strings.Index(text, `hold "`); i >= 0 {
		return text[i:]
	}
	return text
}

// pruneVersions drops the replaced versions of documents that no run cites, unless another process is
// writing.
func (e *Engine) pruneVersions(ctx context.Context) (versions int, writing bool, err error) {
	w, err := e.tenant.Writer(ctx)
	if errors.Is(err, assay.ErrLocked) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	versions, err = w.Prune(ctx)
	return versions, false, errors.Join(err, w.Close())
}

// An Erasure is what EraseRuns did.
type Erasure struct {
	Runs []string `json:"runs"` // erased now or before

	// Related are other runs that hold text of the erased ones: they follow, fork or reuse them.
	// Those of other principals are listed for administrators only.
	Related []string `json:"related"`

	// Versions is the number of dropped document versions that only erased runs cited. Writing means
	// that another process was writing, and the next ingest drops them.
	Versions int  `json:"versions"`
	Writing  bool `json:"writing,omitempty"`

	// Residue says why erased bytes may still be in the files: another process reads an older state.
	// Erasing the same runs again removes them. Empty: they are gone.
	Residue string `json:"residue,omitempty"`
}

// EraseRuns erases what runs said: their questions, requests, answers, and the payloads of their
// records and acts. The leaves, times, kinds and usage stay in the audit log, with the reason, which
// is required. Then it drops the versions of documents that only these runs cited, 24 hours after
// they were replaced, and rewrites the files, so that the bytes are gone. With related, it erases
// Related too.
//
// A principal may erase its own runs, and an administrator those of others. The error is
// assay.ErrNotFound if a run does not exist or is another's, assay.ErrLeased while one is live,
// assay.ErrSuspended while one waits for a review, and assay.ErrForbidden if a hold covers one. Nothing is erased if any of them cannot be.
func (e *Engine) EraseRuns(ctx context.Context, principal assay.Principal, ids []string, reason string, related bool) (Erasure, error) {
	var done Erasure
	if strings.TrimSpace(reason) == "" {
		return done, fmt.Errorf("erase runs: a reason is missing: %w", assay.ErrInvalid)
	}
	all, err := e.runs.List(ctx, 0)
	if err != nil {
		return done, err
	}
	for _, id := range ids {
		i := slices.IndexFunc(all, func(r assay.Run) bool { return r.ID == id })
		if i < 0 || !owns(principal, all[i]) && !administers(principal) {
			return done, fmt.Errorf("run %q: %w", id, assay.ErrNotFound)
		}
	}
	if !administers(principal) { // the runs of others that were reused from the cache are theirs
		all = slices.DeleteFunc(all, func(r assay.Run) bool { return !owns(principal, r) })
	}
	done.Related = relatedRuns(all, ids)
	if related {
		ids, done.Related = append(slices.Clone(ids), done.Related...), []string{}
	}
	if err := e.checkErasable(ctx, all, ids); err != nil {
		return done, err
	}
	for _, id := range ids {
		if err := e.runs.Erase(ctx, id, store.Act{Kind: store.KindRunErased, Actor: principal, Reason: reason}); err != nil {
			return done, err
		}
		done.Runs = append(done.Runs, id)
	}
	if done.Versions, done.Writing, err = e.pruneVersions(ctx); err != nil {
		return done, err
	}
	done.Residue, err = e.scrub(ctx, done.Versions > 0)
	return done, err
}

// checkErasable returns an error if one of the runs is live, waits for a review, or is held.
func (e *Engine) checkErasable(ctx context.Context, all []assay.Run, ids []string) error {
	holds, err := e.holds(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if !slices.Contains(ids, r.ID) {
			continue
		}
		if r.Live {
			return fmt.Errorf("run %s: %w", r.ID, assay.ErrLeased)
		}
		if r.State == assay.RunSuspended {
			return fmt.Errorf("run %s waits for a review, which must be decided first: %w", r.ID, assay.ErrSuspended)
		}
		if err := holds.Run(r); err != nil {
			return fmt.Errorf("run %s: %w", r.ID, err)
		}
	}
	return nil
}

// scrub removes erased bytes from the files. residue says why that was not possible now.
func (e *Engine) scrub(ctx context.Context, content bool) (residue string, err error) {
	err = e.tenant.Scrub(ctx, content)
	if errors.Is(err, assay.ErrLocked) {
		return err.Error(), nil
	}
	return "", err
}

// relatedRuns returns the runs besides those named that hold text of them, directly or through others,
// in the order of all.
func relatedRuns(all []assay.Run, ids []string) []string {
	parents := map[string][]string{}
	for _, r := range all {
		var asked struct {
			Follows    string      `json:"follows"`
			ForkedFrom *ForkedFrom `json:"forked_from"`
		}
		if err := json.Unmarshal(r.Request, &asked); err == nil {
			parents[r.ID] = append(parents[r.ID], asked.Follows)
		}
		if asked.ForkedFrom != nil {
			parents[r.ID] = append(parents[r.ID], asked.ForkedFrom.Run)
		}
		if r.Answer != nil && r.Answer.Cached != nil {
			parents[r.ID] = append(parents[r.ID], r.Answer.Cached.Run)
		}
	}
	named := map[string]bool{}
	for _, id := range ids {
		named[id] = true
	}
	related := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, r := range all {
			from := func(id string) bool { return named[id] || related[id] }
			if !named[r.ID] && !related[r.ID] && slices.ContainsFunc(parents[r.ID], from) {
				related[r.ID], grown = true, true
			}
		}
	}
	list := []string{}
	for _, r := range all {
		if related[r.ID] {
			list = append(list, r.ID)
		}
	}
	return list
}

// HasRun reports whether there is a run with this ID that the principal may erase or hold.
func (e *Engine) HasRun(ctx context.Context, principal assay.Principal, id string) bool {
	r, err := e.runs.Run(ctx, id)
	return err == nil && (owns(principal, r) || administers(principal))
}

// administers reports whether the principal may change what belongs to others: it is the local one, or
// has the role of an administrator.
func administers(p assay.Principal) bool { return isPrivileged(p) }

// audits reports whether the principal may see the audit log of others' runs.
func audits(p assay.Principal) bool {
	return administers(p) || p.User != "" && slices.Contains(p.Roles, string(identity.Auditor))
}
