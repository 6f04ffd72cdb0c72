package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/assay-rag/assay"
)

// A RunFilter selects runs. Zero fields select all.
type RunFilter struct {
	States   []assay.RunState
	Statuses []assay.Status // of the answer
	Since    time.Time      // created then or later
	Until    time.Time      // created before

	After RunPlace // only runs that follow this place
	Limit int      // at most so many
}

// A RunPlace is the place of a run in a list, newest first. The run need not exist any more.
type RunPlace struct {
	Created time.Time `json:"t"`
	ID      string    `json:"id"`
}

// place returns the place of a run.
func (s RunSummary) place() RunPlace { return RunPlace{s.Created, s.ID} }

// follows reports whether p is after a place in the list.
func (p RunPlace) follows(before RunPlace) bool {
	return cmp.Or(before.Created.Compare(p.Created), cmp.Compare(before.ID, p.ID)) > 0
}

// ListRuns returns a part of the principal's runs, newest first, and the place after which the next
// part begins; nil: there are no more.
func (s *Session) ListRuns(ctx context.Context, f RunFilter) (list []RunSummary, next *RunPlace, err error) {
	_, err = call(ctx, s, "ListRuns", func(c *sessionCall) (_ struct{}, err error) {
		list, next, err = c.engine.listRuns(ctx, c.principal, f)
		return struct{}{}, err
	})
	return list, next, err
}

func (e *Engine) listRuns(ctx context.Context, principal assay.Principal, f RunFilter) ([]RunSummary, *RunPlace, error) {
	all, err := e.Runs(ctx, principal, 0)
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(all, func(a, b RunSummary) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID)) })
	list := []RunSummary{}
	for _, r := range all {
		if !f.selects(r) {
			continue
		}
		if f.Limit > 0 && len(list) == f.Limit {
			last := list[len(list)-1].place()
			return list, &last, nil
		}
		list = append(list, r)
	}
	return list, nil, nil
}

// selects reports whether a run is in the list.
func (f RunFilter) selects(r RunSummary) bool {
	switch {
	case len(f.States) > 0 && !slices.Contains(f.States, r.State):
		return false
	case len(f.Statuses) > 0 && !slices.Contains(f.Statuses, r.Status):
		return false
	case !f.Since.IsZero() && r.Created.Before(f.Since):
		return false
	case !f.Until.IsZero() && !r.Created.Before(f.Until):
		return false
	}
	return f.After == RunPlace{} || r.place().follows(f.After)
}
