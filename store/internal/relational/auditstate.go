package relational

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
)

// An auditState is what must be stored according to the log. It is built by replaying the log.
type auditState struct {
	maxOffers int

	runs        map[string]*runState
	begun       []*runState // by their begin
	offered     []int       // runs by their place in begun, sorted
	items       map[itemName]itemState
	documents   map[string]*documentState // by ID
	files       map[string]fileState      // by fileID
	collections map[string]collectionSet
	sources     map[string]string // rows by name

	records     int64 // entries that are records
	acts        int64 // entries that are acts
	contentActs int64
	changes     int64            // of the registry
	erased      map[int64]bool   // entries whose payload an act erased
	empty       []journal.Act    // acts without a payload
	gone        map[string]int64 // by run, the last act after which the payloads of the acts on it are gone
}

type (
	runState struct {
		place    int // in begun
		sequence int64
		runBegun
		state   assay.RunState
		answer  string // hash; empty: none
		err     string
		pins    map[pin]bool
		steps   int
		offer   string
		review  *reviewState // nil: none
		shares  map[string]shareStored
		deleted bool
		erased  int64 // entry of the act after which its payloads are gone; 0: none
		left    runErased
	}
	reviewState struct {
		sequence int64
		reviewStored
	}
	itemName  struct{ kind, name string }
	itemState struct {
		sequence int64
		journal.Item
	}
	documentState struct {
		entry    int64  // of its last act; 0: the act waits in content.db
		sequence int64  // of its last change
		current  string // version; empty: deleted
		row      string // while it is deleted
		versions map[string]versionState
	}
	versionState struct {
		entry    int64
		row      string
		replaced int64 // nanoseconds since 1970; 0: current
	}
	fileState struct {
		entry int64
		row   string
	}
)

func newAuditState(maxOffers int) *auditState {
	return &auditState{
		maxOffers: maxOffers, runs: map[string]*runState{}, items: map[itemName]itemState{}, documents: map[string]*documentState{},
		files: map[string]fileState{}, collections: map[string]collectionSet{}, sources: map[string]string{}, erased: map[int64]bool{}, gone: map[string]int64{},
	}
}

// record counts a record.
func (s *auditState) record(h journal.Header) error {
	s.records++
	r := s.runs[h.Run]
	switch {
	case r == nil:
		return fmt.Errorf("the record %s is of the run %s, which has not begun", h.Path, h.Run)
	case r.deleted:
		return fmt.Errorf("the record %s is of the run %s, which is deleted", h.Path, h.Run)
	case h.Ordinal != r.steps:
		return fmt.Errorf("the record %s of the run %s has the ordinal %d, want %d", h.Path, h.Run, h.Ordinal, r.steps)
	}
	r.steps++
	r.state = assay.RunActive
	return nil
}

// act applies an act. Its Sequence is 0 if it waits in content.db.
func (s *auditState) act(a journal.Act, hasPayload bool) error {
	if contentKinds[a.Kind] {
		s.contentActs++
	}
	if a.Sequence > 0 {
		s.acts++
	}
	if !hasPayload {
		s.empty = append(s.empty, a)
	}
	if a.Registry {
		s.changes++
	}
	if a.Item != nil {
		name := itemName{a.Item.Kind, a.Item.Name}
		if a.Item.Value == "" {
			delete(s.items, name)
		} else {
			s.items[name] = itemState{a.Sequence, *a.Item}
		}
	}
	switch a.Kind {
	case store.KindRunBegun, store.KindRunEnded, store.KindRunSuspended, store.KindRunOffered, store.KindReviewStored,
		store.KindShareCreated, store.KindShareRevoked, store.KindRunDeleted, store.KindRunExpired, store.KindRunErased:
		return s.runAct(a, hasPayload)
	case store.KindErased:
		n, err := strconv.ParseInt(a.Subject, 10, 64)
		s.erased[n] = true
		return err
	}
	if !contentKinds[a.Kind] || !hasPayload {
		return nil
	}
	return s.contentAct(a)
}

