package index

import (
	"slices"
	"sync/atomic"
)

// A snapshot is one state of the index. It is immutable. Searches share it, and an update makes a
// new snapshot that shares the segments. A snapshot holds the files of its views as long as it has
// users.
type snapshot struct {
	sequence int64            // of the source; all changes up to it are included
	models   map[string]int64 // the same for the vectors of each model
	views    []*view

	users atomic.Int64
}

// A view is a segment with its deleted rows and the vectors of its chunks.
type view struct {
	segment      *segment
	deleted      bitset     // rows; nil: none
	live         int        // number of rows that are not deleted
	sidecars     []*sidecar // together they have at most one live vector of a model for each row
	visibilities *visibilityCache
}

// A sidecar is a file with one model's vectors of a segment's chunks.
type sidecar struct {
	file     *file
	vectors  *vectors
	replaced bitset // rows whose vector in it is obsolete; nil: none
}

// newSnapshot returns a snapshot with one user. It leaves out views without live rows.
func newSnapshot(sequence int64, models map[string]int64, views []*view) *snapshot {
	s := &snapshot{sequence: sequence, models: models}
	for _, v := range views {
		if v.live > 0 {
			s.views = append(s.views, v)
			v.eachFile((*file).hold)
		}
	}
	s.users.Store(1)
	return s
}

// use adds a user. The caller must already have a use or hold a lock that protects one.
func (s *snapshot) use() *snapshot {
	s.users.Add(1)
	return s
}

// release ends one use. The last release releases the files.
func (s *snapshot) release() {
	if s.users.Add(-1) == 0 {
		for _, v := range s.views {
			v.eachFile((*file).release)
		}
	}
}

func (v *view) eachFile(f func(*file)) {
	f(v.segment.file)
	for _, c := range v.sidecars {
		f(c.file)
	}
}

// files returns the names of the snapshot's files in the folder.
func (s *snapshot) files() []string {
	var names []string
	for _, v := range s.views {
		v.eachFile(func(f *file) { names = append(names, f.name) })
	}
	return names
}

func wholeView(s *segment) *view {
	return &view{segment: s, live: s.rows, visibilities: new(visibilityCache)}
}

// without returns a view of the same segment with additional deleted rows, or v if all of them were
// deleted already.
func (v *view) without(rows bitset) *view {
	deleted := newBitset(v.segment.rows)
	copy(deleted, v.deleted)
	deleted.or(rows)
	live := v.segment.rows - deleted.count()
	if live == v.live {
		return v
	}
	return &view{segment: v.segment, deleted: deleted, live: live, sidecars: v.sidecars, visibilities: new(visibilityCache)}
}

// withSidecars returns a view of the same rows with the given sidecars.
func (v *view) withSidecars(list []*sidecar) *view {
	return &view{segment: v.segment, deleted: v.deleted, live: v.live, sidecars: list, visibilities: v.visibilities}
}

// withoutDocuments returns the views with the given documents deleted.
func withoutDocuments(views []*view, ids map[rawID]struct{}) []*view {
	views = slices.Clone(views)
	for i, v := range views {
		var gone bitset
		for id := range ids {
			n, ok := v.segment.findDocument(id)
			if !ok {
				continue
			}
			if gone == nil {
				gone = newBitset(v.segment.rows)
			}
			gone.setRange(v.segment.rowsOf(n))
		}
		if gone != nil {
			views[i] = v.without(gone)
		}
	}
	return views
}

// findChunk returns the view and row of a live chunk.
func (s *snapshot) findChunk(id rawID) (view int, row uint32, ok bool) {
	for i, v := range s.views {
		if row, ok := v.segment.findChunk(id); ok && !v.deleted.has(row) {
			return i, row, true
		}
	}
	return 0, 0, false
}
