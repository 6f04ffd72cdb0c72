package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/egress"
	"github.com/assay-rag/assay/internal/webfetch"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/strategy"
)

// The tests in this file run with every strategy. Strategies that use a service or the web get
// fakes.

// everyConfig returns the configuration of a data directory in which every strategy has all it
// needs. at is the address of the web pages.
func everyConfig(dir, at string) Config {
	text := "The orbital period of the moon Ganymede is about seven days. It is large."
	said := "The orbital period of the moon Ganymede is about seven days. It is large."
	return Config{
		Dir: dir, NoCache: true, NoBackground: true,
		Web: &stillWeb{[]assay.WebResult{
			{URL: at + "/ganymede", Title: "Ganymede", Snippet: "A moon."},
			{URL: at + "/gone", Title: "Gone", Snippet: "The moon Ganymede has an orbital period of days."},
			{URL: "http://169.254.169.254/latest/", Title: "Metadata", Snippet: "A secret."},
		}},
		Pages: webfetch.New(webfetch.Config{Guard: egress.New(egress.Config{Permit: func(a netip.AddrPort) bool { return "http://"+a.String() == at }})}),
		Managed: stillService{strategy.ManagedAnswer{Text: said, Notes: []string{"cloud: a note"}, Parts: []strategy.ManagedPart{
			{Start: 0, End: strings.Index(said, " It is"), Hits: []assay.Hit{retrieved("s3://bucket/ganymede.txt", text)}},
			{Start: strings.Index(said, "It is"), End: len(said), Hits: []assay.Hit{retrieved("s3://bucket/ganymede.txt", text)}},
		}}},
	}
}

// everyPages are the web pages by path.
var everyPages = map[string]string{"/ganymede": ganymede}

// A stillWeb is a web search with fixed results.
type stillWeb struct{ results []assay.WebResult }

func (s *stillWeb) Name() string { return "finder" }

func (s *stillWeb) SearchWeb(context.Context, string, int) ([]assay.WebResult, error) {
	return s.results, nil
}

// A stillService is a managed service with a fixed answer.
type stillService struct{ answer strategy.ManagedAnswer }

func (s stillService) Name() string { return "cloud/base" }

func (s stillService) Most(question string) assay.Usage {
	return strategy.MostOfManaged(question, 100)
}

func (s stillService) Ask(context.Context, assay.Access, strategy.ManagedQuestion) (strategy.ManagedAnswer, assay.Usage, error) {
	return s.answer, assay.Usage{Calls: 1, OutputTokens: 7}, nil
}

// everyRequest returns a request that gives a strategy parallel work and several rounds. One part
// of the question depends on the part before it, and another has no answer.
func everyRequest(name string) Request {
	req := Request{
		Question: "Who approves travel to a customer, and how long is parental leave, and then what must a password have, and what is the boiling point of tungsten?",
		Strategy: name, NoCache: true, Budget: assay.Budget{Wall: 10 * time.Minute},
	}
	if name == "crag" || name == "managed" {
		req.Question, req.Web = lunar, name == "crag"
	}
	return req
}

// openEvery opens a data directory with the handbook for every strategy.
func openEvery(t *testing.T) (e *Engine, dir, at string) {
	t.Helper()
	at, _, _ = site(t, everyPages)
	dir = filepath.Join(t.TempDir(), "data")
	e, err := Open(t.Context(), everyConfig(dir, at))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	ingestPaths(t, e, "testdata/handbook")
	return e, dir, at
}

// everyModels sets whether roles are done locally or by clerks. It returns a function that counts
// the clerks' calls.
func everyModels(e *Engine, by string) func() int {
	if by == "local" {
		e.config.Models = Models{}
		return func() int { return 0 }
	}
	models := clerks(nil)
	e.config.Models = served(models)
	return func() int {
		n := 0
		for _, m := range models {
			n += m.calls()
		}
		return n
	}
}

var everyWay = []string{"local", "models"}

// A cut is a way in which the journal of a run fails.
type cut string

const (
	refused   cut = "refused"   // the record is not stored
	forgotten cut = "forgotten" // the record is stored, but the store returns an error
	cancelled cut = "cancelled" // the record is stored, and the caller cancels
)

// cutRuns returns leases that fail at a given write.
type cutRuns struct {
	store.Runs
	at     int
	how    cut
	cancel context.CancelFunc
}

