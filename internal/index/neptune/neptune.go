package neptune

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/index"
)

// layout is the version of the graph's nodes and of the names in it.
const layout = 1<<16 | entity.Version

var _ index.Follower = (*Index)(nil)

// An Index is an index whose graph is in Neptune. Its searches are those of another index.
type Index struct {
	index.Follower
	graph   *Graph
	tenant  namespace
	source  index.Source
	changes pending
	unset   atomic.Bool // the graph was not written when the index was opened

	// writing is a lock that is held by a Flush. Sending to it acquires the lock.
	writing chan struct{}
}

// A lagger is an index whose searches find the documents of the last Flush.
type lagger interface {
	// Lags reports whether searches do not find changes or vectors of the content yet.
	Lags(ctx context.Context) (bool, error)
}

// A laggingIndex is an Index whose index of texts is a lagger.
type laggingIndex struct {
	*Index
	texts lagger
}

// Lags reports whether the index of texts lags or the graph does.
func (x laggingIndex) Lags(ctx context.Context) (bool, error) {
	lags, err := x.texts.Lags(ctx)
	if err != nil || lags {
		return lags, err
	}
	sequence, err := x.source.Sequence(ctx)
	if err != nil {
		return false, err
	}
	st, err := x.state(ctx)
	return err == nil && (x.usable(st, sequence) != nil || st.Sequence != sequence), err
}

// Sequence implements index.Index.
func (x laggingIndex) Sequence() int64 { return x.Follower.Sequence() }

// Open returns an index that searches texts and has a graph in Neptune, an *Index or a lagger with the
// methods of one. Both are derived from source, which must be index.Identified: its identity names the
// tenant in the graph. Close closes texts; if Open fails, the caller does.
func (g *Graph) Open(ctx context.Context, source index.Source, texts index.Follower) (index.Follower, error) {
	x, err := g.open(ctx, source, texts)
	if err != nil {
		return nil, fmt.Errorf("open the graph in Neptune: %w", err)
	}
	if l, ok := texts.(lagger); ok {
		return laggingIndex{x, l}, nil
	}
	return x, nil
}

