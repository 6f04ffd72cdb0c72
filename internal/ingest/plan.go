package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// A Plan is what a Run would do, as far as that is known without reading the files.
type Plan struct {
	Read      []PlannedType `json:"read"`      // files to read, by type
	Files     int           `json:"files"`     // of all types
	Bytes     int64         `json:"bytes"`     // of those files
	Unchanged int           `json:"unchanged"` // files, which are not read
	Gone      int           `json:"gone"`      // files whose documents would be removed
	Skipped   []Skipped     `json:"skipped"`   // by URI, then reason

	// TextBytes are those of the files to read whose format is text. The text of the others, such
	// as PDF and archives, has another size.
	TextBytes int64 `json:"text_bytes"`

	// Vectors is set by callers of MakePlan that have an encoder.
	Vectors *VectorPlan `json:"vectors,omitempty"`
}

// A PlannedType is the files to read with one extension.
type PlannedType struct {
	Type  string `json:"type"` // in lower case, without the dot; empty: none
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// A VectorPlan estimates the vectors of the passages in TextBytes.
type VectorPlan struct {
	Model    string `json:"model"`
	Problem  string `json:"problem,omitempty"` // why none can be made now
	Passages int    `json:"passages"`
	Tokens   int    `json:"tokens"`

	Rate    float64 `json:"rate,omitempty"`    // passages a second, measured now; 0: not measured
	Seconds float64 `json:"seconds,omitempty"` // at that rate

	Remote     bool  `json:"remote,omitempty"` // a service makes them, at a price
	Priced     bool  `json:"priced,omitempty"` // the price is known
	CostMicros int64 `json:"cost_micros,omitempty"`
}

// MakePlan returns what Run would do with the options. It reads sidecars but no documents, and
// changes nothing. The error is of the kinds of Run.
func MakePlan(ctx context.Context, content store.Content, opts Options) (Plan, error) {
	plan := Plan{Read: []PlannedType{}, Skipped: []Skipped{}}
	j, err := newJob(ctx, content, opts)
	if err != nil {
		return plan, err
	}
	types := map[string]*PlannedType{}
	for f, err := range source.Walk(ctx, opts.Roots, j.opts.Source) {
		var skip *source.Skip
		var root *source.RootError
		switch {
		case errors.As(err, &root):
			j.roots = append(j.roots, root)
			j.kept = append(j.kept, Skipped{URI: cmp.Or(root.URI, root.Root), Reason: BadRoot, Detail: root.Detail})
		case errors.As(err, &skip):
			s := skippedBy(skip)
			if j.leavesAlone(s.URI) {
				continue
			}
			if isTransient(s.Reason) {
				j.kept = append(j.kept, s)
			} else {
				plan.Skipped = append(plan.Skipped, s)
			}
		case err != nil:
			return plan, fmt.Errorf("ingest: %w", err)
		default:
			j.found[f.URI] = f
			j.plan(f, &plan, types)
		}
	}
	gone, err := j.disappeared()
	if err != nil {
		return plan, err
	}
	plan.Gone = len(gone)
	for _, name := range sortedKeys(types) {
		plan.Read = append(plan.Read, *types[name])
	}
	slices.SortStableFunc(plan.Read, func(a, b PlannedType) int { return cmp.Compare(b.Files, a.Files) })
	r := Report{Skipped: append(plan.Skipped, j.kept...)}
	r.sort()
	plan.Skipped = r.Skipped
	return plan, errors.Join(j.roots...)
}

// plan adds a file to a plan.
func (j *job) plan(f source.File, plan *Plan, types map[string]*PlannedType) {
	refuse := func(err error) {
		var s *source.Skip
		if errors.As(err, &s) {
			plan.Skipped = append(plan.Skipped, skippedBy(s))
		}
	}
	sidecar, err := f.Sidecar()
	if err != nil {
		refuse(err)
		return
	}
	if j.requireACL && !sidecar.ACL.Restricted {
		refuse(j.noACL(f))
		return
	}
	k := j.known[f.URI]
	want := j.fingerprint(sidecar)
	have := parseFingerprint(k.source.Info.Hash)
	if j.stands(k, sidecar.ACL, true) && !j.opts.Verify && !have.lacks(want, j.documentsOf(k)) && have.unread(want, k.source.Info, f) {
		failed := failedEarlier(k.source)
		plan.Skipped = append(plan.Skipped, failed...)
		if len(k.docs) > 0 || k.source.SameAs != "" || len(failed) == 0 {
			plan.Unchanged++
		}
		return
	}
	if j.leavesAlone(f.URI) {
		return
	}
	name := strings.TrimPrefix(strings.ToLower(path.Ext(f.Rel)), ".")
	if types[name] == nil {
		types[name] = &PlannedType{Type: name}
	}
	types[name].Files++
	types[name].Bytes += f.SizeBytes
	plan.Files++
	plan.Bytes += f.SizeBytes
	if weightOf(f.Rel) == 1 {
		plan.TextBytes += f.SizeBytes
	}
}