func (c cutRuns) Create(ctx context.Context, r assay.Run, records ...assay.Record) (store.Lease, error) {
	l, err := c.Runs.Create(ctx, r, records...)
	return &cutLease{Lease: l, cut: c}, err
}

type cutLease struct {
	store.Lease
	cut    cutRuns
	writes atomic.Int64
}

var errCut = errors.New("the disk is full")

func (l *cutLease) Append(ctx context.Context, rec assay.Record) (assay.Record, error) {
	n := int(l.writes.Add(1))
	if n == l.cut.at && l.cut.how == refused {
		return rec, errCut
	}
	rec, err := l.Lease.Append(ctx, rec)
	if n == l.cut.at && err == nil {
		if l.cut.how == forgotten {
			return rec, errCut
		}
		l.cut.cancel()
	}
	return rec, err
}

// TestEveryStrategyCut checks that a run of any strategy, interrupted at any record in any way,
// reaches the answer of an uninterrupted run when resumed. No finished step is repeated, no
// stored reply is paid for twice, and a replay, which makes no calls, reaches the same answer
// byte for byte.
func TestEveryStrategyCut(t *testing.T) {
	t.Parallel()
	e, _, _ := openEvery(t)
	runs := e.runs
	cuts, records := 0, 0
	for _, way := range everyWay {
		for s, name := range strategy.Names() {
			everyModels(e, way)
			want, err := e.Answer(t.Context(), assay.Local(), everyRequest(name))
			if err != nil {
				t.Fatalf("%s, %s: %v", name, way, err)
			}
			replays(t, e, want.Run)
			r, err := e.run(t.Context(), assay.Local(), want.Run)
			if err != nil {
				t.Fatal(err)
			}
			records += r.Steps
			places := 3
			if testing.Short() {
				places = 1
			}
			for _, at := range someOf(r.Steps, places, s) {
				how := []cut{refused, forgotten, cancelled}
				if os.Getenv("ASSAY_LONG") == "" {
					how = how[(at+s)%3:][:1]
				}
				for _, how := range how {
					cuts++
					label := fmt.Sprintf("%s, %s, record %d of %d is %s", name, way, at, r.Steps, how)
					ctx, cancel := context.WithCancel(t.Context())
					everyModels(e, way)
					e.runs = cutRuns{runs, at, how, cancel}
					a, err := e.Answer(ctx, assay.Local(), everyRequest(name))
					e.runs = runs
					cancel()
					if err == nil && how == cancelled { // only the last record remained to be written
						if err := compare(want, a); err != nil {
							t.Errorf("%s: %v", label, err)
						}
						continue
					}
					var cut *RunError
					if !errors.As(err, &cut) || !cut.Resumable {
						t.Errorf("%s: %v", label, err)
						continue
					}
					checkResumed(t, e, label, way, cut.Run, want)
				}
			}
		}
	}
	t.Logf("%d cuts in %d records of %d strategies", cuts, records, len(strategy.Names()))
}

// someOf returns about n numbers from 1 to all, evenly spread, or all of them if ASSAY_LONG is
// set.
func someOf(all, n, from int) []int {
	var list []int
	step := max(1, all/n)
	if os.Getenv("ASSAY_LONG") != "" {
		step = 1
	}
	for i := 1 + from%step; i <= all; i += step {
		list = append(list, i)
	}
	return list
}

