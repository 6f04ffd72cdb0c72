package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
)

// A sharedSource is the source of a corpus with an ACL for each document. IDs and the name of the model
// are those of the store that dataDirectory makes.
type sharedSource struct {
	*source
	model string
}

var _ index.VectorSource = sharedSource{}

// The groups that may see every document, half of them and one in a hundred.
const (
	groupAll  = "group:all"
	groupHalf = "group:half"
	groupFew  = "group:few"
)

// groups are the groups, each with the share of the documents that it may see.
var groups = []struct {
	name, what string
	share      float64
}{{groupAll, "all", 1}, {groupHalf, "ACL keeps 50 %", 0.5}, {groupFew, "ACL keeps 1 %", 0.01}}

// seenBy returns the groups that may see a document.
func seenBy(document int) []string {
	var list []string
	for _, g := range groups {
		if share(document) < g.share {
			list = append(list, g.name)
		}
	}
	return list
}

// access returns the access of a member of a group.
func access(group string) assay.Access {
	return assay.Principal{User: "someone", Groups: []string{group[len("group:"):]}}.Access()
}

// Identity implements index.Identified.
func (s sharedSource) Identity(context.Context) (string, error) {
	return fmt.Sprintf("bench shared %d %x", s.corpus.chunks, s.corpus.hash), nil
}

// Changes implements index.Source.
func (s sharedSource) Changes(ctx context.Context, after int64) iter.Seq2[assay.Change, error] {
	return func(yield func(assay.Change, error) bool) {
		number := int(after)
		for change, err := range s.source.Changes(ctx, after) {
			if err != nil {
				yield(change, err)
				return
			}
			e := stored(change)
			if e.Document.ACL, err = assay.RestrictTo(seenBy(number)...); err != nil {
				yield(change, err)
				return
			}
			number++
			if !yield(assay.Change{Sequence: change.Sequence, ID: e.Document.ID, Document: &e.Document, Chunks: e.Chunks}, nil) {
				return
			}
		}
	}
}

// Models implements index.VectorSource.
func (s sharedSource) Models(context.Context) ([]string, error) { return []string{s.model}, nil }

// Vectors implements index.VectorSource.
func (s sharedSource) Vectors(ctx context.Context, model string, after int64) iter.Seq2[index.ChunkVector, error] {
	return func(yield func(index.ChunkVector, error) bool) {
		if model != s.model {
			return
		}
		for d := int(after); d < s.corpus.documents(); d++ {
			for i, id := range s.chunkIDs(d) {
				v := index.ChunkVector{Chunk: id, Values: s.vectors.row(int(s.corpus.first[d]) + i)}
				if err := ctx.Err(); err != nil || !yield(v, err) {
					return
				}
			}
		}
	}
}

// chunkIDs returns the IDs of a document's chunks.
func (s sharedSource) chunkIDs(document int) []string {
	id, version := assay.DocumentID("default", uri(document)), documentVersion(document, changedDocument{})
	ids := make([]string, s.corpus.first[document+1]-s.corpus.first[document])
	for i := range ids {
		ids[i] = assay.ChunkID(id, version, i)
	}
	return ids
}

// numbers returns the numbers of the chunks by their IDs.
func (s sharedSource) numbers() map[string]int {
	numbers := make(map[string]int, s.corpus.chunks)
	for d := range s.corpus.documents() {
		for i, id := range s.chunkIDs(d) {
			numbers[id] = int(s.corpus.first[d]) + i
		}
	}
	return numbers
}
