package run

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
)

// A program is a random strategy. Its next action depends on all results so far, which are folded
// into a state.
type program []op

// An op is one statement of a program. Exactly one of its parts is set.
type op struct {
	step     *stepOp
	clock    bool
	loop     *loopOp
	group    *groupOp
	parallel *parallelOp
}

type stepOp struct {
	reserve, usage assay.Usage
	fails          error
	suspends       int  // how often it is suspended before it has a result
	fatal          bool // its error ends the program
}

type loopOp struct {
	bound int
	body  program
}

type groupOp struct {
	fatal bool // its error ends the program
	body  program
}

type parallelOp struct {
	limit    int
	branches []program
}

func randomProgram(rnd *rand.Rand, depth int) program {
	p := make(program, 1+rnd.IntN(4))
	for i := range p {
		switch k := rnd.IntN(12); {
		case k < 6 || depth == 0:
			p[i].step = randomStep(rnd)
		case k < 7:
			p[i].clock = true
		case k < 8:
			p[i].loop = &loopOp{bound: 1 + rnd.IntN(3), body: randomProgram(rnd, depth-1)}
		case k < 10:
			p[i].group = &groupOp{fatal: rnd.IntN(3) == 0, body: randomProgram(rnd, depth-1)}
		default:
			f := &parallelOp{limit: 1 + rnd.IntN(3)}
			for range 1 + rnd.IntN(4) {
				f.branches = append(f.branches, randomProgram(rnd, depth-1))
			}
			p[i].parallel = f
		}
	}
	return p
}

func randomStep(rnd *rand.Rand) *stepOp {
	s := &stepOp{fatal: rnd.IntN(8) == 0}
	if rnd.IntN(2) == 0 {
		s.reserve = assay.Usage{Calls: 1, InputTokens: rnd.IntN(20), OutputTokens: rnd.IntN(20)}
		s.usage = assay.Usage{Calls: 1, InputTokens: rnd.IntN(25), OutputTokens: rnd.IntN(20)}
	}
	switch rnd.IntN(10) {
	case 0:
		s.fails = fmt.Errorf("nothing there: %w", assay.ErrNotFound)
	case 1:
		s.fails = errors.New("a plain error")
	case 2:
		s.suspends = 1 + rnd.IntN(2)
	}
	return s
}

// A world is the environment of the steps of one program, across crashes.
type world struct {
	t       *testing.T
	journal *Memory
	calm    bool // no interruptions and no suspensions

	mu     sync.Mutex
	rnd    *rand.Rand
	waited map[string]int
	stored map[string]bool
	cancel context.CancelFunc // cancels the caller's context
}

var errCrash = errors.New("crash")

// Append fails at random, before or after it stores the record.
func (w *world) Append(ctx context.Context, rec assay.Record) (assay.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	chance := w.rnd.IntN(12)
	if !w.calm && chance == 0 {
		return assay.Record{}, errCrash
	}
	got, err := w.journal.Append(ctx, rec)
	if err != nil {
		return got, err
	}
	w.stored[rec.Path] = true
	if !w.calm && chance == 1 {
		return assay.Record{}, errCrash
	}
	return got, nil
}

// act is the function of every step.
func (w *world) act(path string, op *stepOp, state uint64) (uint64, assay.Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stored[path] {
		w.t.Errorf("step %s is finished and performed again", path)
	}
	if w.calm {
		return mix(state, path), op.usage, op.fails
	}
	if w.waited[path] < op.suspends {
		w.waited[path]++
		return 0, op.usage, assay.ErrSuspended
	}
	switch w.rnd.IntN(30) {
	case 0:
		w.cancel()
		return 0, op.usage, context.Canceled
	case 1:
		w.cancel() // and the step still returns a result
	case 2:
		panic(errCrash)
	}
	return mix(state, path), op.usage, op.fails
}

// begin is called by the function of every group.
func (w *world) begin(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stored[path] {
		w.t.Errorf("group %s is finished and done again", path)
	}
}

func mix(state uint64, parts ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, state)
	for _, p := range parts {
		fmt.Fprintf(h, "\x00%v", p)
	}
	return h.Sum64()
}

// exec runs p in s. Errors are part of the state; a fatal one ends it.
func (w *world) exec(ctx context.Context, s Scope, p program, state uint64) (uint64, error) {
	for i, op := range p {
		var err error
		if state, err = w.execOp(ctx, s.Sub("op", i), op, state); err != nil {
			return state, err
		}
	}
	return state, nil
}

func (w *world) execOp(ctx context.Context, s Scope, op op, state uint64) (uint64, error) {
	switch {
	case op.step != nil:
		step := Step{Name: "step", Kind: assay.StepModel, Reserve: op.step.reserve}
		out, err := Do(ctx, s, step, state, func(_ context.Context, in uint64) (uint64, assay.Usage, error) {
			return w.act(s.Path()+"/step", op.step, in)
		})
		if err != nil && op.step.fatal {
			return state, err
		}
		return mix(state, out, err), nil
	case op.clock:
		d, err := s.Elapsed(ctx)
		return mix(state, d), err
	case op.loop != nil:
		for i := 0; i < op.loop.bound && (i == 0 || state%3 > 0); i++ {
			var err error
			if state, err = w.exec(ctx, s.Sub("round", i), op.loop.body, state); err != nil {
				return state, err
			}
		}
		return state, nil
	case op.group != nil:
		out, err := Group(ctx, s, Step{Name: "group", Kind: assay.StepGrade}, state, func(ctx context.Context, s Scope, in uint64) (uint64, error) {
			w.begin(s.Path())
			out, err := w.exec(ctx, s, op.group.body, in)
			return mix(out, s.Affords(assay.Usage{Calls: 1, InputTokens: 3})), err
		})
		if err != nil && op.group.fatal {
			return state, err
		}
		return mix(state, out, err, s.Spent()), nil
	}
	states := make([]uint64, len(op.parallel.branches))
	err := s.Parallel(ctx, "branch", len(states), op.parallel.limit, func(ctx context.Context, i int, s Scope) (err error) {
		states[i], err = w.exec(ctx, s, op.parallel.branches[i], mix(state, i))
		return err
	})
	return mix(state, states, err, s.Spent()), nil
}

