package opensearch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// Flush implements index.Index. It writes the changes and vectors of the source to OpenSearch. It
// builds a new index if there is none that can be used, and then moves the alias to it. The error
// wraps assay.ErrLocked if another process writes the same index.
func (x *Index) Flush(ctx context.Context) error { return x.flush(ctx, false) }

// Rebuild writes a new index from the whole source and moves the alias to it. Until then searches use
// the old index, which is removed afterwards. Only the writer of the content may call it.
func (x *Index) Rebuild(ctx context.Context) error { return x.flush(ctx, true) }

func (x *Index) flush(ctx context.Context, rebuild bool) error {
	if err := x.begin(); err != nil {
		return err
	}
	defer x.calls.Done()
	if err := acquire(ctx, x.writing); err != nil {
		return err
	}
	defer func() { <-x.writing }()
	if err := x.update(ctx, rebuild); err != nil {
		return fmt.Errorf("flush index to OpenSearch: %w", err)
	}
	return nil
}

// update brings the index up to date. The caller holds x.writing.
func (x *Index) update(ctx context.Context, rebuild bool) error {
	st, err := x.cluster.readState(ctx, x.alias, x.lastKnown())
	if err != nil && !errors.Is(err, assay.ErrForeign) {
		return err
	}
	sequence, err := x.source.Sequence(ctx)
	if err != nil {
		return err
	}
	if st == nil || rebuild || x.usable(st, sequence) != nil {
		return x.build(ctx, rebuild)
	}
	w := &writer{x: x, st: st, publish: x.remember}
	due, err := w.due(ctx, sequence)
	if err != nil || !due {
		x.remember(st)
		return err
	}
	return w.run(ctx)
}

// build writes a new index, moves the alias to it and removes the other indexes of the tenant.
func (x *Index) build(ctx context.Context, rebuild bool) error {
	w, err := x.begun(ctx, rebuild)
	if err != nil {
		return err
	}
	if w == nil {
		name := x.alias + "-" + strings.ToLower(rand.Text()[:12])
		if err := x.cluster.do(ctx, http.MethodPut, "/"+name, x.cluster.settings(), nil); err != nil {
			return fmt.Errorf("create index %s: %w", name, err)
		}
		w = &writer{x: x, st: &state{Version: version, Tenant: x.tenant, Identity: x.identity, index: name}}
	}
	w.publish = func(*state) {}
	err = w.run(ctx)
	if !w.complete {
		return err
	}
	if err := x.moveAlias(ctx, w.st.index); err != nil {
		return err
	}
	x.remember(w.st)
	return err // of the vectors
}

// begun returns the writer of an index that an interrupted build left, or nil. A rebuild starts anew.
func (x *Index) begun(ctx context.Context, rebuild bool) (*writer, error) {
	if rebuild {
		return nil, nil
	}
	names, err := x.cluster.indexes(ctx, x.alias)
	if err != nil {
		return nil, err
	}
	sequence, err := x.source.Sequence(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		st, err := x.cluster.readState(ctx, name, nil)
		if err == nil && st != nil && x.usable(st, sequence) == nil {
			return &writer{x: x, st: st}, nil
		}
	}
	return nil, nil
}

