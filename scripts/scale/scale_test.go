package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store/sqlite"
)

// oneStep is a run with one step that takes a millisecond.
var oneStep = []Trace{{MS: 1, Steps: []Step{{Kind: "search", MS: 1}}}}

// queueOf returns a configuration with one resource for all steps.
func queueOf(rate float64, units int, s *Service) Config {
	return Config{
		Seed: 3, Rate: rate, Questions: 120_000, WarmUp: 5_000,
		Resources: []Resource{{Name: "r", Units: units, Service: s}},
		Steps:     map[string]Use{"*": {Resource: "r"}},
	}
}

func simulate(t *testing.T, c Config, traces []Trace) Result {
	t.Helper()
	r, err := Simulate(c, traces)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// near checks a figure against its closed form.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s: %.4f, want %.4f within %.0f %%", what, got, want, 100*tolerance)
	}
}

// erlangC returns the probability that a visit waits in M/M/c with the offered load a.
func erlangC(c int, a float64) float64 {
	b := 1.0 // Erlang B
	for i := 1; i <= c; i++ {
		b = a * b / (float64(i) + a*b)
	}
	rho := a / float64(c)
	return b / (1 - rho*(1-b))
}

// TestMMc compares queues of random times with Erlang's formula.
func TestMMc(t *testing.T) {
	for _, units := range []int{1, 4, 16} {
		for _, busy := range []float64{0.5, 0.75} {
			const mean = 10.0 // ms
			rate := busy * float64(units) / mean * 1000
			r := simulate(t, queueOf(rate, units, &Service{Mean: mean, Random: true}), oneStep)
			what := fmt.Sprintf("%d units, %.0f %% busy", units, 100*busy)
			wait := erlangC(units, busy*float64(units)) * mean / (float64(units) * (1 - busy))
			near(t, what+": utilisation", r.Resources[0].Utilisation, busy, 0.02)
			near(t, what+": time to the answer", r.Mean, mean+wait, 0.05)
			if wait > 0.5 {
				near(t, what+": wait", r.Resources[0].Wait, wait, 0.1)
			}
			near(t, what+": throughput", r.Throughput, rate, 0.02)
			near(t, what+": rate at which it saturates", r.Most, float64(units)/mean*1000, 0.02)
		}
	}
}

// TestQuantiles compares the quantiles of M/M/1, whose times to the answer are exponential, and the
// mean wait of M/D/1 with Pollaczek and Khinchine's formula.
func TestQuantiles(t *testing.T) {
	const mean, busy = 10.0, 0.7
	r := simulate(t, queueOf(busy/mean*1000, 1, &Service{Mean: mean, Random: true}), oneStep)
	for q, got := range map[float64]float64{0.5: r.P50, 0.95: r.P95, 0.99: r.P99} {
		near(t, fmt.Sprintf("quantile %v", q), got, -math.Log(1-q)*mean/(1-busy), 0.1)
	}
	r = simulate(t, queueOf(busy/mean*1000, 1, &Service{Mean: mean}), oneStep)
	near(t, "wait with equal times", r.Resources[0].Wait, busy*mean/(2*(1-busy)), 0.06)
}

// TestForkJoin compares a search of shards that are almost idle with the mean of the slowest.
func TestForkJoin(t *testing.T) {
	const mean, shards = 10.0, 8
	c := queueOf(0.01, 1, &Service{Mean: mean, Random: true})
	c.Questions, c.WarmUp = 20_000, 10
	c.Resources[0].Parts = shards
	r := simulate(t, c, oneStep)
	harmonic := 0.0
	for i := 1; i <= shards; i++ {
		harmonic += 1 / float64(i)
	}
	near(t, "the slowest of the shards", r.Mean, mean*harmonic, 0.03)
}

