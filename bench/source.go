package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// A source provides a corpus, its vectors and its changes to an assay index. Document i was
// committed as sequence i+1. Only the changes are kept on the heap. It is safe for concurrent use.
type source struct {
	corpus  *corpus
	vectors *vectorSet // nil: none

	mu       sync.Mutex
	sequence int64
	changed  map[int]changedDocument // by number
}

// A changedDocument is the new state of a document of the corpus.
type changedDocument struct {
	sequence int64
	deleted  bool
	word     string // added to its first chunk
}

var _ index.VectorSource = (*source)(nil)

// benchModel is the name of the vectors' model in every source here.
const benchModel = "bench"

func newSource(c *corpus, v *vectorSet) *source {
	return &source{corpus: c, vectors: v, sequence: int64(c.documents()), changed: make(map[int]changedDocument)}
}

// update commits documents that differ by one additional word in their first chunk.
func (s *source) update(word string, documents ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sequence++
	for _, d := range documents {
		s.changed[d] = changedDocument{sequence: s.sequence, word: word}
	}
}

// remove commits the removal of documents.
func (s *source) remove(documents ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sequence++
	for _, d := range documents {
		s.changed[d] = changedDocument{sequence: s.sequence, deleted: true}
	}
}

// Identity implements index.Identified.
func (s *source) Identity(context.Context) (string, error) {
	return fmt.Sprintf("bench %d %x", s.corpus.chunks, s.corpus.hash), nil
}

// Sequence implements index.Source.
func (s *source) Sequence(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sequence, ctx.Err()
}

// Changes implements index.Source.
func (s *source) Changes(ctx context.Context, after int64) iter.Seq2[assay.Change, error] {
	return func(yield func(assay.Change, error) bool) {
		for document, state := range s.since(after) {
			if err := ctx.Err(); err != nil {
				yield(assay.Change{}, err)
				return
			}
			if !yield(s.change(document, state), nil) {
				return
			}
		}
	}
}

// since yields the documents that changed after a sequence with their states, in the order of the
// sequence.
func (s *source) since(after int64) iter.Seq2[int, changedDocument] {
	type change struct {
		document int
		state    changedDocument
	}
	return func(yield func(int, changedDocument) bool) {
		s.mu.Lock()
		var later []change
		for d, state := range s.changed {
			later = append(later, change{d, state})
		}
		s.mu.Unlock()
		slices.SortFunc(later, func(a, b change) int {
			if a.state.sequence != b.state.sequence {
				return int(a.state.sequence - b.state.sequence)
			}
			return a.document - b.document
		})
		replaced := make(map[int]bool, len(later))
		for _, c := range later {
			replaced[c.document] = true
		}
		for d := int(after); d < s.corpus.documents(); d++ {
			if !replaced[d] && !yield(d, changedDocument{sequence: int64(d) + 1}) {
				return
			}
		}
		for _, c := range later {
			if c.state.sequence > after && !yield(c.document, c.state) {
				return
			}
		}
	}
}

// change returns the change that corresponds to a document's state.
func (s *source) change(document int, state changedDocument) assay.Change {
	change := assay.Change{Sequence: state.sequence, ID: documentID(document), Deleted: state.deleted}
	if state.deleted {
		return change
	}
	from := s.corpus.document(document)
	d := &assay.Document{ID: change.ID, Version: documentVersion(document, state), URI: uri(document), Title: from.Title, Metadata: metadata(document, from)}
	var chunks []assay.Chunk
	for i, c := range from.Chunks {
		start := len(d.Text)
		d.Text += c.Text
		if i == 0 && state.word != "" {
			d.Text += " " + state.word
		}
		chunk := assay.Chunk{ID: assay.ChunkID(d.ID, d.Version, i), Document: d.ID, Version: d.Version, Ordinal: i, Kind: assay.ChunkProse, Start: start, End: len(d.Text)}
		if c.Heading != "" {
			chunk.Headings = []string{c.Heading}
		}
		chunks = append(chunks, chunk)
		d.Text += "\n"
	}
	change.Document, change.Chunks = d, chunks
	return change
}

// Models implements index.VectorSource.
func (s *source) Models(context.Context) ([]string, error) {
	if s.vectors == nil {
		return nil, nil
	}
	return []string{benchModel}, nil
}

// Vectors implements index.VectorSource.
func (s *source) Vectors(ctx context.Context, model string, after int64) iter.Seq2[index.ChunkVector, error] {
	return func(yield func(index.ChunkVector, error) bool) {
		if s.vectors == nil || model != benchModel {
			return
		}
		for document, state := range s.since(after) {
			if state.deleted {
				continue
			}
			first, end := s.corpus.first[document], s.corpus.first[document+1]
			id, version := documentID(document), documentVersion(document, state)
			for i := range int(end - first) {
				v := index.ChunkVector{Chunk: assay.ChunkID(id, version, i), Values: s.vectors.row(int(first) + i)}
				if err := ctx.Err(); err != nil || !yield(v, nil) {
					return
				}
			}
		}
	}
}

func uri(document int) string { return fmt.Sprintf("/bench/%d", document) }

func documentID(document int) string { return assay.DocumentID("", uri(document)) }

// documentVersion returns a version without hashing the text again.
func documentVersion(document int, state changedDocument) string {
	return assay.DocumentVersion(uri(document)+state.word, nil, "")
}

// metadata returns the values used by filters: a number that is uniform in [0, 1), a string with
// eight values and a time within three years.
func metadata(document int, d corpusDocument) assay.Metadata {
	day := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, document%1000)
	return assay.Metadata{
		"share":    assay.NumberValue(d.Share),
		"team":     assay.StringValue(fmt.Sprintf("team-%d", document%8)),
		"modified": assay.TimeValue(day),
	}
}
