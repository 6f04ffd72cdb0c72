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
	"github.com/assay-rag/assay/store"
)

// holds returns the holds that count now.
func (e *Engine) holds(ctx context.Context) (store.Holds, error) {
	items, err := e.tenant.Registry().Items(ctx, store.HoldKind)
	if err != nil {
		return nil, err
	}
	return store.ReadHolds(items, e.config.Now()), nil
}

// Holds returns the holds, by name, including those that have ended. One that cannot be read holds
// everything.
func (e *Engine) Holds(ctx context.Context) ([]store.Hold, error) {
	items, err := e.tenant.Registry().Items(ctx, store.HoldKind)
	if err != nil {
		return nil, err
	}
	return store.ReadHolds(items, time.Time{}), nil
}

// AddHold adds a hold: from now on, nothing erases, deletes or prunes what it covers. The error is
// assay.ErrInvalid if there is one of that name, or it covers nothing or several things, and
// assay.ErrForbidden if the principal is no administrator.
func (e *Engine) AddHold(ctx context.Context, principal assay.Principal, h store.Hold) error {
	if err := mayAdminister(principal, "add a hold"); err != nil {
		return err
	}
	if err := h.Check(); err != nil {
		return err
	}
	value, err := json.Marshal(h)
	if err != nil {
		return err
	}
	act := store.Act{Kind: "hold.added", Subject: h.Name, Actor: principal, Reason: h.Reason}
	return e.tenant.Registry().Create(ctx, store.RegistryItem{Kind: store.HoldKind, Name: h.Name, Value: value}, act)
}

// RemoveHold removes a hold. The reason is required.
func (e *Engine) RemoveHold(ctx context.Context, principal assay.Principal, name, reason string) error {
	if err := mayAdminister(principal, "remove a hold"); err != nil {
		return err
	}
	if strings.TrimSpace(reason) == "" {
		return fmt.Errorf("remove hold %q: a reason is missing: %w", name, assay.ErrInvalid)
	}
	return e.tenant.Registry().Delete(ctx, store.HoldKind, name, store.Act{Kind: "hold.removed", Subject: name, Actor: principal, Reason: reason})
}

func mayAdminister(p assay.Principal, what string) error {
	if !administers(p) {
		return fmt.Errorf("%s: %w", what, assay.ErrForbidden)
	}
	return nil
}

// A RetentionPolicy is how long a kind of data is kept.
type RetentionPolicy struct {
	Kind string    `json:"kind"` // one of store.Retained
	Days int       `json:"days"`
	Set  time.Time `json:"set"`
}

// RetentionPolicies returns the tenant's policies by kind. Data of other kinds is kept until it is
// removed.
func (e *Engine) RetentionPolicies(ctx context.Context) ([]RetentionPolicy, error) {
	items, err := e.tenant.Registry().Items(ctx, store.RetentionKind)
	if err != nil {
		return nil, err
	}
	policies := []RetentionPolicy{}
	for _, item := range items {
		var r store.Retention
		if err := json.Unmarshal(item.Value, &r); err != nil || r.Days < 1 || !slices.Contains(store.Retained, item.Name) {
			return nil, fmt.Errorf("retention of %s cannot be read: %w", item.Name, assay.ErrDamaged)
		}
		policies = append(policies, RetentionPolicy{Kind: item.Name, Days: r.Days, Set: item.Updated})
	}
	return policies, nil
}

// SetRetention sets how many days a kind of data is kept, 1 to store.MaxRetentionDays. Nothing is
// removed before ApplyRetention.
func (e *Engine) SetRetention(ctx context.Context, principal assay.Principal, kind string, days int, reason string) error {
	if err := mayAdminister(principal, "set a retention"); err != nil {
		return err
	}
	if !slices.Contains(store.Retained, kind) {
		return fmt.Errorf("retention of %q: want one of %s: %w", kind, strings.Join(store.Retained, ", "), assay.ErrInvalid)
	}
	if days < 1 || days > store.MaxRetentionDays {
		return fmt.Errorf("retention of %s: %d days, want 1 to %d: %w", kind, days, store.MaxRetentionDays, assay.ErrInvalid)
	}
	value, err := json.Marshal(store.Retention{Days: days})
	if err != nil {
		return err
	}
	act := store.Act{Kind: "retention.set", Subject: kind, Actor: principal, Reason: reason}
	return e.tenant.Registry().Set(ctx, store.RegistryItem{Kind: store.RetentionKind, Name: kind, Value: value}, act)
}