// indexes returns the names of all indexes behind an alias or beside it, sorted.
func (c *Cluster) indexes(ctx context.Context, alias string) ([]string, error) {
	var found map[string]any
	if err := c.do(ctx, http.MethodGet, "/"+alias+"-*/_settings/index.uuid", nil, &found); err != nil {
		return nil, fmt.Errorf("list the indexes %s-*: %w", alias, err)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// removeIndexes removes the indexes behind an alias or beside it, except one.
func (c *Cluster) removeIndexes(ctx context.Context, alias, except string) error {
	names, err := c.indexes(ctx, alias)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == except || !strings.HasPrefix(name, alias+"-") {
			continue
		}
		if err := c.do(ctx, http.MethodDelete, "/"+name, nil, nil); err != nil && !refused(err, http.StatusNotFound) {
			return fmt.Errorf("remove index %s: %w", name, err)
		}
	}
	return nil
}

// moveAlias makes the tenant's alias name one index, and removes all others that begin like it.
func (x *Index) moveAlias(ctx context.Context, name string) error {
	actions := []object{
		{"remove": object{"index": x.alias + "-*", "alias": x.alias, "must_exist": false}},
		{"add": object{"index": name, "alias": x.alias, "is_write_index": true}},
	}
	if err := x.cluster.do(ctx, http.MethodPost, "/_aliases", object{"actions": actions}, nil); err != nil {
		return fmt.Errorf("move alias %s: %w", x.alias, err)
	}
	return x.cluster.removeIndexes(ctx, x.alias, name)
}

// Remove deletes all data of the tenant in OpenSearch. The index can be flushed again afterwards.
func (x *Index) Remove(ctx context.Context) error {
	if err := acquire(ctx, x.writing); err != nil {
		return err
	}
	defer func() { <-x.writing }()
	return x.cluster.removeAll(ctx, x.alias)
}

// Remove deletes all data of a tenant, named as in Open. If there is none, it does nothing.
func (c *Cluster) Remove(ctx context.Context, tenant string) error {
	return c.removeAll(ctx, c.alias(tenant))
}

func (c *Cluster) removeAll(ctx context.Context, alias string) error {
	if err := c.removeIndexes(ctx, alias, ""); err != nil {
		return fmt.Errorf("remove the index in OpenSearch: %w", err)
	}
	return nil
}

// A writer brings one index up to date with the source, in one or more commits.
type writer struct {
	x       *Index
	st      *state // last one written
	publish func(*state)
	bulk    bulk

	next     *state // to be committed
	replaced replacement
	complete bool // the text is that of the source
}

// due reports whether the index lacks changes or vectors, or has rows to delete.
func (w *writer) due(ctx context.Context, sequence int64) (bool, error) {
	if w.st.Claim != w.st.Committed || w.expired(w.st) > 0 {
		return true, nil
	}
	return w.lacks(ctx, sequence)
}

// lacks reports whether the index lacks changes or vectors.
func (w *writer) lacks(ctx context.Context, sequence int64) (bool, error) {
	if w.st.Sequence != sequence {
		return true, nil
	}
	source, ok := w.x.source.(index.VectorSource)
	if !ok {
		return false, nil
	}
	models, err := source.Models(ctx)
	if err != nil {
		return false, err
	}
	for _, m := range models {
		if w.st.Models[m].Sequence != sequence {
			return true, nil
		}
	}
	return len(models) != len(w.st.Models), nil
}

// run makes a claim, writes everything and ends without a claim.
func (w *writer) run(ctx context.Context) error {
	w.bulk = bulk{cluster: w.x.cluster, index: w.st.index}
	if err := w.claim(ctx); err != nil {
		return err
	}
	w.bulk.nonce = w.st.Nonce
	if err := w.purge(ctx); err != nil {
		return err
	}
	if err := w.texts(ctx); err != nil {
		return err
	}
	if err := w.commit(ctx, true); err != nil {
		return err
	}
	w.complete = true
	if err := w.vectors(ctx); err != nil {
		return err
	}
	return w.commit(ctx, false)
}

// claim makes a claim for the next commit. Claims that were not committed become void.
func (w *writer) claim(ctx context.Context) error {
	next := w.st.clone()
	lost, some := next.avoid()
	next.Claim++
	next.Nonce = strings.ToLower(rand.Text())
	if err := w.write(ctx, next); err != nil {
		return err
	}
	if some {
		return w.remove(ctx, claimsQuery(lost))
	}
	return nil
}

// write replaces the state, and makes next a copy of it.
func (w *writer) write(ctx context.Context, next *state) error {
	if err := w.x.cluster.writeState(ctx, next); err != nil {
		return err
	}
	w.st, w.next, w.replaced = next, next.clone(), replacement{}
	w.publish(next)
	return nil
}

// remove deletes rows.
func (w *writer) remove(ctx context.Context, query object) error {
	if err := w.refresh(ctx); err != nil {
		return err
	}
	w.bulk.dirty = true
	var answer struct{ Failures []any }
	path := "/" + w.st.index + "/_delete_by_query?conflicts=proceed&refresh=false"
	body := object{"query": object{"bool": object{"filter": []object{query}, "must_not": []object{termQuery("kind", kindState)}}}}
	if err := w.x.cluster.do(ctx, http.MethodPost, path, body, &answer); err != nil {
		return fmt.Errorf("delete rows: %w", err)
	}
	if len(answer.Failures) > 0 {
		return fmt.Errorf("delete rows: %d failures: %w", len(answer.Failures), assay.ErrUnavailable)
	}
	return nil
}

// expired returns the number of replacements that no search can still be reading the rows of.
func (w *writer) expired(st *state) int {
	n := 0
	for n < len(st.Replaced) && time.Since(st.Replaced[n].Time) > w.x.grace {
		n++
	}
	return n
}

// purge deletes the rows of expired replacements. The next commit forgets them.
func (w *writer) purge(ctx context.Context) error {
	n := w.expired(w.next)
	for i := range n {
		if err := w.remove(ctx, w.next.Replaced[i].query()); err != nil {
			return err
		}
	}
	w.next.Replaced = w.next.Replaced[n:]
	return nil
}

// refresh makes what was written visible to searches of every copy of every shard.
func (w *writer) refresh(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		var answer struct {
			Shards struct{ Failed int } `json:"_shards"`
		}
		err := w.x.cluster.do(ctx, http.MethodPost, "/"+w.st.index+"/_refresh", nil, &answer)
		if err == nil && answer.Shards.Failed == 0 {
			w.bulk.dirty = false
			return nil
		}
		if err == nil {
			err = fmt.Errorf("%d shards failed: %w", answer.Shards.Failed, assay.ErrUnavailable)
		}
		if attempt >= maxAttempts || !errors.Is(err, assay.ErrUnavailable) {
			return fmt.Errorf("refresh index: %w", err)
		}
		if err := pause(ctx, backoff(attempt)); err != nil {
			return err
		}
	}
}

