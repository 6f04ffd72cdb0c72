package governance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/journal"
	"github.com/assay-rag/assay/store"
)

// Options are the period of a report and what its figures are compared with.
type Options struct {
	Tenant string

	// From and To bound the period, From inclusive and To exclusive; zero: open.
	From, To time.Time

	// QuickDecision is the time under which a decision counts as not considered; 0: 5 seconds.
	QuickDecision time.Duration

	// SessionMicros and MonthMicros are the expected costs of a session and of a month, in millionths
	// of the currency of prices; 0: none is expected.
	SessionMicros, MonthMicros int64

	// System is the store's own log, whose acts about the tenant are reported too; nil: they are not.
	System store.System

	// LostRuns are runs whose begin is in the log and that are neither stored nor deleted. Collect
	// finds them.
	LostRuns []string
}

const quickDecision = 5 * time.Second

// contains reports whether a time is in the period.
func (o Options) contains(t time.Time) bool {
	return !t.Before(o.From) && o.before(t)
}

// before reports whether a time is not after the period.
func (o Options) before(t time.Time) bool { return o.To.IsZero() || t.Before(o.To) }

// Collect reads a tenant's audit log and runs, one journal at a time, and returns the report. Runs
// before the period are read too, because a tool or an argument is new only if no earlier run has it.
func Collect(ctx context.Context, tenant store.Tenant, o Options) (Report, error) {
	if o.Tenant == "" {
		o.Tenant = tenant.Name()
	}
	b := NewBuilder(o)
	size, err := tenant.Audit().Size(ctx)
	if err != nil {
		return Report{}, err
	}
	trail := trail{begun: map[string]time.Time{}}
	if err := trail.read(ctx, tenant.Audit(), b, 0, size); err != nil {
		return Report{}, err
	}
	if err := storeActs(ctx, o, b); err != nil {
		return Report{}, err
	}
	runs, err := tenant.Runs().List(ctx, 0)
	if err != nil {
		return Report{}, err
	}
	for _, r := range runs {
		delete(trail.begun, r.ID)
		if !o.before(r.Created) {
			continue
		}
		records, err := tenant.Runs().Records(ctx, r.ID)
		if errors.Is(err, assay.ErrNotFound) {
			continue // deleted after it was listed
		}
		if err != nil && !errors.Is(err, assay.ErrDamaged) {
			return Report{}, fmt.Errorf("run %s: %w", r.ID, err)
		}
		b.Run(r, records, err)
	}
	// Runs that were deleted while they were listed have their act after size.
	later, err := tenant.Audit().Size(ctx)
	if err != nil {
		return Report{}, err
	}
	if err := trail.read(ctx, tenant.Audit(), nil, size, later); err != nil {
		return Report{}, err
	}
	for id, begun := range trail.begun {
		if o.contains(begun) && !trail.after(size, id) {
			b.options.LostRuns = append(b.options.LostRuns, id)
		}
	}
	return b.Report(), nil
}

// A trail is which runs the log tells of.
type trail struct {
	begun  map[string]time.Time // begun and not deleted
	latest map[string]int64     // sequence of their begin
}

// after reports whether a run began after a sequence.
func (t *trail) after(sequence int64, run string) bool { return t.latest[run] > sequence }

// read goes through entries of the log and adds the acts to b, if it is set.
func (t *trail) read(ctx context.Context, log store.Audit, b *Builder, after, upTo int64) error {
	if t.latest == nil {
		t.latest = map[string]int64{}
	}
	for e, err := range log.Entries(ctx, after, upTo) {
		if err != nil {
			return err
		}
		if !journal.IsAct(e.Header) {
			continue
		}
		a, err := journal.OpenAct(e.Header, e.Payload, e.Salt, e.Leaf)
		if err != nil {
			return fmt.Errorf("entry %d of the audit log: %w", e.Sequence, err)
		}
		switch a.Kind {
		case store.KindRunBegun:
			t.begun[a.Subject], t.latest[a.Subject] = a.Time, a.Sequence
		case store.KindRunDeleted, store.KindRunExpired, store.KindRunErased:
			delete(t.begun, a.Subject)
		}
		if b != nil {
			b.Act(store.LoggedAct{Sequence: a.Sequence, Time: a.Time, Act: store.Act{
				Kind: a.Kind, Subject: a.Subject, Actor: a.Actor, Reason: a.Reason, Detail: a.Detail,
			}})
		}
	}
	return nil
}

// A request is what the report needs of a run's request and answer.
type request struct {
	Strategy    string   `json:"strategy"`
	Collections []string `json:"collections"`
}

// requestOf reads the request of a run. One that cannot be read has no fields.
func requestOf(r assay.Run) request {
	var req request
	_ = json.Unmarshal(r.Request, &req) // stats.Observe reports it as an incomplete trace
	return req
}
