package engine

import (
	"sync"

	"github.com/assay-rag/assay"
)

// A liveRun is a run that this host drives or is about to drive. Its log is a window of what happened
// lately: followers that fall behind read the journal.
type liveRun struct {
	key       liveKey
	interrupt func(error) // ends the drive; the run can be resumed

	cancelOnce sync.Once
	cancelled  chan struct{} // closed when the run was cancelled through this host

	mu      sync.Mutex
	log     []liveEvent
	first   int // position of log[0] in all that was logged
	size    int // of log, in bytes
	next    int // ordinal of the next step to be logged; -1: its journal was not read yet
	early   map[int]assay.Record
	changed chan struct{} // closed at the next change; nil: nothing waits for one
	ended   bool
	err     error // why it ended without an answer, unless that is stored
}

// A liveKey identifies a run of a host.
type liveKey struct{ tenant, run string } // the identity of the tenant

// A liveEvent is a step that has ended, with its record, or another event.
type liveEvent struct {
	record *assay.Record
	event  Event
	size   int
}

// Bounds of a liveRun's log.
const (
	windowEvents = 256
	windowBytes  = 256 << 10
)

func newLiveRun(key liveKey) *liveRun {
	return &liveRun{key: key, cancelled: make(chan struct{}), early: map[int]assay.Record{}, next: -1}
}

// starts says how many steps the journal has when the drive begins.
func (r *liveRun) starts(steps int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = steps
	r.tell()
}

// emit logs steps that start and pieces of drafts. Steps that have ended are logged by stored.
func (r *liveRun) emit(ev Event) {
	replayed := ev.Step != nil && ev.Step.Replayed
	if ev.Kind != StepStarted && ev.Kind != Draft || replayed {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	const fixed = 512
	r.add(liveEvent{event: ev, size: fixed + len(ev.Draft)})
	r.tell()
}

// stored logs a step whose record was stored. Parallel branches report out of order.
func (r *liveRun) stored(rec assay.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.early[rec.Ordinal] = rec
	for {
		rec, ok := r.early[r.next]
		if !ok {
			return
		}
		delete(r.early, r.next)
		r.next++
		r.add(liveEvent{record: &rec, size: len(rec.Input) + len(rec.Output) + len(rec.Bytes)})
		r.tell()
	}
}

// add appends to the log and drops the oldest events beyond the bounds. The last one always stays.
func (r *liveRun) add(ev liveEvent) {
	r.log = append(r.log, ev)
	r.size += ev.size
	drop := 0
	for len(r.log)-drop > 1 && (r.size > windowBytes || len(r.log)-drop > windowEvents) {
		r.size -= r.log[drop].size
		r.log[drop] = liveEvent{}
		drop++
	}
	r.log, r.first = r.log[drop:], r.first+drop
}

// tell wakes those who wait for a change.
func (r *liveRun) tell() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

func (r *liveRun) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.err = true, err
	r.log, r.early = nil, nil // followers read the rest from the journal
	r.tell()
}

// cancel lets a run that waits for its turn end at once.
func (r *liveRun) cancel() { r.cancelOnce.Do(func() { close(r.cancelled) }) }

// A liveView is what a follower sees of a liveRun at a moment.
type liveView struct {
	log     []liveEvent     // from the wanted position on
	first   int             // position of log[0]
	next    int             // as in liveRun
	ended   bool            // there will be no other event
	err     error           // as in liveRun
	changed <-chan struct{} // closed at the next change
}

// journal returns the ordinal of the first step that is in the log or not stored yet. Those before are in
// the journal only.
func (v liveView) journal() int {
	for _, ev := range v.log {
		if ev.record != nil {
			return ev.record.Ordinal
		}
	}
	return v.next
}

// from returns the events from a position on, or from the first one that is left.
func (r *liveRun) from(position int) liveView {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	v := liveView{first: max(position, r.first), next: r.next, ended: r.ended, err: r.err, changed: r.changed}
	if i := v.first - r.first; i < len(r.log) {
		v.log = append(v.log, r.log[i:]...)
	}
	return v
}

// after returns the position after the end of the step before ordinal: 0 if that is the first step, and
// that of the first event in the log if the step is not there any more.
func (r *liveRun) after(ordinal int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, ev := range r.log {
		if ev.record != nil && ev.record.Ordinal == ordinal-1 {
			return r.first + i + 1
		}
	}
	if len(r.log) > 0 && ordinal >= r.next && r.next > 0 {
		return r.first + len(r.log)
	}
	return r.first
}