// commit makes the rows of the claim count. If more is true, it makes another claim.
func (w *writer) commit(ctx context.Context, more bool) error {
	if err := w.bulk.send(ctx); err != nil {
		return err
	}
	if w.bulk.dirty {
		if err := w.refresh(ctx); err != nil {
			return err
		}
	}
	next := w.next
	next.Committed = next.Claim
	if w.replaced.size() > 0 {
		w.replaced.Claim, w.replaced.Time = next.Claim, time.Now().UTC()
		next.Replaced = append(next.Replaced, w.replaced)
	}
	if more {
		next.Claim++
	}
	return w.write(ctx, next)
}

// Limits of one commit, and of all replacements together.
const (
	commitDocuments = 2_000
	maxReplaced     = 20_000
)

// texts writes the rows of the changed documents.
func (w *writer) texts(ctx context.Context) error {
	var builder rowBuilder
	initial := w.st.Sequence == 0
	sequence, err := w.x.source.Sequence(ctx)
	if err != nil {
		return err
	}
	after, documents, last := w.st.Sequence, 0, w.st.Sequence
	for c, err := range w.x.source.Changes(ctx, after) {
		if err != nil {
			return fmt.Errorf("read changes after %d: %w", after, err)
		}
		if documents >= commitDocuments && c.Sequence > last {
			w.next.Sequence = last
			if err := w.commitRoom(ctx); err != nil {
				return err
			}
			documents = 0
		}
		documents, last = documents+1, max(last, c.Sequence)
		if !initial {
			w.replaced.Documents = append(w.replaced.Documents, c.ID)
		}
		if c.Deleted {
			continue
		}
		rows, err := builder.rows(w.next.Claim, c)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := w.bulk.add(ctx, r); err != nil {
				return err
			}
		}
	}
	w.next.Sequence = max(last, sequence)
	return nil
}

// commitRoom commits and makes another claim. It then waits until there is room for replacements.
func (w *writer) commitRoom(ctx context.Context) error {
	if err := w.commit(ctx, true); err != nil {
		return err
	}
	for w.next.replacedRows() > maxReplaced {
		if err := pause(ctx, w.x.grace/10); err != nil {
			return err
		}
		if err := w.purge(ctx); err != nil {
			return err
		}
	}
	return nil
}
