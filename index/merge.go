package index

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
)

// mergeRatio says how much larger than all smaller segments together a segment
// is that stays as it is: a segment of at most mergeRatio times their rows is
// merged with them. So after merging n rows are in about log₅ n segments, and a
// row is rewritten some times for each factor of five by which the index grows
// in small steps; what a first ingest leaves is merged once.
const mergeRatio = 4

// Fewer segments than fewSmall, of fewer rows together than limits.smallRows, are
// left alone: merging them after every update would cost more than searching them
// does.
const fewSmall = 4

// maxMergedRows is the size up to which segments are merged: rewriting them takes
// about a minute, and as much disk as they do for that long.
const maxMergedRows = 4 << 20

// toMerge returns the views that should become one next, nil for none. It may be
// a single one, of which more than half is deleted.
func toMerge(views []*view, smallRows int) []*view {
	bySize := slices.Clone(views)
	slices.SortStableFunc(bySize, func(a, b *view) int { return cmp.Compare(b.live, a.live) })
	for _, v := range bySize {
		if 2*v.live < v.segment.rows {
			return []*view{v}
		}
	}
	sum := 0 // of the views from the end on
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

// gone is what a row that is not in a merged segment becomes, and a member of lists
// that is not in its filters.
const gone = ^uint32(0)

// A merged segment is what several views became.
type merged struct {
	view    *view // nil: nothing of them was left
	from    []*view
	newRows [][]uint32 // for each of from: what its rows became, gone for the deleted
}

// merge makes one segment of the live documents of several, and of their vectors
// one sidecar for each model.
func merge(ctx context.Context, views []*view, to *site) (*merged, error) {
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
		filters = nil // a large part of what a merge needs
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

// roomFor returns no rows yet, with room for all that views have.
func roomFor(views []*view) rows {
	live, documents := 0, 0
	for _, v := range views {
		live += v.live
		documents += v.segment.documentCount
	}
	return rows{ids: make([]byte, 0, live*idBytes), lengths: make([]uint32, 0, live), documents: make([]byte, 0, documents*documentBytes)}
}

// addView adds a view's live documents and returns what its rows became.
func (r *rows) addView(v *view) ([]uint32, error) {
	s := v.segment
	newRow := make([]uint32, s.rows)
	for i := range newRow {
		newRow[i] = gone
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

// A mergeSource is one of the dictionaries that are merged.
type mergeSource struct {
	terms   *termIterator
	current string
	ordinal int // of the current term in its dictionary
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

// mergeTerms calls add for each term of some dictionary of the views that has
// postings left, in order, with those and whose it is.
func (m *merged) mergeTerms(ctx context.Context, of func(*segment) dictionary, add func(string, []posting, []*mergeSource) error) error {
	var sources []*mergeSource // by current term and number
	order := func(a, b *mergeSource) int {
		return cmp.Or(strings.Compare(a.current, b.current), cmp.Compare(a.number, b.number))
	}
	// advance puts a source that is not in the list back to its place.
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
				if row := s.newRow[p.chunk]; row != gone {
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

// mergeEntities writes the entities of all views and which of them each row names,
// and ends the segment.
func (m *merged) mergeEntities(ctx context.Context, w *segmentWriter) error {
	w.endTerms()
	became := make([][]uint32, len(m.from)) // by the number that each view's entities had
	for i, v := range m.from {
		became[i] = make([]uint32, v.segment.entities.count)
		for n := range became[i] {
			became[i][n] = gone
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

// moveMentions writes the mentions of the segment's rows that become next and those
// after it, and returns the row after the last.
func (s *segment) moveMentions(w *segmentWriter, newRow, became []uint32, next uint32) (uint32, error) {
	r, err := s.mentions.from(0)
	if err != nil {
		return 0, err
	}
	var list []mention
	for _, row := range newRow {
		if list, err = r.next(list[:0], row == gone); err != nil {
			return 0, err
		}
		if row == gone {
			continue
		}
		if row != next {
			return 0, damaged("order of documents")
		}
		next++
		for i, m := range list {
			if list[i].entity = became[m.entity]; list[i].entity == gone {
				return 0, damaged("mentions of a row")
			}
		}
		w.mentions.add(list)
	}
	return next, nil
}

// in returns a snapshot's views with the merged one in place of those that it was
// made of. What has been deleted in those or got vectors since the merge began is
// so in it too.
func (m *merged) in(ctx context.Context, views []*view, to *site) ([]*view, error) {
	var rest []*view
	now := make([]*view, len(m.from)) // nil: everything in it was deleted
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
			if newRow != gone && (v == nil || v.deleted.has(uint32(row))) {
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

// lateVectors returns the merged view with a model's vectors as its sources have
// them now.
func (m *merged) lateVectors(ctx context.Context, v *view, now []*view, model string, to *site) (*view, error) {
	var late, all []movedSidecar
	kept := true // those that were merged are still there
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

// mergeInMemory merges the views that are only in memory, as toMerge says.
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
		m, err := merge(ctx, group, new(site))
		if err != nil {
			return nil, err
		}
		if views, err = m.in(ctx, views, new(site)); err != nil {
			return nil, err
		}
	}
}
