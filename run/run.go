package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/assay-rag/assay"
)

// A Journal keeps the records of one run. It is safe for concurrent use. A
// store's lease is one, and so is [Memory].
type Journal interface {
	// Append stores rec durably and returns it with Sequence, Ordinal, Bytes and
	// Leaf filled in and the rest unchanged. On an error the record may be stored
	// or not, but never in part.
	Append(ctx context.Context, rec assay.Record) (assay.Record, error)
}

// Config says what a run works with.
type Config struct {
	Run     string  // its ID
	Journal Journal // where its steps go; nil for Replay

	// Records are what the journal already holds: a run that was interrupted
	// goes on after them. None: a new run.
	Records []assay.Record

	// Budget is what the run may spend, the steps in Records included. Zero
	// fields set no limit. Iterations are the strategy's to count.
	Budget assay.Budget

	// Now reads the clock; time.Now when nil. Only differences count.
	Now func() time.Time

	// Observe, when set, is told of every step as it starts and ends. Calls
	// follow one another, in the goroutine that takes the step; the step waits.
	// It must not take steps itself.
	Observe func(Event)
}

// A Run is one question's session being driven.
type Run struct {
	id       string
	journal  Journal // nil: a replay
	recorded map[string]assay.Record
	wall     time.Duration // 0: no limit
	now      func() time.Time
	start    time.Time
	base     time.Duration // how long the run had been active before start
	root     *branch

	observing sync.Mutex // makes calls of observe follow one another
	observe   func(Event)

	mu    sync.Mutex
	taken map[string]bool // the paths of all steps taken so far
	halt  error           // why no step is taken any more
}

// New returns a run that performs its steps, after those in cfg.Records. Its
// active time starts now. A Config without Run or Journal is assay.ErrInvalid,
// as are records of another run; records that share a path are assay.ErrDamaged.
func New(cfg Config) (*Run, error) {
	if cfg.Journal == nil {
		return nil, fmt.Errorf("run %q has no journal: %w", cfg.Run, assay.ErrInvalid)
	}
	return newRun(cfg)
}

// Replay returns a run that performs nothing: each step returns what cfg.Records
// hold for it, and one that they do not hold is a [DivergenceError]. Branches run
// one after the other. cfg.Journal must be nil; Budget and Now do not matter,
// because refusals and clock readings are in the records. Otherwise Replay is
// like New.
func Replay(cfg Config) (*Run, error) {
	if cfg.Journal != nil {
		return nil, fmt.Errorf("replay of run %q has a journal: %w", cfg.Run, assay.ErrInvalid)
	}
	return newRun(cfg)
}

func newRun(cfg Config) (*Run, error) {
	if cfg.Run == "" {
		return nil, fmt.Errorf("run without an ID: %w", assay.ErrInvalid)
	}
	r := &Run{
		id: cfg.Run, journal: cfg.Journal, wall: cfg.Budget.Wall, now: cfg.Now, observe: cfg.Observe,
		recorded: make(map[string]assay.Record, len(cfg.Records)),
		root:     &branch{limit: limitOf(cfg.Budget)},
		taken:    map[string]bool{},
	}
	if r.now == nil {
		r.now = time.Now
	}
	for _, rec := range cfg.Records {
		if rec.Run != cfg.Run {
			return nil, fmt.Errorf("record %q of run %q given to run %q: %w", rec.Path, rec.Run, cfg.Run, assay.ErrInvalid)
		}
		if _, twice := r.recorded[rec.Path]; twice {
			return nil, fmt.Errorf("run %q: the journal holds step %q twice: %w", cfg.Run, rec.Path, assay.ErrDamaged)
		}
		r.recorded[rec.Path] = rec
		r.base = max(r.base, rec.Active)
	}
	r.start = r.now()
	return r, nil
}

// Scope returns the run's outermost scope.
func (r *Run) Scope() Scope { return Scope{run: r, branch: r.root} }

// Finish is called when the strategy has returned, and says whether its result
// counts. It does not when Finish returns an error: why the run was halted,
// assay.ErrSuspended when a step waits for a person, or a [DivergenceError] when
// the journal holds a step that was not taken.
func (r *Run) Finish() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halt != nil {
		return r.halt
	}
	if r.root.suspended {
		return fmt.Errorf("run %s: %w", r.id, assay.ErrSuspended)
	}
	var untaken []assay.Record
	for path, rec := range r.recorded {
		if !r.taken[path] {
			untaken = append(untaken, rec)
		}
	}
	if len(untaken) == 0 {
		return nil
	}
	first := slices.MinFunc(untaken, func(a, b assay.Record) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Path, b.Path))
	})
	return &DivergenceError{Path: first.Path, Reason: NotTaken, Recorded: first.Input, Steps: len(untaken)}
}

// activeAt returns how long the run has been active at a moment of its clock.
func (r *Run) activeAt(t time.Time) time.Duration { return r.base + max(0, t.Sub(r.start)) }

// claim marks the step at path as taken.
func (r *Run) claim(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken[path] {
		panic(fmt.Sprintf("run: step %s is taken twice", path))
	}
	r.taken[path] = true
}

// stop halts the run for err, unless it is halted already, and returns err as it
// is: the error of the step that met it.
func (r *Run) stop(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halt == nil {
		r.halt = err
	}
	return err
}

// halted returns why the run is halted; nil when it is not.
func (r *Run) halted() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.halt
}

// appendGrace is how long a journal may take to store a result after the
// caller's context has ended: what was paid for is kept, and a journal that hangs
// does not hang the run.
const appendGrace = 2 * time.Second

// append stores rec, and halts the run if that fails.
func (r *Run) append(ctx context.Context, rec assay.Record) error {
	ctx, cancel := outlive(ctx, appendGrace)
	defer cancel()
	stored, err := r.journal.Append(ctx, rec)
	if err != nil {
		return r.stop(fmt.Errorf("step %s: write journal: %w", rec.Path, err))
	}
	if !sameResult(rec, stored) {
		return r.stop(fmt.Errorf("step %s: journal returned another record than it was given: %w", rec.Path, assay.ErrDamaged))
	}
	return nil
}

// sameResult reports whether the journal kept what a replay returns.
func sameResult(a, b assay.Record) bool {
	sameError := a.Error == nil && b.Error == nil || a.Error != nil && b.Error != nil && *a.Error == *b.Error
	return sameError && a.Run == b.Run && a.Path == b.Path && a.Kind == b.Kind && a.Model == b.Model && a.Usage == b.Usage && a.Active == b.Active &&
		string(a.Input) == string(b.Input) && string(a.Output) == string(b.Output)
}

// outlive returns a context that ends grace after ctx does. Its goroutine, if it
// needs one, has ended when cancel returns.
func outlive(ctx context.Context, grace time.Duration) (longer context.Context, cancel func()) {
	longer, end := context.WithCancelCause(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			end(context.Cause(ctx))
		case <-longer.Done():
		}
	})
	return longer, func() {
		end(nil)
		if !stop() {
			<-ended
		}
	}
}

// cancelled returns the error of a step whose caller has gone: ctx's, and its
// cause where that says more.
func cancelled(ctx context.Context, path string) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		return fmt.Errorf("step %s: %w: %w", path, err, cause)
	}
	return fmt.Errorf("step %s: %w", path, err)
}
