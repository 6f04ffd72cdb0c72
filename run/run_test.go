package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/assay-rag/assay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type question struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}

type result struct {
	Hits   []string `json:"hits"`
	Score  float64  `json:"score"`
	hidden int
}

// start returns a live run over j, resumed if j holds records.
func start(t testing.TB, j *Memory, change ...func(*Config)) *Run {
	t.Helper()
	cfg := Config{Run: "r", Journal: j, Records: j.Records()}
	for _, c := range change {
		c(&cfg)
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func replay(t testing.TB, records []assay.Record) *Run {
	t.Helper()
	r, err := Replay(Config{Run: "r", Records: records})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func withJournal(j Journal) func(*Config)      { return func(c *Config) { c.Journal = j } }
func withBudget(b assay.Budget) func(*Config)  { return func(c *Config) { c.Budget = b } }
func withObserver(f func(Event)) func(*Config) { return func(c *Config) { c.Observe = f } }
func search(name string) Step                  { return Step{Name: name, Kind: assay.StepSearch} }
func call(name string, reserve assay.Usage) Step {
	return Step{Name: name, Kind: assay.StepModel, Model: "m", Reserve: reserve}
}

// answer returns a step function that returns out.
func answer[In, Out any](out Out) func(context.Context, In) (Out, assay.Usage, error) {
	return func(context.Context, In) (Out, assay.Usage, error) { return out, assay.Usage{}, nil }
}

// fails returns a step function that returns err.
func fails(err error) func(context.Context, int) (int, assay.Usage, error) {
	return func(context.Context, int) (int, assay.Usage, error) { return 0, assay.Usage{}, err }
}

// never returns a step function that must not be called.
func never[In, Out any](t testing.TB) func(context.Context, In) (Out, assay.Usage, error) {
	return func(context.Context, In) (out Out, _ assay.Usage, _ error) {
		t.Error("the step's function is called")
		return out, assay.Usage{}, nil
	}
}

// journalFunc adapts a function to a Journal.
type journalFunc func(ctx context.Context, rec assay.Record) (assay.Record, error)

func (f journalFunc) Append(ctx context.Context, rec assay.Record) (assay.Record, error) {
	return f(ctx, rec)
}

func TestDoRecordsBeforeItReturns(t *testing.T) {
	ctx := context.Background()
	var j Memory
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := start(t, &j, func(c *Config) { c.Now = func() time.Time { now = now.Add(time.Second); return now } })
	usage := assay.Usage{Calls: 1, InputTokens: 10, OutputTokens: 2, CostMicros: 3, Searches: 4}
	step := Step{Name: "search", Kind: assay.StepSearch, Model: "gte"}
	got, err := Do(ctx, r.Scope().Sub("sub", 1), step, question{"a<b", 3},
		func(_ context.Context, q question) (result, assay.Usage, error) {
			return result{Hits: nil, Score: 0.5, hidden: 7}, usage, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	// Data that encoding/json drops is missing from the first result too.
	if diff := cmp.Diff(result{Score: 0.5}, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	want := []assay.Record{{
		Sequence: 1, Run: "r", Path: "sub[1]/search", Kind: assay.StepSearch, Model: "gte",
		Input: json.RawMessage(`{"limit":3,"query":"a<b"}`), Output: json.RawMessage(`{"hits":null,"score":0.5}`),
		Usage: usage, Started: time.Date(2026, 1, 2, 3, 4, 7, 0, time.UTC), Elapsed: time.Second, Active: 2 * time.Second,
	}}
	if diff := cmp.Diff(want, j.Records(), cmpopts.IgnoreFields(assay.Record{}, "Bytes", "Leaf")); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if got := r.Scope().Spent(); got != usage {
		t.Errorf("Spent() = %+v, want %+v", got, usage)
	}
	if err := r.Finish(); err != nil {
		t.Errorf("Finish() = %v", err)
	}
}

func TestResumeAndReplay(t *testing.T) {
	ctx := context.Background()
	var j Memory
	boom := fmt.Errorf("search %q: %w", "x", assay.ErrNotFound)
	first := start(t, &j)
	if _, err := Do(ctx, first.Scope(), search("one"), 1, answer[int](map[string]any{"n": 1 << 30})); err != nil {
		t.Fatal(err)
	}
	_, liveErr := Do(ctx, first.Scope(), search("two"), 2, fails(boom))

	check := func(t *testing.T, r *Run) {
		t.Helper()
		got, err := Do(ctx, r.Scope(), search("one"), 1, never[int, map[string]any](t))
		if err != nil || got["n"] != float64(1<<30) {
			t.Errorf("step one = %v, %v", got, err)
		}
		_, err = Do(ctx, r.Scope(), search("two"), 2, never[int, int](t))
		if !errors.Is(err, assay.ErrNotFound) || err.Error() != liveErr.Error() {
			t.Errorf("step two: error = %v, want %v", err, liveErr)
		}
	}
	check(t, replay(t, j.Records()))
	resumed := start(t, &j)
	check(t, resumed)
	if got, err := Do(ctx, resumed.Scope(), search("three"), 3, answer[int](4)); got != 4 || err != nil {
		t.Errorf("step three = %v, %v", got, err)
	}
	if err := resumed.Finish(); err != nil {
		t.Error(err)
	}
	if n := len(j.Records()); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}

func TestDivergence(t *testing.T) {
	ctx := context.Background()
	var j Memory
	r := start(t, &j)
	if _, err := Do(ctx, r.Scope(), search("one"), question{"a", 1}, answer[question]("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := Do(ctx, r.Scope(), search("two"), 2, answer[int](2)); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		take func(s Scope) error
		want DivergenceError
		text string
	}{
		{
			name: "input",
			take: func(s Scope) error {
				_, err := Do(ctx, s, search("one"), question{"b", 1}, never[question, string](t))
				return err
			},
			want: DivergenceError{
				Path: "one", Reason: OtherInput, Diff: `in.query: "a" != "b"`,
				Recorded: json.RawMessage(`{"limit":1,"query":"a"}`), Given: json.RawMessage(`{"limit":1,"query":"b"}`),
			},
			text: `step one: run diverged from its journal: the input differs: in.query: "a" != "b"`,
		},
		{
			name: "kind",
			take: func(s Scope) error {
				_, err := Do(ctx, s, Step{Name: "two", Kind: assay.StepGrade}, 2, never[int, int](t))
				return err
			},
			want: DivergenceError{Path: "two", Reason: OtherKind, Recorded: json.RawMessage(`2`), Given: json.RawMessage(`2`), Diff: `"search" != "grade"`},
		},
		{
			name: "result",
			take: func(s Scope) error {
				_, err := Do(ctx, s, search("one"), question{"a", 1}, never[question, int](t))
				return err
			},
			want: DivergenceError{
				Path: "one", Reason: OtherResult, Recorded: json.RawMessage(`{"limit":1,"query":"a"}`), Given: json.RawMessage(`{"limit":1,"query":"a"}`),
				Diff: "json: cannot unmarshal string into Go value of type int",
			},
		},
		{
			name: "not recorded",
			take: func(s Scope) error {
				_, err := Do(ctx, s.Sub("sub", 0), search("one"), 5, never[int, int](t))
				return err
			},
			want: DivergenceError{Path: "sub[0]/one", Reason: NotRecorded, Given: json.RawMessage(`5`)},
			text: "step sub[0]/one: run diverged from its journal: the journal does not hold it",
		},
		{
			name: "not taken",
			take: func(s Scope) error { return s.run.Finish() },
			want: DivergenceError{Path: "one", Reason: NotTaken, Recorded: json.RawMessage(`{"limit":1,"query":"a"}`), Steps: 2},
			text: "step one: run diverged from its journal: the journal holds it but it was not taken (nor were 1 after it)",
		},
	}
	for _, tt := range tests {
		for mode, r := range map[string]*Run{"replay": replay(t, j.Records()), "resume": start(t, &j)} {
			err := tt.take(r.Scope())
			var got *DivergenceError
			if !errors.As(err, &got) || !errors.Is(err, assay.ErrDiverged) {
				t.Errorf("%s, %s: error = %v, want a DivergenceError", tt.name, mode, err)
				continue
			}
			want := tt.want
			if mode == "resume" && want.Reason == NotRecorded {
				want.Before = "one"
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", tt.name, mode, diff)
			}
			if tt.text != "" && err.Error() != tt.text {
				t.Errorf("%s, %s: message = %q, want %q", tt.name, mode, err, tt.text)
			}
			if tt.want.Reason == NotTaken {
				continue
			}
			// The run is halted, even if the strategy ignores the error.
			if _, err := Do(ctx, r.Scope(), search("later"), 0, never[int, int](t)); !errors.Is(err, assay.ErrDiverged) {
				t.Errorf("%s, %s: a later step's error = %v, want ErrDiverged", tt.name, mode, err)
			}
			if err := r.Finish(); !errors.Is(err, assay.ErrDiverged) {
				t.Errorf("%s, %s: Finish() = %v, want ErrDiverged", tt.name, mode, err)
			}
		}
	}
	if n := len(j.Records()); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// TestErrorKinds checks that every kind of error in package assay survives the journal.
func TestErrorKinds(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Err") {
			declared++
		}
		return true
	})
	if declared != len(kinds) {
		t.Errorf("package assay declares %d errors, %d are known here", declared, len(kinds))
	}
	for _, kind := range append(kinds, nil) {
		orig := errors.New("plain")
		if kind != nil {
			orig = fmt.Errorf("doing it: %w", kind)
		}
		rec := recordError(orig)
		got := restoreError("p", rec)
		if kind != nil && !errors.Is(got, kind) || got.Error() != "step p: "+orig.Error() {
			t.Errorf("%v came back as %v", orig, got)
		}
		for _, other := range kinds {
			if other != kind && errors.Is(got, other) {
				t.Errorf("%v came back as %v too", orig, other)
			}
		}
	}
	unknown := restoreError("p", &assay.RecordedError{Kind: "of a later version", Message: "m"})
	if unknown.Error() != "step p: m" {
		t.Errorf("unknown kind: %v", unknown)
	}
}

// TestNoJSON checks values without a JSON form: an input is an error of the strategy, and an output
// is a recorded failure of the step.
func TestNoJSON(t *testing.T) {
	ctx := context.Background()
	var j Memory
	r := start(t, &j)
	if _, err := Do(ctx, r.Scope(), search("in"), math.NaN(), never[float64, int](t)); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("input: error = %v, want ErrInvalid", err)
	}
	_, err := Do(ctx, r.Scope(), search("out"), 1, func(context.Context, int) (float64, assay.Usage, error) {
		return math.Inf(1), assay.Usage{Calls: 1}, nil
	})
	if !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("output: error = %v, want ErrInvalid", err)
	}
	if _, err := Do(ctx, r.Scope(), search("access"), 1, answer[int](assay.Local().Access())); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("unreadable output: error = %v, want ErrInvalid", err)
	}
	if n, spent := len(j.Records()), r.Scope().Spent().Calls; n != 2 || spent != 1 {
		t.Errorf("%d records with %d calls, want 2 with 1", n, spent)
	}
	if err := r.Finish(); err != nil {
		t.Error(err)
	}
}

func TestProgrammingErrorsPanic(t *testing.T) {
	ctx := context.Background()
	take := func(s Scope, name string) {
		if _, err := Do(ctx, s, search(name), 1, answer[int](1)); err != nil {
			t.Error(err)
		}
	}
	tests := []struct {
		want string
		run  func(s Scope)
	}{
		{"step sub[0]/a is taken twice", func(s Scope) { take(s.Sub("sub", 0), "a"); take(s.Sub("sub", 0), "a") }},
		{`"a/b" is no name`, func(s Scope) { take(s, "a/b") }},
		{`"" is no name`, func(s Scope) { take(s, "") }},
		{`"a[0]" is no name`, func(s Scope) { s.Sub("a[0]", 0) }},
		{`"a b" is no name`, func(s Scope) { s.Sub("a b", 0) }},
		{"scope a[-1]", func(s Scope) { s.Sub("a", -1) }},
		{"step in is taken while another", func(s Scope) {
			_, err := Do(ctx, s, search("out"), 1, func(context.Context, int) (int, assay.Usage, error) {
				take(s, "in")
				return 0, assay.Usage{}, nil
			})
			t.Errorf("error = %v, want a panic", err)
		}},
		{"the group grade reserves", func(s Scope) {
			_, err := Group(ctx, s, Step{Name: "grade", Kind: assay.StepGrade, Reserve: assay.Usage{Calls: 1}}, 1, notDone(t))
			t.Errorf("error = %v, want a panic", err)
		}},
		{"step in is taken while another", func(s Scope) {
			err := s.Parallel(ctx, "fork", 2, 1, func(context.Context, int, Scope) error { take(s, "in"); return nil })
			t.Errorf("error = %v, want a panic", err)
		}},
	}
	for _, tt := range tests {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tt.want) {
					t.Errorf("panic = %.300s, want %s", got, tt.want)
				}
			}()
			var j Memory
			tt.run(start(t, &j).Scope())
		}()
	}
}

