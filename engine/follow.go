package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	marks "github.com/assay-rag/assay/internal/canary"
)

// Times of a follower.
const (
	recheckEvery = 3 * time.Second // how often the grant, the tenant and the access are checked again
	firstLook    = 25 * time.Millisecond
	lastLook     = time.Second     // the longest pause between two looks at a journal
	orphanGrace  = 5 * time.Second // a run that no process drives may be taken up until then
)

// Follow yields the events of one of the principal's runs that follow the step with an ordinal (-1:
// all). Steps that have ended come in the order of their ordinals, each once, with the same content
// whether they come from a run in progress or from the journal. So a follower that begins again after the
// last ordinal it has seen misses nothing. While this host drives the run, the events of steps that
// start and pieces of drafts come in between, of which a slow or late follower misses some. The first
// event is RunStarted if after is -1. The last is RunEnded, or an error.
//
// A run that another process drives is followed through its journal. The answer of a run that waits for
// a review is the one that is shown until then; Await waits for the decision. A run that failed is a
// *RunError, as is one that no process drives, or whose journal cannot be read now, which is Resumable and wraps
// assay.ErrUnavailable. Follow it again then.
//
// Content that must not be shown is left out as by Run. The grant, the tenant and the access to the
// documents that the run has read are checked again every few seconds and before the answer.
func (s *Session) Follow(ctx context.Context, id string, after int) iter.Seq2[Event, error] {
	events := s.follow(ctx, id, after)
	return func(yield func(Event, error) bool) {
		for ev, err := range events {
			if !yield(ev, interrupted(id, err)) {
				return
			}
		}
	}
}

// interrupted returns the error with which the events of a run end. If the store did not answer, that is not the
// end of the run, which goes on elsewhere or later.
func interrupted(id string, err error) error {
	if _, ofRun := errors.AsType[*RunError](err); ofRun || !errors.Is(err, assay.ErrUnavailable) {
		return err
	}
	return &RunError{Run: id, Resumable: true, Err: err}
}

// follow is Follow without interrupted.
func (s *Session) follow(ctx context.Context, id string, after int) iter.Seq2[Event, error] {
	return each(ctx, s, "Follow", func(c *sessionCall) (iter.Seq2[Event, error], error) {
		if after < -1 {
			return nil, fmt.Errorf("follow run %s after step %d: %w", id, after, assay.ErrInvalid)
		}
		f := &follower{session: s, call: c, id: id, next: min(after, math.MaxInt-1) + 1}
		if err := f.open(ctx); err != nil {
			return nil, err
		}
		return func(yield func(Event, error) bool) {
			f.yield = func(ev Event) error {
				if !yield(ev, nil) {
					return errBreak
				}
				return nil
			}
			if err := f.follow(ctx); err != nil && !errors.Is(err, errBreak) {
				yield(Event{}, err)
			}
		}, nil
	})
}

// errBreak says that the consumer of an iterator has ended the loop.
var errBreak = errors.New("the loop was ended")

// A follower yields the events of one run.
type follower struct {
	session *Session
	call    *sessionCall
	id      string
	yield   func(Event) error
	next    int // ordinal of the next step to yield

	run       assay.Run // as last read
	withheld  string    // see Engine.withheld
	canaries  *marks.Set
	documents map[string]bool // that the run has read so far
	checked   time.Time       // when all was checked last
	sequence  int64           // of the content then
	position  int             // in the log of a liveRun
	gap       bool            // pieces of the present draft were missed
}

// open reads the run and checks the access to all that it has read.
func (f *follower) open(ctx context.Context) error {
	if err := f.load(ctx); err != nil {
		return err
	}
	if f.run.State == assay.RunErased {
		_, err := requestOf(f.run)
		return err
	}
	records, err := f.call.engine.runs.Records(ctx, f.id)
	if err != nil {
		return fmt.Errorf("run %s: %w", f.id, err)
	}
	if f.documents, err = documentsOf(f.run, records); err != nil {
		return err
	}
	return f.check(ctx)
}

// load reads the run and what is withheld of it.
func (f *follower) load(ctx context.Context) (err error) {
	e := f.call.engine
	if f.run, err = e.run(ctx, f.call.principal, f.id); err != nil {
		return err
	}
	f.withheld, err = e.withheld(ctx, f.run)
	return err
}

