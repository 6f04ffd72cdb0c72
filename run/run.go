package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
)

// A Journal keeps the records of one run. It is safe for concurrent use. A store's lease and
// [Memory] implement it.
type Journal interface {
	// Append stores rec durably and returns it with Sequence, Ordinal, Bytes and Leaf filled in and
	// the rest unchanged. After an error the record may be stored or not, but never in part.
	Append(ctx context.Context, rec assay.Record) (assay.Record, error)
}

// Config configures a run.
type Config struct {
	Run     string  // the run's ID
	Journal Journal // stores its steps; nil for Replay

	// Records are the records already in the journal, after which an interrupted run continues. A
	// new run has none.
	Records []assay.Record

	// Budget limits the run's spending, including the steps in Records. Zero fields set no limit.
	// The strategy counts Iterations.
	Budget assay.Budget

	// Ledger, if not nil, keeps limits besides Budget, which other runs share.
	Ledger Ledger

	// Stop, if not nil, ends when the run is to end with what it has. Steps that search, call a model
	// or leave the machine are then refused with assay.ErrStopped, and those in progress are
	// cancelled. Unlike the end of the caller's context this is recorded and does not halt the run.
	Stop context.Context

	// Now reads the clock; nil means time.Now. Only differences count.
	Now func() time.Time

	// Observe, if not nil, is called when a step starts and when it ends. Calls are sequential and
	// in the goroutine that takes the step, which waits. Observe must not take steps.
	Observe func(Event)

	// Within, if not nil, returns the context in which the step at a path is performed, after Observe
	// was called for its start. The context must be derived from the given one. Within is not called
	// for steps that are taken from the journal.
	Within func(ctx context.Context, path string) context.Context
}

// A Run is the session of one question in progress.
type Run struct {
	id       string
	journal  Journal // nil: a replay
	recorded map[string]assay.Record
	wall     time.Duration // 0: no limit
	now      func() time.Time
	start    time.Time
	base     time.Duration   // the run's active time before start
	ledger   Ledger          // nil: none
	stopping context.Context // ends when the run is to end with what it has; nil: never
	root     *branch

	observing sync.Mutex // serialises calls of observe
	observe   func(Event)
	within    func(context.Context, string) context.Context // nil: the context stays the same

	mu      sync.Mutex
	taken   map[string]bool // paths of all steps taken so far
	untaken int             // recorded steps not taken yet
	halt    error           // why the run is halted
}

// New returns a run that executes its steps, after those in cfg.Records. Its active time starts
// now. A Config without Run or Journal is assay.ErrInvalid, as are records of another run. Records
// that share a path are assay.ErrDamaged.
func New(cfg Config) (*Run, error) {
	if cfg.Journal == nil {
		return nil, fmt.Errorf("run %q has no journal: %w", cfg.Run, assay.ErrInvalid)
	}
	return newRun(cfg)
}

// Replay returns a run that executes nothing: each step returns its result from cfg.Records, and a
// step without one is a [DivergenceError]. Branches run sequentially. cfg.Journal must be nil.
// Budget, Ledger, Stop and Now are ignored, because refusals and clock readings are in the records.
// Otherwise Replay is like New.
func Replay(cfg Config) (*Run, error) {
	if cfg.Journal != nil {
		return nil, fmt.Errorf("replay of run %q has a journal: %w", cfg.Run, assay.ErrInvalid)
	}
	cfg.Ledger, cfg.Stop = nil, nil
	return newRun(cfg)
}

func newRun(cfg Config) (*Run, error) {
	if cfg.Run == "" {
		return nil, fmt.Errorf("run without an ID: %w", assay.ErrInvalid)
	}
	r := &Run{
		id: cfg.Run, journal: cfg.Journal, wall: cfg.Budget.Wall, now: cfg.Now, observe: cfg.Observe, within: cfg.Within,
		ledger: cfg.Ledger, stopping: cfg.Stop,
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
	r.untaken = len(r.recorded)
	r.start = r.now()
	return r, nil
}

// Scope returns the run's outermost scope.
func (r *Run) Scope() Scope { return Scope{run: r, branch: r.root} }

// Finish must be called after the strategy has returned. The strategy's result counts only if
// Finish returns nil. Otherwise the error is the reason why the run was halted, assay.ErrSuspended
// if a step waits for a person, or a [DivergenceError] if the journal holds a step that was not
// taken.
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

// Taken returns the number of steps taken so far, those in the journal included. Between two steps it is
// the number of records.
func (r *Run) Taken() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.taken)
}

// activeAt returns the run's active time at time t of its clock.
func (r *Run) activeAt(t time.Time) time.Duration { return r.base + max(0, t.Sub(r.start)) }

// claim marks the step at path as taken.
func (r *Run) claim(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken[path] {
		panic(fmt.Sprintf("run: step %s is taken twice", path))
	}
	r.taken[path] = true
	if _, ok := r.recorded[path]; ok {
		r.untaken--
	}
}

// due returns the path of the first recorded step of the branch that was not taken before the step
// at path, which is not recorded; empty: none. The steps of a branch are sequential, so all recorded
// ones come before the first that is not, except those inside it.
func (r *Run) due(path string, b *branch) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.untaken == 0 {
		return ""
	}
	var first *assay.Record
	for p, rec := range r.recorded {
		ofBranch := b.path == "" || strings.HasPrefix(p, b.path+"/")
		if !ofBranch || r.taken[p] || strings.HasPrefix(p, path+"/") {
			continue
		}
		if first == nil || rec.Ordinal < first.Ordinal {
			first = &rec
		}
	}
	if first == nil {
		return ""
	}
	return first.Path
}

// stop halts the run with err unless it is already halted. It returns err unchanged, as the error
// of the current step.
func (r *Run) stop(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halt == nil {
		r.halt = err
	}
	return err
}

// halted returns the reason why the run is halted, or nil.
func (r *Run) halted() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.halt
}

// appendGrace is the time that a journal has to store a result after the caller's context has
// ended. A result that was paid for is kept, but a journal that hangs does not hang the run.
const appendGrace = 2 * time.Second

// append stores rec, sets its ordinal, and halts the run if that fails.
func (r *Run) append(ctx context.Context, rec *assay.Record) error {
	ctx, cancel := outlive(ctx, appendGrace)
	defer cancel()
	stored, err := r.journal.Append(ctx, *rec)
	if err != nil {
		return r.stop(fmt.Errorf("step %s: write journal: %w", rec.Path, err))
	}
	if !sameResult(*rec, stored) {
		return r.stop(fmt.Errorf("step %s: journal returned another record than it was given: %w", rec.Path, assay.ErrDamaged))
	}
	rec.Ordinal = stored.Ordinal
	return nil
}

// sameResult reports whether the journal kept all that a replay returns.
func sameResult(a, b assay.Record) bool {
	sameError := a.Error == nil && b.Error == nil || a.Error != nil && b.Error != nil && *a.Error == *b.Error
	return sameError && a.Run == b.Run && a.Path == b.Path && a.Kind == b.Kind && a.Model == b.Model && a.Usage == b.Usage && a.Active == b.Active &&
		string(a.Input) == string(b.Input) && string(a.Output) == string(b.Output)
}

// outlive returns a context that ends grace after ctx does. cancel waits for its goroutine, if it
// needs one.
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

// cancelled returns the error of a step whose context has ended: ctx.Err and, if it adds
// information, the cause.
func cancelled(ctx context.Context, path string) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		return fmt.Errorf("step %s: %w: %w", path, err, cause)
	}
	return fmt.Errorf("step %s: %w", path, err)
}