// checkResumed resumes an interrupted run and checks the result.
func checkResumed(t *testing.T, e *Engine, label, way, id string, want assay.Answer) {
	t.Helper()
	records, err := e.runs.Records(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	paid := 0
	for _, rec := range records {
		if rec.Kind == assay.StepModel && rec.Model != "cloud/base" {
			paid += rec.Usage.Calls
		}
	}
	asked := everyModels(e, way)
	if err := compare(want, resumed(t, e, id)); err != nil {
		t.Errorf("%s: %v", label, err)
	}
	all := want.Usage.Calls
	if want.Strategy == "managed" {
		all--
	}
	if paid+asked() != all {
		t.Errorf("%s: %d calls were paid for and %d made then, want %d together", label, paid, asked(), all)
	}
	replays(t, e, id)
}

// TestEveryStrategyIsDeterministic checks that a run has the same records, by path, and the same
// answer however its parallel branches are scheduled.
func TestEveryStrategyIsDeterministic(t *testing.T) {
	e, _, _ := openEvery(t)
	times := 2
	if os.Getenv("ASSAY_LONG") != "" {
		times = 12
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, way := range everyWay {
		for _, name := range strategy.Names() {
			var want assay.Answer
			var path []string
			for n := range times {
				runtime.GOMAXPROCS([]int{1, 4, 2}[n%3])
				everyModels(e, way)
				for role, m := range e.config.Models.Roles {
					e.config.Models.Roles[role] = slowed{inner: m}
				}
				spyOn(e, &spy{before: func(context.Context, assay.Query) error {
					time.Sleep(rand.N(2 * time.Millisecond))
					return nil
				}})
				a, err := e.Answer(t.Context(), assay.Local(), everyRequest(name))
				if err != nil {
					t.Fatalf("%s, %s: %v", name, way, err)
				}
				steps := stepsByPath(t, e, a.Run)
				if n == 0 {
					want, path = a, steps
					continue
				}
				if err := compare(want, a); err != nil {
					t.Errorf("%s, %s, run %d: %v", name, way, n, err)
				}
				for i := range max(len(path), len(steps)) {
					if i >= len(path) || i >= len(steps) || path[i] != steps[i] {
						t.Errorf("%s, %s, run %d: the first record that differs is %.500s, not %.500s", name, way, n, at(steps, i), at(path, i))
						break
					}
				}
			}
		}
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "none"
}

// slowed is a model with random latency.
type slowed struct{ inner llm.Model }

// Model implements llm.Model.
func (s slowed) Model() string { return s.inner.Model() }

// Facts implements llm.Described.
func (s slowed) Facts() llm.Facts { return llm.FactsOf(s.inner) }

// Generate implements llm.Model.
func (s slowed) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	time.Sleep(rand.N(2 * time.Millisecond))
	return s.inner.Generate(ctx, req, stream)
}

// stepsByPath returns the records of a run ordered by path, without the fields that vary between
// runs.
func stepsByPath(t *testing.T, e *Engine, id string) []string {
	t.Helper()
	records, err := e.runs.Records(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(records, func(a, b assay.Record) int { return cmp.Compare(a.Path, b.Path) })
	steps := make([]string, len(records))
	for i, rec := range records {
		if rec.Kind == assay.StepClock {
			rec.Output = nil // differs from run to run
		}
		steps[i] = fmt.Sprintf("%s %s %s: %s = %s %s %+v", rec.Path, rec.Kind, rec.Model, rec.Input, rec.Output, jsonOf(rec.Error), rec.Usage)
	}
	return steps
}

// TestEveryStrategySpent checks that a run that used up its calls or tokens, with any of the
// roles done by models, is replayed to the same answer without models.
func TestEveryStrategySpent(t *testing.T) {
	t.Parallel()
	e, _, _ := openEvery(t)
	some := [][]string{nil, {role.GraderRole}, {role.ActorRole, role.PlannerRole}, {role.GeneratorRole}, {role.VerifierRole}, {role.RewriterRole, role.JudgeRole}}
	for s, name := range strategy.Names() {
		for k, roles := range some {
			for b, budget := range []assay.Budget{{Calls: 1}, {Calls: 2}, {Calls: 5}, {Calls: 9}, {Tokens: 3000}, {Tokens: 12_000}} {
				if os.Getenv("ASSAY_LONG") == "" && (s+k+b)%6 > 0 {
					continue
				}
				everyModels(e, "models")
				for r := range e.config.Models.Roles {
					if roles != nil && !slices.Contains(roles, r) {
						delete(e.config.Models.Roles, r)
					}
				}
				req := everyRequest(name)
				req.Budget.Calls, req.Budget.Tokens = budget.Calls, budget.Tokens
				a, err := e.Answer(t.Context(), assay.Local(), req)
				if err != nil {
					t.Errorf("%s, %v, %+v: %v", name, roles, budget, err)
					continue
				}
				if used := a.Usage.InputTokens + a.Usage.OutputTokens; budget.Calls > 0 && a.Usage.Calls > budget.Calls || budget.Tokens > 0 && used > budget.Tokens {
					t.Errorf("%s, %v, %+v: used %+v", name, roles, budget, a.Usage)
				}
				t.Run(fmt.Sprintf("%s %v %+v", name, roles, budget), func(t *testing.T) { replays(t, e, a.Run) })
			}
		}
	}
}