// RemoveRetention removes a policy. The data is then kept until it is removed otherwise.
func (e *Engine) RemoveRetention(ctx context.Context, principal assay.Principal, kind, reason string) error {
	if err := mayAdminister(principal, "remove a retention"); err != nil {
		return err
	}
	act := store.Act{Kind: "retention.removed", Subject: kind, Actor: principal, Reason: reason}
	return e.tenant.Registry().Delete(ctx, store.RetentionKind, kind, act)
}

// Retained counts what ApplyRetention removed, or would remove.
type Retained struct {
	Runs     PrunedRuns `json:"runs"`     // deleted; Versions of it are those dropped in all
	Journals PrunedRuns `json:"journals"` // of failed runs, erased
	Acts     int        `json:"acts"`     // whose payload was erased
	Residue  string     `json:"residue,omitempty"`
}

// ApplyRetention removes what the tenant's policies do not keep, of all principals: runs are deleted with
// the sums of what users spent in the days and months before, journals of failed runs erased, versions dropped, and payloads of acts erased. Whatever a hold
// covers stays and is counted. With dry nothing is removed.
func (e *Engine) ApplyRetention(ctx context.Context, principal assay.Principal, dry bool) (Retained, error) {
	var done Retained
	if err := mayAdminister(principal, "apply retention"); err != nil {
		return done, err
	}
	policies, err := e.RetentionPolicies(ctx)
	if err != nil {
		return done, err
	}
	for _, p := range policies {
		before := e.config.Now().Add(-store.Retention{Days: p.Days}.Duration())
		why := store.Act{Actor: principal, Reason: fmt.Sprintf("retention of %s: %d days", p.Kind, p.Days)}
		n := 0
		switch p.Kind {
		case store.RetainRuns:
			done.Runs, err = e.retainRuns(ctx, before, dry, nil, func(id string) error {
				why.Kind = store.KindRunExpired
				return e.runs.Delete(ctx, id, why)
			})
			if err == nil && !dry {
				_, err = e.tenant.Ledger().Forget(ctx, before)
			}
		case store.RetainJournals:
			failed := func(r assay.Run) bool { return r.State == assay.RunFailed }
			done.Journals, err = e.retainRuns(ctx, before, dry, failed, func(id string) error { return e.runs.Erase(ctx, id, why) })
		case store.RetainReviews:
			n, err = e.tenant.Audit().EraseActs(ctx, store.ActFilter{Before: before, Kinds: []string{"review."}, Dry: dry}, why)
		case store.RetainActs:
			n, err = e.tenant.Audit().EraseActs(ctx, store.ActFilter{Before: before, Except: []string{"review."}, Dry: dry}, why)
		}
		done.Acts += n
		if err != nil {
			return done, fmt.Errorf("retention of %s: %w", p.Kind, err)
		}
	}
	if dry || len(policies) == 0 {
		return done, nil
	}
	if done.Runs.Versions, done.Runs.Writing, err = e.pruneVersions(ctx); err != nil {
		return done, err
	}
	if done.Runs.Runs+done.Journals.Runs+done.Acts+done.Runs.Versions > 0 {
		done.Residue, err = e.scrub(ctx, done.Runs.Versions > 0)
	}
	return done, err
}

// retainRuns calls remove for the runs of all principals that were created before a time and that only
// selects; nil: all.
func (e *Engine) retainRuns(ctx context.Context, before time.Time, dry bool, only func(assay.Run) bool, remove func(id string) error) (PrunedRuns, error) {
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
		if !r.Created.Before(before) || only != nil && !only(r) {
			continue
		}
		err := errors.Join(ctx.Err(), holds.Run(r))
		if err == nil && r.Live {
			err = assay.ErrLeased
		}
		if err == nil && r.State == assay.RunSuspended {
			err = assay.ErrSuspended
		}
		if err == nil && !dry {
			err = remove(r.ID)
		}
		if err := pruned.count(err); err != nil {
			return pruned, err
		}
	}
	return pruned, nil
}
