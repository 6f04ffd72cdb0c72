package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// A memory is a store.Writer that keeps everything in memory and can be made to fail. It checks
// that its caller keeps to the contract.
type memory struct {
	store.Writer // nil: methods that ingest does not use

	failPut int   // the number of the failing Apply, from 1; 0: none
	failure error // the error of that Apply

	mu          sync.Mutex
	docs        map[string]store.Entry // by ID
	last        map[string]assay.ACL   // ID → ACL of a deleted document
	changed     map[string]int64       // ID → sequence
	collections map[string]bool        // name → require ACL
	sequence    int64
	puts        int
	sizes       []int // number of documents put in each Apply
	sources     map[string]store.Source
}

func newMemory() *memory {
	return &memory{
		docs: map[string]store.Entry{}, last: map[string]assay.ACL{}, changed: map[string]int64{}, collections: map[string]bool{},
		sources: map[string]store.Source{},
	}
}

func (m *memory) Apply(_ context.Context, b store.Batch) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.puts++
	if m.puts == m.failPut {
		return 0, m.failure
	}
	m.sizes = append(m.sizes, len(b.Put))
	seen := map[string]bool{}
	for _, e := range b.Put {
		d := e.Document
		if d.ID != assay.DocumentID(d.Collection, d.URI) || seen[d.ID] {
			return 0, fmt.Errorf("%s: wrong ID or twice in one Put: %w", d.URI, assay.ErrInvalid)
		}
		seen[d.ID] = true
		if m.collections[d.Collection] && !d.ACL.Restricted {
			return 0, fmt.Errorf("%s: no ACL: %w", d.URI, assay.ErrInvalid)
		}
		if d.Container != "" && !strings.HasPrefix(d.URI, d.Container+assay.PartSeparator) {
			return 0, fmt.Errorf("%s: not inside %s: %w", d.URI, d.Container, assay.ErrInvalid)
		}
	}
	if len(b.Put)+len(b.Delete) > 0 {
		m.sequence++
	}
	for _, id := range b.Delete {
		if seen[id] {
			return 0, fmt.Errorf("%s: put and deleted: %w", id, assay.ErrInvalid)
		}
		if e, ok := m.docs[id]; ok {
			m.last[id] = e.Document.ACL
		}
		delete(m.docs, id)
		m.changed[id] = m.sequence
	}
	for _, e := range b.Put {
		if err := m.put(e); err != nil {
			return 0, err
		}
	}
	for _, s := range b.Forget {
		delete(m.sources, s.Collection+" "+s.URI)
	}
	for _, s := range b.Sources {
		m.sources[s.Collection+" "+s.URI] = s
	}
	return m.sequence, nil
}

func (m *memory) put(e store.Entry) error {
	d := e.Document
	if old, ok := m.docs[d.ID]; ok && old.Document.Version == d.Version {
		old.Document.ACL, old.Document.Source = d.ACL, d.Source
		e = old
	} else if d.Text == "" {
		return fmt.Errorf("%s: a new version without text: %w", d.URI, assay.ErrInvalid)
	}
	m.docs[d.ID] = e
	m.changed[d.ID] = m.sequence
	return nil
}

func (m *memory) Chunks(_ context.Context, id, version string) ([]assay.Chunk, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.docs[id]
	if !ok || e.Document.Version != version {
		return nil, assay.ErrNotFound
	}
	return slices.Clone(e.Chunks), nil
}

func (m *memory) Sources(_ context.Context, collections ...string) iter.Seq2[store.Source, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []store.Source
	for _, key := range slices.Sorted(maps.Keys(m.sources)) {
		if s := m.sources[key]; len(collections) == 0 || slices.Contains(collections, s.Collection) {
			all = append(all, s)
		}
	}
	return func(yield func(store.Source, error) bool) {
		for _, s := range all {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func (m *memory) SetCollection(_ context.Context, c store.Collection) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.collections[c.Name] = c.RequireACL
	return nil
}

func (m *memory) Prune(context.Context) (int, error) { return 0, nil }
func (m *memory) Close() error                       { return nil }

func (m *memory) Sequence(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sequence, nil
}

func (m *memory) Changes(context.Context, int64) iter.Seq2[assay.Change, error] {
	return func(yield func(assay.Change, error) bool) { yield(assay.Change{}, errors.New("not kept here")) }
}

func (m *memory) Document(_ context.Context, id string) (assay.Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.docs[id]
	if !ok {
		return assay.Document{}, assay.ErrNotFound
	}
	return e.Document, nil
}

func (m *memory) Version(ctx context.Context, id, version string) (assay.Document, error) {
	d, err := m.Document(ctx, id)
	if err == nil && d.Version != version {
		err = assay.ErrNotFound
	}
	return d, err
}

func (m *memory) Original(_ context.Context, id, version string) (assay.Original, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.docs[id]
	if !ok || e.Document.Version != version || e.Original.Media == "" {
		return assay.Original{}, assay.ErrNotFound
	}
	return e.Original, nil
}

func (m *memory) ACL(_ context.Context, id string) (assay.ACL, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.docs[id]; ok {
		return e.Document.ACL, nil
	}
	if acl, ok := m.last[id]; ok {
		return acl, nil
	}
	return assay.ACL{}, assay.ErrNotFound
}

func (m *memory) Documents(_ context.Context, collections ...string) iter.Seq2[assay.Document, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	var docs []assay.Document
	for _, e := range m.docs {
		if len(collections) == 0 || slices.Contains(collections, e.Document.Collection) {
			d := e.Document
			d.Text, d.Anchors, d.Structure = "", nil, assay.Structure{}
			docs = append(docs, d)
		}
	}
	slices.SortFunc(docs, func(a, b assay.Document) int { return cmp.Compare(a.URI, b.URI) })
	return func(yield func(assay.Document, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (m *memory) Passages(context.Context, []string) ([]assay.Passage, error) {
	return nil, errors.New("not kept here")
}

func (m *memory) Collection(_ context.Context, name string) (store.Collection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	require, ok := m.collections[name]
	if !ok {
		return store.Collection{}, assay.ErrNotFound
	}
	return store.Collection{Name: name, RequireACL: require}, nil
}
