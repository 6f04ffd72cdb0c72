package index

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// A filterWriter makes the filters of a segment, either from documents or from the
// filters of other segments. Equal content gives equal bytes.
type filterWriter struct {
	columns map[columnID]*columnBuilder // of the documents
	sources []filterSource
	value   []byte // of the call in progress
}

// A filterSource is filters to be merged. Their chunk c becomes newChunk[c], and is
// left out if that is gone.
type filterSource struct {
	filters  filters
	newChunk []uint32

	scratch *chunkUnion // empty, for the filters' chunks

	// newMember is of the memberKind column that was merged last: of each value its
	// number in the merged one, or gone.
	newMember []uint32
}

func newFilterWriter() *filterWriter {
	return &filterWriter{columns: make(map[columnID]*columnBuilder)}
}

// add takes the chunks first to end-1 of one document, which come after those of the
// documents before. A document without chunks leaves no trace. A metadata value of no
// kind is assay.ErrInvalid.
func (w *filterWriter) add(first, end uint32, m assay.Metadata, acl assay.ACL, collection, language string) error {
	for key, v := range m {
		if !slices.Contains(valueKinds, v.Kind) {
			return fmt.Errorf("metadata key %q has a value of no kind: %w", key, assay.ErrInvalid)
		}
	}
	if first >= end {
		return nil
	}
	run := chunkRun{first, end}
	for key, v := range m {
		if v.Kind == assay.KindList {
			w.addList(key, v.List, run)
		} else {
			w.addValue(columnID{metadataColumns, key, columnKindOf(v.Kind)}, v, run)
		}
	}
	if acl.Restricted {
		for _, name := range acl.Allow {
			w.addValue(columnID{class: aclColumns, kind: stringKind}, assay.StringValue(name), run)
		}
	} else {
		w.addValue(columnID{class: aclColumns, kind: booleanKind}, assay.BooleanValue(true), run)
	}
	w.addValue(columnID{class: collectionColumns, kind: stringKind}, assay.StringValue(collection), run)
	w.addValue(columnID{class: languageColumns, kind: stringKind}, assay.StringValue(language), run)
	return nil
}

func (w *filterWriter) addValue(id columnID, v assay.Value, run chunkRun) uint32 {
	w.value = appendValue(w.value[:0], v)
	return w.column(id).add(w.value, run)
}

// addList notes a list as the numbers of its members in the order in which they were
// first seen; documents makes their order of those.
func (w *filterWriter) addList(key string, list []string, run chunkRun) {
	var value []byte
	for _, member := range list {
		n := w.addValue(columnID{metadataColumns, key, memberKind}, assay.StringValue(member), run)
		value = binary.LittleEndian.AppendUint32(value, n)
	}
	w.column(columnID{metadataColumns, key, listKind}).add(value, run)
}

func (w *filterWriter) column(id columnID) *columnBuilder {
	b := w.columns[id]
	if b == nil {
		b = &columnBuilder{numbers: make(map[string]uint32)}
		w.columns[id] = b
	}
	return b
}

// addSegment takes the filters of another segment, of which chunk c gets the number
// newChunk[c], or none if that is gone. New numbers ascend, and come after those of
// the segments before. Both are read by writeTo: until that has returned they must not
// change nor go away.
func (w *filterWriter) addSegment(f filters, newChunk []uint32) error {
	if len(newChunk) != int(f.chunks) {
		return fmt.Errorf("%d new numbers for %d chunks: %w", len(newChunk), f.chunks, assay.ErrInvalid)
	}
	w.sources = append(w.sources, filterSource{filters: f, newChunk: newChunk, scratch: newUnion(f.chunks)})
	return nil
}

// writeTo writes the filters of all that was added, for a segment with so many chunks.
// An error is that of a damaged source or of out, which ends it.
func (w *filterWriter) writeTo(out io.Writer, chunks uint32) error {
	e := &filterEncoder{chunks: chunks, out: out}
	switch {
	case len(w.sources) == 0:
		return w.writeDocuments(e)
	case len(w.columns) > 0:
		return fmt.Errorf("filters of both documents and segments: %w", assay.ErrInvalid)
	}
	return mergeFilters(w.sources, e)
}

// writeDocuments writes what add took.
func (w *filterWriter) writeDocuments(e *filterEncoder) error {
	var ranks []uint32 // of the column before, of each value by the order in which they came
	for _, id := range slices.SortedFunc(maps.Keys(w.columns), columnID.compare) {
		b := w.columns[id]
		values := make([]string, len(b.numbers))
		for value, n := range b.numbers {
			values[n] = value
		}
		if id.kind == listKind {
			for i, value := range values {
				values[i] = rankList(value, ranks)
			}
		}
		e.begin(id)
		var err error
		if ranks, err = b.write(e, values); err != nil {
			return err
		}
		if err := e.end(); err != nil {
			return err
		}
	}
	return e.finish()
}

// rankList turns what addList makes of a list into the value of its column.
func rankList(value string, ranks []uint32) string {
	var b []byte
	size := memberBytes(len(ranks))
	for i := range len(value) / 4 {
		b = appendMember(b, ranks[u32([]byte(value), i)], size)
	}
	return string(b)
}

// A columnBuilder collects the values that documents have.
type columnBuilder struct {
	numbers map[string]uint32 // of the values, in the order in which they came
	entries []columnEntry
}

type columnEntry struct {
	value uint32
	run   chunkRun
}

func (b *columnBuilder) add(value []byte, run chunkRun) uint32 {
	n, ok := b.numbers[string(value)]
	if !ok {
		n = uint32(len(b.numbers))
		b.numbers[string(value)] = n
	}
	b.entries = append(b.entries, columnEntry{n, run})
	return n
}

// write writes the values, which are given by their numbers, and returns of each its
// rank among them.
func (b *columnBuilder) write(e *filterEncoder, values []string) ([]uint32, error) {
	order := make([]uint32, len(values))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(i, j uint32) int { return strings.Compare(values[i], values[j]) })
	ranks := make([]uint32, len(values))
	for rank, n := range order {
		ranks[n] = uint32(rank)
	}
	runs, ends := b.byRank(ranks)
	start := 0
	var joined []chunkRun
	for rank, n := range order {
		joined = joined[:0]
		for _, r := range runs[start:ends[rank]] {
			if n := len(joined); n == 0 || r.start >= joined[n-1].end { // else a list has a member twice
				joined = appendRun(joined, r.start, r.end)
			}
		}
		start = ends[rank]
		if err := e.add([]byte(values[n]), joined); err != nil {
			return nil, err
		}
	}
	return ranks, nil
}

// byRank returns the runs of all values, one value's after the other's, and where those
// of each end.
func (b *columnBuilder) byRank(ranks []uint32) (runs []chunkRun, ends []int) {
	ends = make([]int, len(ranks)+1) // first one place later: where those of the value begin
	for _, entry := range b.entries {
		ends[ranks[entry.value]+1]++
	}
	for r := 1; r < len(ends); r++ {
		ends[r] += ends[r-1]
	}
	runs = make([]chunkRun, len(b.entries))
	for _, entry := range b.entries {
		r := ranks[entry.value]
		runs[ends[r]] = entry.run
		ends[r]++
	}
	return runs, ends
}
