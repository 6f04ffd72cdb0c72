package indextest

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/assay-rag/assay"
)

// A Source is an index.VectorSource in memory that a test can change. It is safe for concurrent
// use.
type Source struct {
	identity string

	mu       sync.Mutex
	sequence int64
	latest   map[string]assay.Change // by document ID
	read     int                     // number of changes yielded
	failAt   int                     // -1: never
	failure  error
	gate     chan struct{} // nil: Changes does not wait
	blocked  chan struct{}

	vectors       map[string]map[string]storedVector // by model and by text of the chunk
	dropped       map[string]int64                   // sequence of the last drop, by model
	readVectors   int                                // number of vectors yielded
	failVectorsAt int                                // -1: never

	log *commitLog // nil: in memory only
}

// NewSource returns an empty source with the given identity.
func NewSource(identity string) *Source {
	return &Source{
		identity:      identity,
		latest:        make(map[string]assay.Change),
		failAt:        -1,
		blocked:       make(chan struct{}, 1),
		vectors:       make(map[string]map[string]storedVector),
		dropped:       make(map[string]int64),
		failVectorsAt: -1,
	}
}

// Identity returns the identity given to NewSource.
func (s *Source) Identity(context.Context) (string, error) { return s.identity, nil }

// A commit is one change of a Source.
type commit struct {
	Put     []Entry
	Delete  []string // document IDs
	Vectors map[string][]float32
	Model   string // model of Vectors
	Drop    string // model to drop
}

// commit applies a change, after writing it to the log if there is one, and returns its sequence
// number.
func (s *Source) commit(c commit) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log != nil {
		s.log.append(c)
	}
	s.apply(c)
	return s.sequence
}

func (s *Source) apply(c commit) {
	s.sequence++
	for _, e := range c.Put {
		d := e.Document
		s.latest[d.ID] = assay.Change{Sequence: s.sequence, ID: d.ID, Document: &d, Chunks: e.Chunks}
	}
	for _, id := range c.Delete {
		s.latest[id] = assay.Change{Sequence: s.sequence, ID: id, Deleted: true}
	}
	s.applyVectors(c.Model, c.Vectors)
	if _, ok := s.vectors[c.Drop]; ok {
		delete(s.vectors, c.Drop)
		s.dropped[c.Drop] = s.sequence
	}
}

// Put commits documents with their chunks as one change and returns its sequence number.
func (s *Source) Put(entries ...Entry) int64 { return s.commit(commit{Put: entries}) }

// Delete commits the removal of documents as one change and returns its sequence number.
func (s *Source) Delete(ids ...string) int64 { return s.commit(commit{Delete: ids}) }

// Skip advances the sequence number without changing a document, as the internal operations of a
// store may.
func (s *Source) Skip() { s.commit(commit{}) }

// Restore replaces the content of s, including the sequence number, by that of another source.
func (s *Source) Restore(other *Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	s.sequence, s.latest = other.sequence, maps.Clone(other.latest)
	s.vectors, s.dropped = make(map[string]map[string]storedVector), maps.Clone(other.dropped)
	for model, stored := range other.vectors {
		s.vectors[model] = maps.Clone(stored)
	}
}

// Read returns the number of changes that have been yielded.
func (s *Source) Read() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}

// FailAfter makes Changes fail with err after n changes. A negative n ends this.
func (s *Source) FailAfter(n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failAt, s.failure = n, err
}

// FailVectorsAfter makes Vectors fail with err after n vectors. A negative n ends this.
func (s *Source) FailVectorsAfter(n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failVectorsAt, s.failure = n, err
}

// Block makes Changes wait until Unblock. Blocked reports a waiting call.
func (s *Source) Block() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = make(chan struct{})
}

// Unblock ends the effect of Block.
func (s *Source) Unblock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.gate)
	s.gate = nil
}

// Blocked returns a channel that receives when a call of Changes waits.
func (s *Source) Blocked() <-chan struct{} { return s.blocked }

// Sequence implements index.Source.
func (s *Source) Sequence(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sequence, ctx.Err()
}

// Changes implements index.Source.
func (s *Source) Changes(ctx context.Context, after int64) iter.Seq2[assay.Change, error] {
	return func(yield func(assay.Change, error) bool) {
		if err := s.wait(ctx); err != nil {
			yield(assay.Change{}, err)
			return
		}
		for i, c := range s.after(after) {
			if err := cmp.Or(ctx.Err(), s.handOut(i)); err != nil {
				yield(assay.Change{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

func (s *Source) wait(ctx context.Context) error {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate == nil {
		return nil
	}
	s.blocked <- struct{}{}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handOut counts change i of a call, or returns the failure.
func (s *Source) handOut(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failAt >= 0 && i >= s.failAt {
		return s.failure
	}
	s.read++
	return nil
}

// uri returns the URI of a document that has been put.
func (s *Source) uri(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.latest[id].Document; d != nil {
		return d.URI
	}
	return "deleted " + id
}

// after returns a snapshot of the changes after a sequence number, in order.
func (s *Source) after(sequence int64) []assay.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changes []assay.Change
	for _, c := range s.latest {
		if c.Sequence > sequence && !(sequence == 0 && c.Deleted) {
			changes = append(changes, c)
		}
	}
	slices.SortFunc(changes, func(a, b assay.Change) int {
		return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.ID, b.ID))
	})
	return changes
}

// documents returns the current documents, sorted by ID.
func (s *Source) documents() []assay.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	var current []assay.Change
	for _, c := range s.latest {
		if !c.Deleted {
			current = append(current, c)
		}
	}
	slices.SortFunc(current, func(a, b assay.Change) int { return cmp.Compare(a.ID, b.ID) })
	return current
}

// An Entry is a document with its chunks.
type Entry struct {
	Document assay.Document
	Chunks   []assay.Chunk
}

// NewEntry returns a document of the collection with its identity and version. Each text becomes
// one chunk of prose.
func NewEntry(collection, uri, title string, texts ...string) Entry {
	d := assay.Document{ID: assay.DocumentID(collection, uri), Collection: collection, URI: uri, Title: title}
	var spans [][2]int
	for _, t := range texts {
		spans = append(spans, [2]int{len(d.Text), len(d.Text) + len(t)})
		d.Text += t + "\n\n"
	}
	d.Version = assay.DocumentVersion(d.Text, nil, "indextest")
	e := Entry{Document: d}
	for i, span := range spans {
		e.Chunks = append(e.Chunks, assay.Chunk{
			ID:       assay.ChunkID(d.ID, d.Version, i),
			Document: d.ID,
			Version:  d.Version,
			Ordinal:  i,
			Kind:     assay.ChunkProse,
			Start:    span[0],
			End:      span[1],
		})
	}
	return e
}
