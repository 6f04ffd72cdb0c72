package index

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
)

// mergeRatio is the size ratio below which segments are merged. A segment is merged with all
// smaller segments if it has at most mergeRatio times their rows together. So after merging, n rows
// are in about log₅ n segments. A row is rewritten a few times for each factor of five by which the
// index grows in small steps. The segments of a first ingest are merged once.
const mergeRatio = 4

// fewSmall is the number of small segments that triggers a merge. Fewer than fewSmall segments with
// fewer than limits.smallRows rows together are left alone, because merging them after every update
// would cost more than searching them.
const fewSmall = 4

// maxMergedRows is the largest number of rows of a merged segment. Rewriting that many rows takes
// about a minute, and during that time as much disk space as they occupy.
const maxMergedRows = 4 << 20

// toMerge returns the views to merge next, or nil if there are none. It may return a single view if
// more than half of its rows are deleted.
func toMerge(views []*view, smallRows int) []*view {
	bySize := slices.Clone(views)
	slices.SortStableFunc(bySize, func(a, b *view) int { return cmp.Compare(b.live, a.live) })
	for _, v := range bySize {
		if 2*v.live < v.segment.rows {
			return []*view{v}
		}
	}
	sum := 0 // live rows of the views after i
	var group []*view
	for i := len(bySize) - 1; i >= 0; i-- {
		v := bySize[i]
		small := sum+v.live < smallRows && len(bySize)-i < fewSmall
		if sum > 0 && v.live <= mergeRatio*sum && sum+v.live <= maxMergedRows && !small {
			group = bySize[i:]
		}
		sum += v.live
	}
	return slices.Clone(group)
}

// dropped is the new number of a row that is not in a merged segment, and of a list member that is
// not in its filters.
const dropped = ^uint32(0)

// A merged segment is the result of merging several views.
type merged struct {
	view    *view // nil: no live rows were left
	from    []*view
	newRows [][]uint32 // new row numbers for each of from, gone for deleted rows
}

// merge merges the live documents of several views into one segment, and their vectors into one
// sidecar for each model.
func merge(ctx context.Context, views []*view, to *fileSink) (*merged, error) {
	m := &merged{from: views}
	r := roomFor(views)
	filters := newFilterWriter()
	for _, v := range views {
		newRow, err := r.addView(v)
		if err != nil {
			return nil, err
		}
		if err := filters.addSegment(v.segment.filters, newRow); err != nil {
			return nil, err
		}
		m.newRows = append(m.newRows, newRow)
	}
	if r.count() == 0 {
		return m, nil
	}
	s, err := makeSegment(to, func(w io.Writer) error {
		sw, err := newSegmentWriter(w, &r, filters)
		if err != nil {
			return err
		}
		filters = nil // frees a large part of a merge's memory
		if err := m.mergeTerms(ctx, (*segment).termDictionary, func(term string, list []posting, _ []*mergeSource) error {
			return sw.term(term, list)
		}); err != nil {
			return err
		}
		return m.mergeEntities(ctx, sw)
	})
	if err != nil {
		return nil, err
	}
	m.view = wholeView(s)
	for _, model := range modelsOf(views) {
		var parts []movedSidecar
		for i, v := range views {
			parts = append(parts, v.moved(model, m.newRows[i])...)
		}
		c, err := joinSidecars(ctx, parts, s, to)
		if err != nil {
			return nil, err
		}
		if c != nil {
			m.view = m.view.addSidecar(c)
		}
	}
	return m, nil
}

// roomFor returns empty rows with capacity for all live rows of the views.
func roomFor(views []*view) rows {
	live, documents := 0, 0
	for _, v := range views {
		live += v.live
		documents += v.segment.documentCount
	}
	return rows{ids: make([]byte, 0, live*idBytes), lengths: make([]uint32, 0, live), documents: make([]byte, 0, documents*documentBytes)}
}

