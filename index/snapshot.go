package index

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// A snapshot is one state of the index. It is immutable: searches share it, and
// an update makes another that shares the segments.
type snapshot struct {
	sequence int64 // of the source, up to which it holds all changes
	views    []view
	chunks   int            // live
	total    [fields]uint64 // sum of their lengths in terms
}

// A view is a segment and which of its documents have been deleted since.
type view struct {
	segment   *segment
	deleted   bitset // documents; nil: none
	documents int    // live
	chunks    int    // live
	total     [fields]uint64
}

func wholeView(s *segment) view {
	return view{segment: s, documents: s.documentCount, chunks: s.chunkCount, total: s.total}
}

// without returns a view of the same segment in which these documents, live
// until now, are deleted.
func (v view) without(documents []uint32) view {
	deleted := newBitset(v.segment.documentCount)
	copy(deleted, v.deleted)
	v.deleted = deleted
	for _, n := range documents {
		deleted.set(n)
		v.documents--
		first, end := v.segment.chunksOf(n)
		v.chunks -= int(end - first)
		for c := first; c < end; c++ {
			for f, length := range v.segment.fieldLengths(c) {
				v.total[f] -= uint64(length)
			}
		}
	}
	return v
}

func newSnapshot(sequence int64, views []view) *snapshot {
	s := &snapshot{sequence: sequence, views: views}
	for _, v := range views {
		s.chunks += v.chunks
		for f, n := range v.total {
			s.total[f] += n
		}
	}
	return s
}

// builderChunks is how many chunks a builder takes before its segment is cut.
// It bounds the memory of a rebuild to some hundred MB beside the index itself.
const builderChunks = 1 << 16

// advance returns the snapshot after s, which holds all that src had committed
// up to sequence, and whatever it committed since.
func (s *snapshot) advance(ctx context.Context, src Source, sequence int64, a *analysis.Analyzer) (*snapshot, error) {
	changed := make(map[string]struct{})
	b := newBuilder()
	var fresh []view
	cut := func() error {
		segment, err := b.segment()
		if err == nil {
			fresh = append(fresh, wholeView(segment))
			b = newBuilder()
		}
		return err
	}
	for c, err := range src.Changes(ctx, s.sequence) {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		if _, twice := changed[c.ID]; twice {
			return nil, fmt.Errorf("document %s comes twice among the changes: %w", c.ID, assay.ErrDamaged)
		}
		changed[c.ID] = struct{}{}
		sequence = max(sequence, c.Sequence)
		if c.Deleted {
			continue
		}
		if c.Document == nil || c.Document.ID != c.ID {
			return nil, fmt.Errorf("change %d of document %s comes without it: %w", c.Sequence, c.ID, assay.ErrDamaged)
		}
		if err := b.add(c.Document, c.Chunks, a); err != nil {
			return nil, err
		}
		if len(b.chunks) >= builderChunks {
			if err := cut(); err != nil {
				return nil, err
			}
		}
	}
	if len(b.documents) > 0 {
		if err := cut(); err != nil {
			return nil, err
		}
	}
	views, err := mergeViews(append(withoutDocuments(s.views, changed), fresh...))
	if err != nil {
		return nil, err
	}
	return newSnapshot(sequence, views), nil
}

// withoutDocuments returns the views with the documents of these IDs deleted.
func withoutDocuments(views []view, ids map[string]struct{}) []view {
	views = slices.Clone(views)
	for i, v := range views {
		var found []uint32
		for id := range ids {
			if n, ok := v.segment.find(id); ok && !v.deleted.has(n) {
				found = append(found, n)
			}
		}
		if len(found) > 0 {
			views[i] = v.without(found)
		}
	}
	return views
}
