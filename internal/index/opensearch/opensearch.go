package opensearch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// defaultGrace is how long rows that no longer count are kept for searches that began before. A
// search that takes longer begins again.
const defaultGrace = time.Minute

// An Index is the index of one tenant. It implements index.Follower, except that a search sees the
// changes up to the last Flush, without the documents that changed since then.
type Index struct {
	cluster  *Cluster
	tenant   string // digest
	alias    string
	source   index.Source
	identity string
	grace    time.Duration
	scoring  scoring

	sequence atomic.Int64
	changes  pending

	mu      sync.Mutex
	known   *state // last state read or written; nil: none
	sights  map[string]*counts
	sightOf *state // of sights
	closed  bool
	calls   sync.WaitGroup // searches and flushes in progress

	// writing is a lock that is held by a Flush. Sending to it acquires the lock.
	writing chan struct{}
}

var _ index.Follower = (*Index)(nil)

// Open opens the index of a tenant, which is derived from a source. The tenant's name is not sent: the
// names of indexes have a digest of it. If there is no index yet, searches find nothing until the
// first Flush. The cluster must stay open until Close.
func (c *Cluster) Open(ctx context.Context, tenant string, source index.Source) (*Index, error) {
	x := &Index{cluster: c, tenant: digest("tenant", tenant), alias: c.alias(tenant), source: source, grace: defaultGrace, scoring: defaultScoring, writing: make(chan struct{}, 1)}
	x.changes.lock = make(chan struct{}, 1)
	if named, ok := source.(index.Identified); ok {
		var err error
		if x.identity, err = named.Identity(ctx); err != nil {
			return nil, fmt.Errorf("open the index in OpenSearch: %w", err)
		}
	}
	st, err := c.readState(ctx, x.alias, nil)
	if err != nil {
		return nil, fmt.Errorf("open the index in OpenSearch: %w", err)
	}
	sequence, err := source.Sequence(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the index in OpenSearch: %w", err)
	}
	if st != nil && x.usable(st, sequence) == nil {
		x.remember(st)
	}
	return x, nil
}

// usable returns an error if the index is not the one of the source at this sequence number.
func (x *Index) usable(st *state, sequence int64) error {
	switch {
	case st.Version != version:
		return fmt.Errorf("index %s has the layout %d, not %d, until the next flush: %w", st.index, st.Version, version, assay.ErrUnavailable)
	case st.Tenant != x.tenant || st.Identity != x.identity:
		return fmt.Errorf("index %s is of another source: %w", st.index, assay.ErrForeign)
	case st.Sequence > sequence:
		return fmt.Errorf("index %s has the sequence number %d, its source only %d: %w", st.index, st.Sequence, sequence, assay.ErrForeign)
	}
	return nil
}

func (x *Index) remember(st *state) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.known = st
	x.sequence.Store(st.Sequence)
}

// forget is called when the index does not exist any more.
func (x *Index) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.known = nil
	x.sequence.Store(0)
}

func (x *Index) lastKnown() *state {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.known
}

// begin counts a call in progress. The caller must call x.calls.Done.
func (x *Index) begin() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return fmt.Errorf("index: %w", fs.ErrClosed)
	}
	x.calls.Add(1)
	return nil
}

// Close implements index.Index. It waits for calls in progress.
func (x *Index) Close() error {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.calls.Wait()
	return nil
}

// Sequence implements index.Index.
func (x *Index) Sequence() int64 { return x.sequence.Load() }

// CatchUp implements index.Follower. It reads what changed since the last Flush, and writes nothing.
func (x *Index) CatchUp(ctx context.Context) error {
	if err := x.read(ctx, func(*view) error { return nil }); err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	return nil
}

// Lags reports whether searches do not find changes or vectors of the source before the next Flush.
func (x *Index) Lags(ctx context.Context) (bool, error) {
	if err := x.begin(); err != nil {
		return false, err
	}
	defer x.calls.Done()
	st, err := x.cluster.readState(ctx, x.alias, x.lastKnown())
	if err != nil && !errors.Is(err, assay.ErrForeign) {
		return false, err
	}
	sequence, err := x.source.Sequence(ctx)
	if err != nil {
		return false, err
	}
	if st == nil {
		return sequence > 0, nil
	}
	if x.usable(st, sequence) != nil {
		return true, nil
	}
	w := &writer{x: x, st: st}
	return w.lacks(ctx, sequence)
}