// addView adds a view's live documents and returns the new number of each of its rows.
func (r *rows) addView(v *view) ([]uint32, error) {
	s := v.segment
	newRow := make([]uint32, s.rows)
	for i := range newRow {
		newRow[i] = dropped
	}
	blank := s.blank
	for n := range uint32(s.documentCount) {
		first, end := s.rowsOf(n)
		if first == end {
			return nil, damaged("a document without rows")
		}
		if v.deleted.has(first) {
			continue
		}
		d := s.document(n)
		r.addDocument(d[:idBytes], d[idBytes:2*idBytes])
		for row := first; row < end; row++ {
			newRow[row] = uint32(r.count())
			for len(blank) > 0 && blank[0] < row {
				blank = blank[1:]
			}
			if len(blank) > 0 && blank[0] == row {
				r.addBlank()
			} else {
				r.addChunk(id(s.ids, row), s.length(row))
			}
		}
	}
	return newRow, nil
}

// A mergeSource is one of the dictionaries being merged.
type mergeSource struct {
	terms   *termIterator
	current string
	ordinal int // number of the current term in its dictionary
	newRow  []uint32
	number  int
}

func (s *mergeSource) next() (bool, error) {
	if !s.terms.next() {
		return false, s.terms.err()
	}
	s.current = s.terms.term()
	s.ordinal++
	return true, nil
}

func (s *segment) termDictionary() dictionary   { return s.dictionary }
func (s *segment) entityDictionary() dictionary { return s.entities }