func TestNewRejects(t *testing.T) {
	var j Memory
	rec := assay.Record{Run: "r", Path: "a"}
	tests := []struct {
		name string
		make func() (*Run, error)
		want error
	}{
		{"no journal", func() (*Run, error) { return New(Config{Run: "r"}) }, assay.ErrInvalid},
		{"no run", func() (*Run, error) { return New(Config{Journal: &j}) }, assay.ErrInvalid},
		{"replay with journal", func() (*Run, error) { return Replay(Config{Run: "r", Journal: &j}) }, assay.ErrInvalid},
		{"another run", func() (*Run, error) { return Replay(Config{Run: "s", Records: []assay.Record{rec}}) }, assay.ErrInvalid},
		{"twice", func() (*Run, error) { return Replay(Config{Run: "r", Records: []assay.Record{rec, rec}}) }, assay.ErrDamaged},
	}
	for _, tt := range tests {
		if _, err := tt.make(); !errors.Is(err, tt.want) {
			t.Errorf("%s: error = %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestObserve(t *testing.T) {
	ctx := context.Background()
	var j Memory
	var events []Event
	observe := withObserver(func(e Event) { events = append(events, e) })
	strategy := func(r *Run) {
		s := r.Scope()
		Do(ctx, s, search("ok"), 1, answer[int]("out"))
		Do(ctx, s, search("bad"), 2, fails(assay.ErrNotFound))
		Do(ctx, s, call("refused", assay.Usage{Calls: 2}), 3, never[int, int](t))
	}
	ignoreTimes := cmpopts.IgnoreFields(Event{}, "Started", "Elapsed", "Active")
	want := func(replayed bool) []Event {
		refused := &BudgetError{Path: "refused", Stop: assay.StopCallBudget, Need: 2, Left: 1}
		list := []Event{
			{Phase: StepStart, Path: "ok", Kind: assay.StepSearch, Input: json.RawMessage(`1`)},
			{Phase: StepEnd, Path: "ok", Kind: assay.StepSearch, Input: json.RawMessage(`1`), Output: json.RawMessage(`"out"`)},
			{Phase: StepStart, Path: "bad", Kind: assay.StepSearch, Input: json.RawMessage(`2`)},
			{Phase: StepEnd, Ordinal: 1, Path: "bad", Kind: assay.StepSearch, Input: json.RawMessage(`2`), Err: &StepError{"bad", assay.ErrNotFound, "not found"}},
			{Phase: StepStart, Path: "refused", Kind: assay.StepModel, Model: "m", Input: json.RawMessage(`3`)},
			{Phase: StepEnd, Ordinal: 2, Path: "refused", Kind: assay.StepModel, Model: "m", Input: json.RawMessage(`3`), Err: refused},
		}
		for i := range list {
			list[i].Replayed = replayed
		}
		return list
	}
	strategy(start(t, &j, observe, withBudget(assay.Budget{Calls: 1})))
	if diff := cmp.Diff(want(false), events, ignoreTimes, cmp.Comparer(sameKind)); diff != "" {
		t.Errorf("live (-want +got):\n%s", diff)
	}
	live := events
	events = nil
	strategy(start(t, &j, observe))
	if diff := cmp.Diff(want(true), events, ignoreTimes, cmp.Comparer(sameKind)); diff != "" {
		t.Errorf("resumed (-want +got):\n%s", diff)
	}
	for i, e := range events {
		if !e.Started.Equal(live[i].Started) || e.Elapsed != live[i].Elapsed || e.Active != live[i].Active {
			t.Errorf("%s %s: other times than the live run's", e.Phase, e.Path)
		}
	}
}

// sameKind compares the errors inside a StepError.
func sameKind(a, b error) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Error() == b.Error() && errors.Is(a, assay.ErrNotFound) == errors.Is(b, assay.ErrNotFound)
}

// TestWithin checks that a step is performed in the context that Within returns, that the steps of a
// group inherit it, and that Within is not called for steps of the journal.
func TestWithin(t *testing.T) {
	t.Parallel()
	type key struct{}
	var asked []string
	config := Config{Run: "r", Journal: &Memory{}, Within: func(ctx context.Context, path string) context.Context {
		asked = append(asked, path)
		outer, _ := ctx.Value(key{}).(string)
		return context.WithValue(ctx, key{}, outer+">"+path)
	}}
	strategy := func(r *Run) string {
		got := ""
		_, err := Group(t.Context(), r.Scope(), Step{Name: "job", Kind: assay.StepRole}, 1, func(ctx context.Context, s Scope, _ int) (int, error) {
			return Do(ctx, s, Step{Name: "call", Kind: assay.StepModel}, 1, func(ctx context.Context, _ int) (int, assay.Usage, error) {
				got, _ = ctx.Value(key{}).(string)
				return 1, assay.Usage{}, nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strategy(r), ">job>job/call"; got != want {
		t.Errorf("the step is performed in %q, want %q", got, want)
	}
	config.Records, asked = config.Journal.(*Memory).Records(), nil
	if r, err = New(config); err != nil {
		t.Fatal(err)
	}
	if strategy(r); len(asked) > 0 {
		t.Errorf("Within was called for steps of the journal: %q", asked)
	}
}
