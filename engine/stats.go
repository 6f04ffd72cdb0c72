package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/stats"
)

// Observations returns an observation of each of the principal's questions asked after since, in no
// particular order; zero: all runs. Observations contain no text that a run read. A run with a
// damaged journal is included, marked as having an incomplete trace. seen is called with the
// number of runs read and their total; it may be nil.
func (e *Engine) Observations(ctx context.Context, principal assay.Principal, since time.Time, seen func(done, all int)) ([]Observation, error) {
	runs, err := e.runs.List(ctx, 0)
	if err != nil {
		return nil, err
	}
	current := map[string]string{} // current version of each document
	for d, err := range e.content.Documents(ctx) {
		if err != nil {
			return nil, err
		}
		current[d.ID] = d.Version
	}
	var all []Observation
	for i, r := range runs {
		if seen != nil {
			seen(i, len(runs))
		}
		if !owns(principal, r) || !r.Created.After(since) || isDescribing(r) || r.State == assay.RunErased {
			continue
		}
		records, err := e.runs.Records(ctx, r.ID)
		if errors.Is(err, assay.ErrNotFound) {
			continue // deleted after it was listed
		}
		if err != nil && !errors.Is(err, assay.ErrDamaged) {
			return nil, fmt.Errorf("run %s: %w", r.ID, err)
		}
		o := stats.Observe(r, records, err)
		if r.Answer != nil {
			for _, c := range r.Answer.Citations {
				if c.Origin != assay.FromDocuments {
					continue
				}
				o.Citations++
				if current[c.Document] != c.Version {
					o.Stale++
				}
			}
		}
		all = append(all, o)
	}
	return all, nil
}
