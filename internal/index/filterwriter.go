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

// A filterWriter writes the filters of a segment, either from documents or from the filters of
// other segments. Equal content gives equal bytes.
type filterWriter struct {
	columns map[columnID]*columnBuilder // from documents
	sources []filterSource
	value   []byte // buffer for the current call
}

// A filterSource is a set of filters to be merged. Chunk c becomes newChunk[c], and is dropped if
// that is gone.
type filterSource struct {
	filters  filters
	newChunk []uint32

	scratch *chunkUnion // empty, sized for the source's chunks

	// newMember belongs to the memberKind column that was merged last. It maps each value's number
	// to its number in the merged column, or to gone.
	newMember []uint32
}

func newFilterWriter() *filterWriter {
	return &filterWriter{columns: make(map[columnID]*columnBuilder)}
}

// add adds the chunks first to end-1 of one document. They must come after the chunks of the
// documents before. A document without chunks is ignored. A metadata value of an unknown kind is an
// error that wraps assay.ErrInvalid.
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

// addList records a list as the numbers of its members, in the order in which the members were
// first seen. writeDocuments replaces these numbers by sorted ranks.
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

// addSegment adds the filters of another segment. Chunk c gets the number newChunk[c], or is
// dropped if that is gone. New numbers ascend and come after those of the segments before. writeTo
// reads both f and newChunk, so they must stay unchanged and valid until writeTo has returned.
func (w *filterWriter) addSegment(f filters, newChunk []uint32) error {
	if len(newChunk) != int(f.chunks) {
		return fmt.Errorf("%d new numbers for %d chunks: %w", len(newChunk), f.chunks, assay.ErrInvalid)
	}
	w.sources = append(w.sources, filterSource{filters: f, newChunk: newChunk, scratch: newUnion(f.chunks)})
	return nil
}

// writeTo writes the filters of everything that was added, for a segment with the given number of
// chunks. It returns an error if a source is damaged or if out fails.
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

// writeDocuments writes the filters of the documents passed to add.
func (w *filterWriter) writeDocuments(e *filterEncoder) error {
	var ranks []uint32 // ranks of the previous column's values, by insertion order
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

// rankList converts a list as recorded by addList into its column value.
func rankList(value string, ranks []uint32) string {
	var b []byte
	size := memberBytes(len(ranks))
	for i := range len(value) / 4 {
		b = appendMember(b, ranks[u32([]byte(value), i)], size)
	}
	return string(b)
}

// A columnBuilder collects the values of one column from documents.
type columnBuilder struct {
	numbers map[string]uint32 // value numbers, in insertion order
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

// write writes values, indexed by number, in sorted order. It returns the rank of each value.
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
			if n := len(joined); n == 0 || r.start >= joined[n-1].end { // otherwise a list has a duplicate member
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

// byRank returns the runs of all values grouped by rank, and the end of each group.
func (b *columnBuilder) byRank(ranks []uint32) (runs []chunkRun, ends []int) {
	ends = make([]int, len(ranks)+1) // during counting shifted by one: the starts of the groups
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