// runAct applies an act on a run.
func (s *auditState) runAct(a journal.Act, hasPayload bool) error {
	r := s.runs[a.Subject]
	if a.Kind == store.KindRunBegun {
		if r != nil && !r.deleted {
			return fmt.Errorf("run %s begins twice", a.Subject)
		}
		r = &runState{place: len(s.begun), sequence: a.Sequence, state: assay.RunActive, pins: map[pin]bool{}, shares: map[string]shareStored{}}
		s.runs[a.Subject], s.begun = r, append(s.begun, r)
		if !hasPayload {
			return nil
		}
		return json.Unmarshal(a.Detail, &r.runBegun)
	}
	if r == nil || r.deleted {
		return fmt.Errorf("there is no run %s", a.Subject)
	}
	switch a.Kind {
	case store.KindRunDeleted, store.KindRunExpired:
		r.deleted, s.gone[a.Subject] = true, a.Sequence
		clear(r.shares)
		s.withdraw(r.place)
	case store.KindRunErased:
		r.erased, r.state, s.gone[a.Subject] = a.Sequence, assay.RunErased, a.Sequence
		clear(r.shares)
		s.withdraw(r.place)
		if hasPayload {
			return json.Unmarshal(a.Detail, &r.left)
		}
	case store.KindRunEnded, store.KindRunSuspended:
		if !hasPayload {
			return nil
		}
		return r.end(a.Detail)
	case store.KindReviewStored:
		r.review = &reviewState{sequence: a.Sequence}
		if hasPayload {
			return json.Unmarshal(a.Detail, &r.review.reviewStored)
		}
	case store.KindShareCreated, store.KindShareRevoked:
		return r.share(a, hasPayload)
	case store.KindRunOffered:
		var o runOffered
		if hasPayload {
			if err := json.Unmarshal(a.Detail, &o); err != nil {
				return err
			}
		}
		r.offer = o.Key
		s.offer(r.place)
	}
	return nil
}

// share applies an act on a share. Without its payload the run is gone, and the share with it.
func (r *runState) share(a journal.Act, hasPayload bool) error {
	if !hasPayload {
		return nil
	}
	var s shareStored
	if err := json.Unmarshal(a.Detail, &s); err != nil {
		return err
	}
	if a.Kind == store.KindShareRevoked {
		delete(r.shares, s.ID)
	} else {
		r.shares[s.ID] = s
	}
	return nil
}

func (r *runState) end(detail json.RawMessage) error {
	var e runEnded
	if err := json.Unmarshal(detail, &e); err != nil {
		return err
	}
	r.state, r.err = e.State, e.Error
	if e.Answer != "" {
		r.answer = e.Answer
	}
	for _, p := range e.Pins {
		r.pins[p] = true
	}
	return nil
}

// isErased reports whether an act says that the payload of another was removed.
func (s *auditState) isErased(a journal.Act) bool {
	return s.erased[a.Sequence] || s.gone[a.Subject] > a.Sequence
}

// offer does what runs.offer does.
func (s *auditState) offer(place int) {
	if i, there := slices.BinarySearch(s.offered, place); !there {
		s.offered = slices.Insert(s.offered, i, place)
	}
	if over := len(s.offered) - s.maxOffers; over > 0 {
		s.offered = slices.Delete(s.offered, 0, over)
	}
}

func (s *auditState) withdraw(place int) {
	if i, there := slices.BinarySearch(s.offered, place); there {
		s.offered = slices.Delete(s.offered, i, i+1)
	}
}

// offers reports whether a run's offer must be stored.
func (s *auditState) offers(r *runState) bool {
	_, there := slices.BinarySearch(s.offered, r.place)
	return there
}

// contentAct applies an act on content.
func (s *auditState) contentAct(a journal.Act) error {
	switch a.Kind {
	case store.KindCollectionSet:
		var c collectionSet
		err := json.Unmarshal(a.Detail, &c)
		s.collections[a.Subject] = c
		return err
	case store.KindSourceSet:
		var c sourceSet
		err := json.Unmarshal(a.Detail, &c)
		s.sources[a.Subject] = c.Row
		return err
	case store.KindSourceRemoved:
		delete(s.sources, a.Subject)
		return nil
	case store.KindContentPruned:
		var gone []pin
		err := json.Unmarshal(a.Detail, &gone)
		for _, v := range gone {
			if d := s.documents[v.Document]; d != nil {
				delete(d.versions, v.Version)
			}
		}
		return err
	}
	var c contentChanged
	if err := json.Unmarshal(a.Detail, &c); err != nil {
		return err
	}
	for _, d := range c.Documents {
		s.document(a.Sequence, c.Sequence, a.Time, d)
	}
	for _, f := range c.Files {
		if f.Row == "" {
			delete(s.files, f.File)
		} else {
			s.files[f.File] = fileState{a.Sequence, f.Row}
		}
	}
	return nil
}

// document applies a change of one document in the given entry.
func (s *auditState) document(entry, sequence int64, when time.Time, a documentAct) {
	d := s.documents[a.Document]
	if d == nil {
		d = &documentState{versions: map[string]versionState{}}
		s.documents[a.Document] = d
	}
	if v, there := d.versions[d.current]; there && d.current != a.Version {
		v.replaced = when.UnixNano()
		d.versions[d.current] = v
	}
	d.entry, d.sequence, d.current, d.row = entry, sequence, a.Version, ""
	if a.Version == "" {
		d.row = a.Row
		return
	}
	d.versions[a.Version] = versionState{entry: entry, row: a.Row}
}