// check checks the grant, the tenant and the access, and reads the canaries.
func (f *follower) check(ctx context.Context) error {
	s, e := f.session, f.call.engine
	if err := s.checkGrant(ctx); err != nil {
		return err
	}
	info, err := s.host.tenant(ctx, s.grant.Tenant)
	if err != nil {
		return err
	}
	if info.Identity != s.identity {
		return fmt.Errorf("tenant %q: %w", s.grant.Tenant, assay.ErrNotFound)
	}
	if f.canaries, err = e.canaries(ctx); err != nil {
		return fmt.Errorf("run %s: %w", f.id, err)
	}
	if f.withheld, err = e.withheld(ctx, f.run); err != nil {
		return err
	}
	sequence, err := e.content.Sequence(ctx)
	if err != nil {
		return err
	}
	if f.checked.IsZero() || sequence != f.sequence {
		if err := f.checkDocuments(ctx, f.documents); err != nil {
			return err
		}
	}
	f.checked, f.sequence = time.Now(), sequence
	return nil
}

// checkDocuments checks the access to documents.
func (f *follower) checkDocuments(ctx context.Context, documents map[string]bool) error {
	for _, id := range slices.Sorted(maps.Keys(documents)) {
		if err := f.call.engine.checkDocument(ctx, f.call.principal.Access(), id); err != nil {
			return fmt.Errorf("run %s: it read a document %w", f.id, err)
		}
	}
	return nil
}

// recheck is check if the last one is too long ago.
func (f *follower) recheck(ctx context.Context) error {
	if time.Since(f.checked) < f.session.host.recheck {
		return nil
	}
	return f.check(ctx)
}

// follow yields the events and returns why it has ended.
func (f *follower) follow(ctx context.Context) error {
	if f.next == 0 {
		if err := f.yield(Event{Kind: RunStarted, Run: f.id}); err != nil {
			return err
		}
	}
	changed, stop := f.call.engine.runNotices.follow(f.call.engine.tenant, f.id)
	defer stop()
	orphaned := time.Time{}
	for pause := firstLook; ; {
		if r := f.session.host.live.find(liveKey{f.session.identity, f.id}); r != nil {
			if err := f.followLive(ctx, r); err != nil {
				return err
			}
			return f.end(ctx, r)
		}
		if err := f.recheck(ctx); err != nil {
			return err
		}
		before := f.next
		if err := f.load(ctx); err != nil {
			return err
		}
		if f.run.State != assay.RunActive {
			return f.end(ctx, nil)
		}
		if err := f.readJournal(ctx, -1); err != nil {
			return err
		}
		switch now := time.Now(); {
		case f.run.Live:
			orphaned = time.Time{}
		case orphaned.IsZero():
			orphaned = now
		case now.Sub(orphaned) > orphanGrace:
			return &RunError{Run: f.id, Resumable: true, Err: fmt.Errorf("no process drives it: %w", assay.ErrUnavailable)}
		}
		if pause = min(2*pause, lastLook); f.next > before {
			pause = firstLook
		}
		if err := sleep(ctx, pause, changed); err != nil {
			return err
		}
	}
}