// mergeTerms calls add, in order, for each term in the views' dictionaries that has postings left.
// It passes the postings and the sources that have the term.
func (m *merged) mergeTerms(ctx context.Context, of func(*segment) dictionary, add func(string, []posting, []*mergeSource) error) error {
	var sources []*mergeSource // sorted by current term and number
	order := func(a, b *mergeSource) int {
		return cmp.Or(strings.Compare(a.current, b.current), cmp.Compare(a.number, b.number))
	}
	// advance moves a source to its next term and inserts it in the list.
	advance := func(s *mergeSource) error {
		more, err := s.next()
		if err != nil || !more {
			return err
		}
		i, _ := slices.BinarySearchFunc(sources, s, order)
		sources = slices.Insert(sources, i, s)
		return nil
	}
	for i, v := range m.from {
		if err := advance(&mergeSource{terms: of(v.segment).terms(), ordinal: -1, newRow: m.newRows[i], number: i}); err != nil {
			return err
		}
	}
	var list []posting
	var same []*mergeSource
	for n := 0; len(sources) > 0; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		term := sources[0].current
		same, list = same[:0], list[:0]
		for len(sources) > 0 && sources[0].current == term {
			s := sources[0]
			sources = slices.Delete(sources, 0, 1)
			same = append(same, s)
			err := s.terms.postings().each(func(p posting) {
				if row := s.newRow[p.chunk]; row != dropped {
					list = append(list, posting{row, p.tf})
				}
			})
			if err != nil {
				return err
			}
		}
		if len(list) > 0 {
			if err := add(term, list, same); err != nil {
				return err
			}
		}
		for _, s := range same {
			if err := advance(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// mergeEntities writes the entities of all views and the mentions of each row, and ends the
// segment.
func (m *merged) mergeEntities(ctx context.Context, w *segmentWriter) error {
	w.endTerms()
	became := make([][]uint32, len(m.from)) // new entity numbers by view and old number
	for i, v := range m.from {
		became[i] = make([]uint32, v.segment.entities.count)
		for n := range became[i] {
			became[i][n] = dropped
		}
	}
	next := uint32(0)
	err := m.mergeTerms(ctx, (*segment).entityDictionary, func(key string, list []posting, from []*mergeSource) error {
		for _, s := range from {
			became[s.number][s.ordinal] = next
		}
		next++
		return w.entity(key, list)
	})
	if err != nil {
		return err
	}
	w.endEntities()
	row := uint32(0)
	for i, v := range m.from {
		if row, err = v.segment.moveMentions(w, m.newRows[i], became[i], row); err != nil {
			return err
		}
	}
	return w.finish()
}

// moveMentions writes the mentions of the segment's rows, whose new numbers start at next, and
// returns the row after the last.
func (s *segment) moveMentions(w *segmentWriter, newRow, became []uint32, next uint32) (uint32, error) {
	r, err := s.mentions.from(0)
	if err != nil {
		return 0, err
	}
	var list []mention
	for _, row := range newRow {
		if list, err = r.next(list[:0], row == dropped); err != nil {
			return 0, err
		}
		if row == dropped {
			continue
		}
		if row != next {
			return 0, damaged("order of documents")
		}
		next++
		for i, m := range list {
			if list[i].entity = became[m.entity]; list[i].entity == dropped {
				return 0, damaged("mentions of a row")
			}
		}
		w.mentions.add(list)
	}
	return next, nil
}

// in returns a snapshot's views with the merged view in place of its sources. Deletions and vectors
// that the sources have received since the merge began are applied to the merged view.
func (m *merged) in(ctx context.Context, views []*view, to *fileSink) ([]*view, error) {
	var rest []*view
	now := make([]*view, len(m.from)) // nil: all its rows were deleted
	for _, v := range views {
		i := slices.IndexFunc(m.from, func(f *view) bool { return f.segment == v.segment })
		if i < 0 {
			rest = append(rest, v)
		} else {
			now[i] = v
		}
	}
	if m.view == nil {
		return rest, nil
	}
	deleted := newBitset(m.view.segment.rows)
	for i, v := range now {
		for row, newRow := range m.newRows[i] {
			if newRow != dropped && (v == nil || v.deleted.has(uint32(row))) {
				deleted.set(newRow)
			}
		}
	}
	v := m.view.without(deleted)
	if v.live == 0 {
		return rest, nil
	}
	for _, model := range modelsOf(append(slices.Clip(now), m.view)) {
		var err error
		if v, err = m.lateVectors(ctx, v, now, model, to); err != nil {
			return nil, err
		}
	}
	return append(rest, v), nil
}

// lateVectors returns the merged view with a model's vectors as its sources have them now.
func (m *merged) lateVectors(ctx context.Context, v *view, now []*view, model string, to *fileSink) (*view, error) {
	var late, all []movedSidecar
	kept := true // the merged sidecars are still in use
	for i, n := range now {
		if n == nil {
			continue
		}
		before := m.from[i].moved(model, nil)
		parts := n.moved(model, m.newRows[i])
		all = append(all, parts...)
		for _, p := range parts {
			if old := slices.IndexFunc(before, func(b movedSidecar) bool { return b.vectors == p.vectors }); old >= 0 {
				before = slices.Delete(before, old, old+1)
			} else {
				late = append(late, p)
			}
		}
		kept = kept && len(before) == 0
	}
	if !kept {
		v = v.withoutModels(func(name string) bool { return name == model })
		late = all
	}
	c, err := joinSidecars(ctx, late, v.segment, to)
	if err != nil || c == nil {
		return v, err
	}
	return v.addSidecar(c), nil
}

// mergeInMemory merges the views that are only in memory, as selected by toMerge.
func mergeInMemory(ctx context.Context, views []*view, smallRows int) ([]*view, error) {
	for {
		var inMemory []*view
		for _, v := range views {
			if v.segment.file.folder == nil {
				inMemory = append(inMemory, v)
			}
		}
		group := toMerge(inMemory, smallRows)
		if group == nil {
			return views, nil
		}
		m, err := merge(ctx, group, new(fileSink))
		if err != nil {
			return nil, err
		}
		if views, err = m.in(ctx, views, new(fileSink)); err != nil {
			return nil, err
		}
	}
}