// A view is what one search reads: a state of the index and the documents that changed since.
type view struct {
	*state
	changed []string // document IDs
	until   time.Time
}

// maxViews is how often a search begins again.
const maxViews = 5

// read calls f with a view. It does so again if rows of the view may have been deleted meanwhile. If
// there is no index, it does not call f.
func (x *Index) read(ctx context.Context, f func(*view) error) error {
	if err := x.begin(); err != nil {
		return err
	}
	defer x.calls.Done()
	for try := 1; ; try++ {
		v, err := x.view(ctx)
		if err != nil || v == nil {
			return err
		}
		err = f(v)
		late := time.Now().After(v.until)
		switch {
		case err == nil && !late:
			return nil
		case err != nil && !errors.Is(err, errGone):
			return err
		case try == maxViews && late:
			return fmt.Errorf("the search took longer than %v: %w", x.grace, assay.ErrUnavailable)
		case try == maxViews:
			return fmt.Errorf("%w: %w", assay.ErrUnavailable, err)
		}
	}
}

// view returns the current view, or nil if there is no index.
func (x *Index) view(ctx context.Context) (*view, error) {
	began := time.Now()
	known := x.lastKnown()
	st, err := x.cluster.readState(ctx, x.alias, known)
	if err == nil && st == nil && known != nil {
		x.forget()
		return nil, fmt.Errorf("the index was removed: %w", assay.ErrUnavailable)
	}
	if err != nil || st == nil {
		return nil, err
	}
	// The state is read first, so that it is not ahead of its source.
	sequence, err := x.source.Sequence(ctx)
	if err != nil {
		return nil, err
	}
	if err := x.usable(st, sequence); err != nil {
		return nil, err
	}
	v := &view{state: st, until: began.Add(x.grace)}
	if v.changed, err = x.changes.since(ctx, x.source, st, sequence); err != nil {
		return nil, err
	}
	x.remember(st)
	return v, nil
}

// maxPending is the largest number of documents that a search excludes because they changed since the
// last Flush.
const maxPending = 10_000

var errTooMany = fmt.Errorf("over %d documents changed since the last flush of the index: %w", maxPending, assay.ErrUnavailable)

// pending has the documents that changed since the last Flush.
type pending struct {
	lock      chan struct{}
	index     string           // name of the index
	full      int64            // over maxPending documents changed after this sequence number; 0: none
	from, to  int64            // documents that changed after from, and up to to, are in sequences
	sequences map[string]int64 // by document ID: sequence number of its last change
}

// since returns the IDs of the documents that changed after a state, up to a sequence number of the
// source or later.
func (p *pending) since(ctx context.Context, source index.Source, st *state, to int64) ([]string, error) {
	after := st.Sequence
	if after == 0 {
		return nil, nil // the index has no document
	}
	if err := acquire(ctx, p.lock); err != nil {
		return nil, err
	}
	defer func() { <-p.lock }()
	known := p.index == st.index && p.sequences != nil
	if within := p.from <= after && after <= p.to && p.to <= to; !known || !within {
		if p.index == st.index && p.full == after && to >= p.to {
			return nil, errTooMany
		}
		p.index, p.full, p.from, p.to, p.sequences = st.index, 0, after, after, make(map[string]int64)
	}
	p.from = after
	for id, sequence := range p.sequences {
		if sequence <= after {
			delete(p.sequences, id)
		}
	}
	if to > p.to {
		if err := p.read(ctx, source, to); err != nil {
			return nil, err
		}
	}
	return slices.Collect(maps.Keys(p.sequences)), nil
}

func (p *pending) read(ctx context.Context, source index.Source, to int64) error {
	last := to
	for c, err := range source.Changes(ctx, p.to) {
		if err != nil {
			return fmt.Errorf("read changes after %d: %w", p.to, err)
		}
		p.sequences[c.ID] = c.Sequence
		last = max(last, c.Sequence)
		if len(p.sequences) > maxPending {
			p.sequences, p.full = nil, p.from
			return errTooMany
		}
	}
	p.to = last
	return nil
}

// acquire waits for a lock that is a channel of capacity one.
func acquire(ctx context.Context, lock chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