// TestReplay replays a run without load: it takes as long as it was recorded, and a commit for each step
// in turn.
func TestReplay(t *testing.T) {
	run := Trace{MS: 100, Steps: []Step{
		{Kind: "plan", At: 10, MS: 5},
		{Kind: "search", At: 20, MS: 30}, {Kind: "search", At: 25, MS: 40}, // at once, until 65
		{Kind: "model", At: 70, MS: 20},
	}}
	c := Config{
		Seed: 1, Rate: 0.001, Questions: 100, WarmUp: 1,
		Resources: []Resource{{Name: "server", Units: 4}, {Name: "model", Units: 1}, {Name: "commits", Units: 1, Service: &Service{Mean: 1}}},
		Steps:     map[string]Use{"*": {Resource: "server"}, "model": {Resource: "model", Times: 2}},
		Server:    "server",
	}
	// 10 + 5 + 5 before the searches, which begin at once, 40, then 5, the model, and 10.
	near(t, "without commits", simulate(t, c, []Trace{run}).Mean, 10+5+5+40+5+2*20+10, 1e-9)
	c.Commit = "commits"
	near(t, "with commits", simulate(t, c, []Trace{run}).Mean, 10+6+5+41+5+41+10, 1e-9)
	r := simulate(t, c, []Trace{run})
	demand := map[string]float64{}
	for _, l := range r.Resources {
		demand[l.Name] = l.Demand
	}
	for name, want := range map[string]float64{"server": 10 + 5 + 5 + 70 + 5 + 10, "model": 40, "commits": 4} {
		near(t, "demand of the "+name, demand[name], want, 0.001)
	}
	if r.First != "model" {
		t.Errorf("first to saturate: %s", r.First)
	}
	near(t, "rate at which the model saturates", r.Most, 25, 0.001)
}

// TestOverload asks more than can be answered.
func TestOverload(t *testing.T) {
	r := simulate(t, queueOf(200, 1, &Service{Mean: 10, Random: true}), oneStep)
	near(t, "throughput", r.Throughput, 100, 0.05)
	near(t, "utilisation", r.Resources[0].Utilisation, 1, 0.01)
}

// TestDeterministic simulates the same twice, and with another seed.
func TestDeterministic(t *testing.T) {
	c := queueOf(60, 1, &Service{Samples: []float64{1, 5, 30}})
	c.Questions, c.WarmUp = 5000, 100
	first, second := simulate(t, c, oneStep), simulate(t, c, oneStep)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("%+v\n%+v", first, second)
	}
	c.Seed++
	if other := simulate(t, c, oneStep); other.Mean == first.Mean {
		t.Error("another seed changes nothing")
	}
}