func (g *Graph) open(ctx context.Context, source index.Source, texts index.Follower) (*Index, error) {
	named, ok := source.(index.Identified)
	if !ok {
		return nil, fmt.Errorf("the content has no identity: %w", assay.ErrInvalid)
	}
	identity, err := named.Identity(ctx)
	if err != nil {
		return nil, err
	}
	x := g.index(identity)
	x.Follower, x.source = texts, source
	st, err := x.state(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	x.unset.Store(err == nil && st.Version == 0) // without Neptune, searches go on
	return x, nil
}

// index returns the index of the content with an identity.
func (g *Graph) index(identity string) *Index {
	x := &Index{graph: g, tenant: namespaceOf(identity), writing: make(chan struct{}, 1)}
	x.changes.lock = make(chan struct{}, 1)
	return x
}

// Flush implements index.Index. It flushes the index of texts, and then writes the graph.
func (x *Index) Flush(ctx context.Context) error {
	if err := x.Follower.Flush(ctx); err != nil {
		return err
	}
	if err := x.write(ctx); err != nil {
		return fmt.Errorf("write the graph to Neptune: %w", err)
	}
	x.unset.Store(false)
	return nil
}

// Sequence implements index.Index. It is 0 until the graph has been written, so that whoever may write
// it does.
func (x *Index) Sequence() int64 {
	if x.unset.Load() {
		return 0
	}
	return x.Follower.Sequence()
}

// Settle waits for the background work of the index of texts.
func (x *Index) Settle(ctx context.Context) error {
	if s, ok := x.Follower.(interface{ Settle(context.Context) error }); ok {
		return s.Settle(ctx)
	}
	return nil
}

// Size returns the number of bytes that the index of texts takes; 0: it does not know.
func (x *Index) Size(ctx context.Context) (int64, error) {
	if s, ok := x.Follower.(interface {
		Size(context.Context) (int64, error)
	}); ok {
		return s.Size(ctx)
	}
	return 0, nil
}

// Lost returns why the index of texts could not be used when it was opened; nil: it could.
func (x *Index) Lost() error {
	if l, ok := x.Follower.(interface{ Lost() error }); ok {
		return l.Lost()
	}
	return nil
}

// A state is the state of a tenant's graph. The zero state is that of a tenant without one.
type state struct {
	Version  int64  `json:"version"`  // layout; 0: never written
	Sequence int64  `json:"sequence"` // of the source; the graph is complete up to it
	Claim    string `json:"claim"`    // of the writer
	Step     int64  `json:"step"`     // of the writer's last statement
}

// state reads the state.
func (x *Index) state(ctx context.Context) (state, error) {
	rows, err := run[state](ctx, x.graph, readState, parameters{"state": x.tenant.state()})
	switch {
	case err != nil:
		return state{}, err
	case len(rows) == 0:
		return state{}, nil
	case len(rows) > 1 || rows[0].Sequence < 0 || rows[0].Step < 0:
		return state{}, fmt.Errorf("the state of the graph in Neptune is not valid: %w", assay.ErrUnavailable)
	}
	return rows[0], nil
}

// usable returns an error if the graph is not the one of the source at this sequence number.
func (x *Index) usable(st state, sequence int64) error {
	switch {
	case st.Version != layout:
		return fmt.Errorf("the graph in Neptune is written with the next ingest: %w", assay.ErrUnavailable)
	case st.Sequence > sequence:
		return fmt.Errorf("the graph in Neptune has the sequence number %d, its source only %d: %w", st.Sequence, sequence, assay.ErrForeign)
	}
	return nil
}

// maxPending is the largest number of documents that a graph excludes because they changed since the
// last Flush.
const maxPending = 10_000

// pending has the documents that changed since the last Flush.
type pending struct {
	lock      chan struct{}
	from, to  int64 // ids are those that changed after from, and up to to
	sequences map[string]int64
}

// since returns the IDs of the documents that changed after a sequence number, up to another one or
// later.
func (p *pending) since(ctx context.Context, source index.Source, after, to int64) ([]string, error) {
	select {
	case p.lock <- struct{}{}:
		defer func() { <-p.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.sequences == nil || p.from > after || p.to < after || p.to > to {
		p.from, p.to, p.sequences = after, after, make(map[string]int64)
	}
	maps.DeleteFunc(p.sequences, func(_ string, sequence int64) bool { return sequence <= after })
	p.from = after
	last := to
	if to > p.to {
		for c, err := range source.Changes(ctx, p.to) {
			if err != nil {
				return nil, fmt.Errorf("read changes after %d: %w", p.to, err)
			}
			p.sequences[c.ID], last = c.Sequence, max(last, c.Sequence)
			if len(p.sequences) > maxPending {
				p.sequences = nil
				return nil, fmt.Errorf("over %d documents changed since the graph in Neptune was written: %w", maxPending, assay.ErrUnavailable)
			}
		}
		p.to = last
	}
	return slices.Sorted(maps.Keys(p.sequences)), nil
}

// errLocked means that the claim of a writer no longer holds.
var errLocked = fmt.Errorf("another process writes it: %w", assay.ErrLocked)

// Remove deletes the graph of the content with an identity, if there is one. A Flush writes it again.
func (g *Graph) Remove(ctx context.Context, identity string) error {
	if err := g.index(identity).remove(ctx); err != nil {
		return fmt.Errorf("remove the graph in Neptune: %w", err)
	}
	return nil
}

func (x *Index) remove(ctx context.Context) error {
	w, err := x.begin(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	if err := w.clear(ctx); err != nil {
		return err
	}
	_, err = run[any](ctx, x.graph, removeState, parameters{"state": x.tenant.state(), "claim": w.claim})
	return err
}