// sleep waits for some time, or until there is a value in the channel.
func sleep(ctx context.Context, d time.Duration, early <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-early:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// followLive yields the events of a run that this host drives until it has ended.
func (f *follower) followLive(ctx context.Context, r *liveRun) error {
	f.position = r.after(f.next)
	f.gap = f.position > 0
	again := time.NewTimer(f.session.host.recheck)
	defer again.Stop()
	for {
		view := r.from(f.position)
		if err := f.recheck(ctx); err != nil {
			return err
		}
		if view.ended {
			return nil
		}
		if before := view.journal(); f.next < before {
			if err := f.readJournal(ctx, before); err != nil {
				return err
			}
		}
		if err := f.yieldLog(ctx, view); err != nil {
			return err
		}
		if len(view.log) > 0 {
			continue // there may be more by now
		}
		again.Reset(time.Until(f.checked.Add(f.session.host.recheck)))
		select {
		case <-view.changed:
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// yieldLog yields a part of a liveRun's log.
func (f *follower) yieldLog(ctx context.Context, view liveView) error {
	f.gap = f.gap || view.first > f.position
	f.position = view.first
	for i := 0; i < len(view.log); i++ {
		ev := view.log[i]
		f.position++
		if ev.record == nil {
			for ; ev.event.Kind == Draft && i+1 < len(view.log) && continues(ev, view.log[i+1]); i++ {
				ev.event.Draft += view.log[i+1].event.Draft
				f.position++
			}
			if err := f.yieldPassing(ev.event); err != nil {
				return err
			}
			continue
		}
		if ev.record.Ordinal < f.next {
			continue
		}
		if err := f.yieldStep(ctx, *ev.record, true); err != nil {
			return err
		}
	}
	return nil
}

// continues reports whether the next event is the next piece of a draft.
func continues(ev, next liveEvent) bool {
	return next.record == nil && next.event.Kind == Draft && next.event.Path == ev.event.Path
}

// yieldPassing yields an event that is not in the journal. Pieces of a draft whose beginning was missed
// are left out.
func (f *follower) yieldPassing(ev Event) error {
	if ev.Kind == StepStarted {
		f.gap = false
	}
	if f.withheld != "" {
		if ev.Kind == Draft {
			return nil
		}
		ev = withheldEvent(ev, f.withheld)
	}
	if ev.Kind == Draft && f.gap {
		return nil
	}
	if holdsCanary(f.canaries, ev) {
		ev = withheldEvent(ev, withheldCanaryText)
	}
	return f.yield(ev)
}

// readJournal yields the steps of the journal that were not yielded yet, before an ordinal (-1: all).
func (f *follower) readJournal(ctx context.Context, before int) error {
	records, err := f.call.engine.runs.RecordsFrom(ctx, f.id, f.next)
	if err != nil {
		return fmt.Errorf("run %s: %w", f.id, err)
	}
	for _, rec := range records {
		if before >= 0 && rec.Ordinal >= before {
			return nil
		}
		if err := f.recheck(ctx); err != nil {
			return err
		}
		if err := f.yieldStep(ctx, rec, false); err != nil {
			return err
		}
	}
	return nil
}

// yieldStep yields a step that has ended. The access to the documents of one that was just stored was
// checked when it was taken, and is checked again with all others.
func (f *follower) yieldStep(ctx context.Context, rec assay.Record, fresh bool) error {
	p := read(rec)
	if err := f.addDocuments(ctx, rec, p, fresh); err != nil {
		return err
	}
	step := stepWith(rec, p)
	why := f.withheld
	switch {
	case why != "":
	case isRuling(rec):
		why = withheldText
	case holdsCanary(f.canaries, step):
		why = withheldCanaryText
	}
	step.Started, step.Input, step.Output = step.Started.UTC().Round(0), nil, nil
	ev := endOf(f.id, step, p)
	if why != "" {
		ev = withheldEvent(ev, why)
	}
	f.next = rec.Ordinal + 1
	return f.yield(ev)
}

// addDocuments adds the documents that a step has read.
func (f *follower) addDocuments(ctx context.Context, rec assay.Record, p payload, fresh bool) error {
	more := map[string]bool{}
	if err := addDocuments(more, rec, p); err != nil {
		return err
	}
	maps.DeleteFunc(more, func(id string, _ bool) bool { return f.documents[id] })
	if !fresh {
		if err := f.checkDocuments(ctx, more); err != nil {
			return err
		}
	}
	maps.Copy(f.documents, more)
	return nil
}

// end yields the rest of a run that is not driven any more. r is the run as this host drove it; nil: it
// did not.
func (f *follower) end(ctx context.Context, r *liveRun) error {
	if err := f.load(ctx); err != nil {
		return f.endError(r, err)
	}
	if err := f.readJournal(ctx, -1); err != nil {
		return err
	}
	cited, err := documentsOf(f.run, nil)
	if err != nil {
		return err
	}
	maps.Copy(f.documents, cited)
	f.checked = time.Time{} // everything is checked before the answer
	if err := f.check(ctx); err != nil {
		return err
	}
	switch {
	case f.run.State == assay.RunErased:
		_, err := requestOf(f.run)
		return err
	case f.run.State == assay.RunFailed:
		return &RunError{Run: f.id, Err: errors.New(cmp.Or(f.run.Error, "it failed"))}
	case f.run.Answer == nil || f.run.State == assay.RunActive:
		return f.endError(r, &RunError{Run: f.id, Resumable: true, Err: fmt.Errorf("no process drives it: %w", assay.ErrUnavailable)})
	}
	if err := hideCanaries(&f.run, f.canaries); err != nil {
		return err
	}
	return f.yield(Event{Kind: RunEnded, Run: f.id, Answer: f.run.Answer})
}

// endError returns the error with which this host has ended a run, or err.
func (f *follower) endError(r *liveRun, err error) error {
	if r == nil {
		return err
	}
	if view := r.from(0); view.err != nil {
		return view.err
	}
	return err
}