// drive runs the program once from the journal's state. done reports whether its result counts.
func (w *world) drive(p program, budget assay.Budget) (result string, done bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.cancel = cancel
	fixed := time.Unix(0, 0)
	r, err := New(Config{Run: "r", Journal: w, Records: w.journal.Records(), Budget: budget, Now: func() time.Time { return fixed }})
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() {
		switch v := recover().(type) {
		case nil:
		case error:
			if !errors.Is(v, errCrash) {
				panic(v)
			}
			if r.Finish() == nil {
				w.t.Error("a run that panicked is not halted")
			}
		default:
			panic(v)
		}
	}()
	state, err := w.exec(ctx, r.Scope(), p, 1)
	switch end := r.Finish(); {
	case end == nil:
		return fmt.Sprint(state, err, r.Scope().Spent()), true
	case !errors.Is(end, errCrash) && !errors.Is(end, context.Canceled) && !errors.Is(end, assay.ErrSuspended):
		w.t.Errorf("Finish() = %v", end)
	}
	return "", false
}

func newWorld(t *testing.T, seed uint64, calm bool) *world {
	return &world{
		t: t, journal: &Memory{}, calm: calm, rnd: rand.New(rand.NewPCG(seed, 2)),
		waited: map[string]int{}, stored: map[string]bool{},
	}
}

// TestRandomPrograms checks that random programs, interrupted at random moments and resumed until
// they finish, return the result of an uninterrupted run, and that replays agree.
func TestRandomPrograms(t *testing.T) {
	programs := 1500
	switch {
	case os.Getenv("ASSAY_LONG") != "":
		programs = 50_000
	case testing.Short():
		programs = 200
	}
	var steps, interruptions int
	for seed := range uint64(programs) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := randomProgram(rnd, 3)
		budget := assay.Budget{Calls: rnd.IntN(12), Tokens: rnd.IntN(300)}

		calm := newWorld(t, seed, true)
		want, done := calm.drive(p, budget)
		if !done {
			t.Fatalf("seed %d: an uninterrupted run did not end", seed)
		}
		w := newWorld(t, seed, false)
		got, done := w.drive(p, budget)
		for tries := 0; !done; tries++ {
			if tries == 2000 {
				t.Fatalf("seed %d: the run does not come to its end", seed)
			}
			interruptions++
			got, done = w.drive(p, budget)
		}
		if got != want {
			t.Errorf("seed %d: result = %s, want %s", seed, got, want)
		}
		records := byPath(w.journal)
		steps += len(records)
		if diff := cmp.Diff(byPath(calm.journal), records, ignoreMinted); diff != "" {
			t.Errorf("seed %d: journal (-uninterrupted +resumed):\n%s", seed, diff)
		}
		checkReplays(t, seed, p, records, want)
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d programs, %d steps, %d interruptions", programs, steps, interruptions)
}

// ignoreMinted ignores the fields that the journal assigns.
var ignoreMinted = cmpopts.IgnoreFields(assay.Record{}, "Sequence", "Ordinal", "Bytes", "Leaf")

func byPath(m *Memory) []assay.Record {
	records := m.Records()
	slices.SortFunc(records, func(a, b assay.Record) int { return strings.Compare(a.Path, b.Path) })
	return records
}

// checkReplays replays records, and again with one of them removed or changed.
func checkReplays(t *testing.T, seed uint64, p program, records []assay.Record, want string) {
	t.Helper()
	replayed := func(records []assay.Record) (string, error) {
		w := newWorld(t, seed, true)
		for _, rec := range records {
			w.stored[rec.Path] = true // steps must not be executed
		}
		r := replay(t, records)
		state, err := w.exec(context.Background(), r.Scope(), p, 1)
		return fmt.Sprint(state, err, r.Scope().Spent()), r.Finish()
	}
	if got, err := replayed(records); got != want || err != nil {
		t.Errorf("seed %d: replay = %s, %v, want %s", seed, got, err, want)
	}
	// Records inside a group with a result are taken unchecked.
	outside := slices.DeleteFunc(slices.Clone(records), func(rec assay.Record) bool { return within(records, rec.Path) })
	if len(outside) == 0 {
		return
	}
	i := slices.IndexFunc(records, func(rec assay.Record) bool { return rec.Path == outside[int(seed)%len(outside)].Path })
	if _, err := replayed(slices.Delete(slices.Clone(records), i, i+1)); !errors.Is(err, assay.ErrDiverged) {
		t.Errorf("seed %d: replay without %s: %v, want ErrDiverged", seed, records[i].Path, err)
	}
	changed := slices.Clone(records)
	changed[i].Input = []byte(`"changed"`)
	if _, err := replayed(changed); !errors.Is(err, assay.ErrDiverged) {
		t.Errorf("seed %d: replay with another input of %s: %v, want ErrDiverged", seed, records[i].Path, err)
	}
}

// within reports whether path is inside a group that has a record.
func within(records []assay.Record, path string) bool {
	return slices.ContainsFunc(records, func(rec assay.Record) bool {
		return rec.Kind == assay.StepGrade && strings.HasPrefix(path, rec.Path+"/")
	})
}