func TestInvalid(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no rate":           func(c *Config) { c.Rate = 0 },
		"only warm up":      func(c *Config) { c.WarmUp = c.Questions },
		"no units":          func(c *Config) { c.Resources[0].Units = 0 },
		"two of a name":     func(c *Config) { c.Resources = append(c.Resources, c.Resources[0]) },
		"no such resource":  func(c *Config) { c.Commit = "x" },
		"no such resource*": func(c *Config) { c.Steps["model"] = Use{Resource: "x"} },
	} {
		c := queueOf(1, 1, nil)
		change(&c)
		if _, err := Simulate(c, oneStep); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, text := range []string{"", "{", `{"steps":[{"kind":"","at":0,"ms":1}]}`, `{"steps":[{"kind":"x","at":-1,"ms":1}]}`, `{"steps":[{"kind":"x","at":0,"ms":-1}]}`, `{"stepz":[]}`} {
		if _, err := parseTraces(strings.NewReader(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func FuzzTraces(f *testing.F) {
	f.Add(`{"ms":3,"steps":[{"kind":"a","at":0,"ms":2},{"kind":"b","at":1,"ms":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		traces, err := parseTraces(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, x := range traces {
			stages, after := x.stages()
			n := 0
			for _, s := range stages {
				n += len(s.steps)
				if s.before < 0 {
					t.Errorf("a stage begins %v before the end of the one before", -s.before)
				}
			}
			if n != len(x.Steps) || after < 0 {
				t.Errorf("%d steps in stages, want %d; %v after", n, len(x.Steps), after)
			}
		}
	})
}

// TestRecord records the journal of a run.
func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	l, err := tenant.Runs().Create(t.Context(), assay.Run{ID: "run", Question: "?", Principal: assay.Local()})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, kind := range []assay.StepKind{assay.StepPlan, assay.StepSearch} {
		_, err := l.Append(t.Context(), assay.Record{
			Path: fmt.Sprint(i), Kind: kind, Input: json.RawMessage(`{}`), Output: json.RawMessage(`[1]`),
			Started: begin.Add(time.Duration(i) * 30 * time.Millisecond), Elapsed: 20 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(l.Finish(t.Context(), assay.RunDone, &assay.Answer{Status: assay.Answered}, ""), l.Close(), tenant.Close(), s.Close())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(context.Background(), []string{"record", "-data", dir}, &out); err != nil {
		t.Fatal(err)
	}
	traces, err := parseTraces(strings.NewReader(out.String()))
	if err != nil || len(traces) != 1 || traces[0].MS != 50 || len(traces[0].Steps) != 2 || traces[0].Steps[1].At != 30 || traces[0].Bytes == 0 {
		t.Errorf("%s: %+v, %v", out.String(), traces, err)
	}
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := run(context.Background(), []string{"simulate", "-trace", file, "-rate", "5"}, &table); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "first to saturate: server") {
		t.Error(table.String())
	}
}

// TestPlan computes plans whose figures are known.
func TestPlan(t *testing.T) {
	c := measured()
	c.Search = []Point{{1000, 1}, {2000, 3}}
	c.Answer, c.Commits, c.Commit, c.Searches = 20, 10, 0.5, 2
	c.IndexBytes, c.StoreBytes, c.JournalBytes, c.Tokens, c.EmbedTokens = 1000, 4000, 1e4, 100, 1000
	c.ShardTo, c.Replicas, c.Busy, c.KeepDays, c.IngestDays = 4000, 2, 0.5, 10, 1
	p, err := NewPlan(c, 8e6, 100)
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]float64{
		"shards":        {p.Shards, 2000},
		"searches":      {p.SearchMS, 2 * 2000 * 6}, // 4,000 chunks: in proportion to the last point
		"search cores":  {p.SearchCores, 100 * 24.0 / 0.5},
		"server cores":  {p.ServerCores, 4},
		"embed cores":   {p.EmbedCores, 8e6 * 0.1 / 86_400},
		"index":         {p.IndexGB, 16},
		"store":         {p.StoreGB, 64},
		"journal":       {p.JournalGB, 100 * 864_000 * 1e4 * 2 / 1e9},
		"journal, busy": {p.JournalBusy, 0.5},
	} {
		near(t, what, pair[0], pair[1], 1e-9)
	}
	if !p.Extrapolated || c.search(1500) != 2 || c.search(500) != 0.5 {
		t.Errorf("extrapolated: %t, search of 1500: %v, of 500: %v", p.Extrapolated, c.search(1500), c.search(500))
	}
	b := p.Bill(Price{Cores: 8, GiB: 1, Hour: 2, Disk: 0.1})
	if b.Machines != 601 && b.Machines != 600.5 {
		near(t, "machines", b.Machines, math.Ceil((p.SearchCores+p.ServerCores)/8), 1e-9)
	}
	near(t, "disks", b.Disks, (p.IndexGB+p.StoreGB+p.JournalGB)/1.073741824*0.1, 1e-9)
	if b := p.Bill(Price{Cores: 8, GiB: 1}); dollars(b.Compute) != "look up" || dollars(b.Disks) != "look up" {
		t.Errorf("without prices: %+v", b)
	}
	var out strings.Builder
	if err := run(context.Background(), []string{"plan"}, &out); err != nil || strings.Contains(out.String(), "look up") {
		t.Errorf("%s, %v", out.String(), err)
	}
	t.Log("\n" + out.String())
	if _, err := NewPlan(c, 0, 1); err == nil {
		t.Error("a plan of no chunks")
	}
}
