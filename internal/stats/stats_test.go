package stats

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func close4(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 5e-5 {
		t.Errorf("%s is %.6f, want %.6f", what, got, want)
	}
}

// TestFisher compares the exact test with published values.
func TestFisher(t *testing.T) {
	// The lady tasting tea: 3 of 4 and 1 of 4. Tables as likely or less likely: 0, 1, 3 and 4 of 4
	// right, (1+16+16+1)/70.
	close4(t, "tea", fisher(3, 4, 1, 4), 34.0/70)
	// The example of scipy.stats.fisher_exact: [[8, 2], [1, 5]].
	close4(t, "scipy", fisher(8, 10, 1, 6), 0.034965)
	close4(t, "the same", fisher(5, 50, 5, 50), 1)
	close4(t, "nobody", fisher(0, 0, 3, 5), 1)
	if p := fisher(900, 1000, 500, 1000); !(p < 1e-50) {
		t.Errorf("900 and 500 of 1,000: %v", p)
	}
}

// TestMannWhitney compares the test with the example of scipy.stats.mannwhitneyu (ages at
// diagnosis, method "asymptotic"), and checks trivial samples.
func TestMannWhitney(t *testing.T) {
	close4(t, "scipy", mannWhitney([]float64{19, 22, 16, 29, 24}, []float64{20, 11, 17, 12}), 0.111347)
	close4(t, "all alike", mannWhitney([]float64{1, 1, 1}, []float64{1, 1}), 1)
	close4(t, "empty", mannWhitney(nil, []float64{1}), 1)
}

// TestHolm checks an example: 0.005*4, 0.01*3, 0.03*2, and 0.04 not under the one before.
func TestHolm(t *testing.T) {
	all := []Drift{{P: 0.01}, {P: 0.04}, {P: 0.03}, {P: 0.005}}
	holm(all)
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		close4(t, fmt.Sprint(i), all[i].P, want)
	}
}

func TestDistribution(t *testing.T) {
	var xs []float64
	for i := range 100 {
		xs = append(xs, float64(100-i))
	}
	want := Distribution{Count: 100, Mean: 50.5, P50: 50, P95: 95, P99: 99, Max: 100}
	if diff := cmp.Diff(want, distribution(xs)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Distribution{1, 7, 7, 7, 7, 7}, distribution([]float64{7})); diff != "" {
		t.Error(diff)
	}
}

func record(ordinal int, kind assay.StepKind, path, output string) assay.Record {
	return assay.Record{Ordinal: ordinal, Kind: kind, Path: path, Output: json.RawMessage(output), Elapsed: 10 * time.Millisecond}
}

func TestObserve(t *testing.T) {
	failed := record(6, assay.StepModel, "finish[0]/verify/call[0]/model", "")
	failed.Output, failed.Error, failed.Usage = nil, &assay.RecordedError{Message: "busy"}, assay.Usage{Calls: 2}
	reply := record(5, assay.StepModel, "finish[0]/generate/call[0]/model", `{"finish":"length","attempts":[{"kind":"busy"}]}`)
	reply.Usage = assay.Usage{Calls: 2, OutputTokens: 40, CostMicros: 7}
	records := []assay.Record{
		record(0, assay.StepGrade, "sub[0]/round[0]/grade", `{"verdict":"sufficient"}`),
		record(1, assay.StepGrade, "sub[1]/round[0]/grade", `{"verdict":"partly"}`),
		record(2, assay.StepGrade, "sub[1]/round[1]/grade", `{"verdict":"sufficient"}`),
		record(3, assay.StepTool, "step[0]/use[0]/search", `{"refused":"no such result"}`),
		record(4, assay.StepTool, "step[1]/use[0]/search", `{}`),
		reply,
		failed,
		record(7, assay.StepVerify, "finish[0]/verify", `[{"verdict":"supported"},{"verdict":"contradicted"},{"verdict":"unsupported"}]`),
	}
	r := assay.Run{ID: "r", State: assay.RunDone, Steps: len(records), Request: json.RawMessage(`{"strategy":"auto","collections":["b","a","b"]}`), Answer: &assay.Answer{
		Strategy: "corrective", Status: assay.Incomplete, Stop: assay.StopDeadline, Iterations: 3, ElapsedMS: 90,
		Searched: []assay.Searched{{TopRelevance: 0.4}, {TopRelevance: 0.7}},
	}}
	want := Observation{
		Run: "r", Strategy: "corrective", Collections: []string{"a", "b"}, State: assay.RunDone, Status: assay.Incomplete, Stop: assay.StopDeadline,
		Graded: true, FirstTry: false, Iterations: 3, Searched: true, TopRelevance: 0.7, Claims: 3, Rejected: 2, ToolCalls: 2, ToolErrors: 1,
		ModelCalls: 4, ModelErrors: 3, Finishes: map[string]int{"length": 1, "error": 1}, OutputTokens: 40, CostMicros: 7, Latency: 90 * time.Millisecond,
		Stages: map[assay.StepKind]Stage{
			assay.StepGrade: {30 * time.Millisecond, 0}, assay.StepTool: {20 * time.Millisecond, 0},
			assay.StepModel: {20 * time.Millisecond, 7}, assay.StepVerify: {10 * time.Millisecond, 0},
		},
	}
	if diff := cmp.Diff(want, Observe(r, records, nil)); diff != "" {
		t.Error(diff)
	}
	if !want.CapHit() {
		t.Error("a deadline is a limit")
	}
	for iterations, hit := range []bool{false, false, true, true} {
		if (Observation{Stop: assay.StopIterationLimit, Iterations: iterations}).CapHit() != hit {
			t.Errorf("the limit after %d iterations: want %v", iterations, hit)
		}
	}
	for name, change := range map[string]func(r *assay.Run, records []assay.Record) ([]assay.Record, error){
		"a damaged journal": func(_ *assay.Run, records []assay.Record) ([]assay.Record, error) { return nil, errors.New("altered") },
		"a step gone":       func(_ *assay.Run, records []assay.Record) ([]assay.Record, error) { return records[:7], nil },
		"a gap": func(_ *assay.Run, records []assay.Record) ([]assay.Record, error) {
			records[3].Ordinal = 9
			return records, nil
		},
		"no answer": func(r *assay.Run, records []assay.Record) ([]assay.Record, error) {
			r.Answer = nil
			return records, nil
		},
		"failed, without why": func(r *assay.Run, records []assay.Record) ([]assay.Record, error) {
			r.State = assay.RunFailed
			return records, nil
		},
		"a step without end": func(_ *assay.Run, records []assay.Record) ([]assay.Record, error) {
			records[0].Output = nil
			return records, nil
		},
	} {
		copied := r
		kept, err := change(&copied, append([]assay.Record(nil), records...))
		if o := Observe(copied, kept, err); o.Fault == "" {
			t.Errorf("%s passes for a complete trace", name)
		}
	}
	interrupted := assay.Run{ID: "i", State: assay.RunActive, Request: json.RawMessage(`{"strategy":"static"}`), Steps: 3}
	if o := Observe(interrupted, records[:1], nil); o.Fault != "" || o.Ended() || o.Strategy != "static" {
		t.Errorf("a run that is under way: %+v", o)
	}
}

// TestObserveRepairedClaims checks that a claim judged twice counts once, and that a claim
// supported in the end does not count as rejected.
func TestObserveRepairedClaims(t *testing.T) {
	checked := record(0, assay.StepVerify, "finish[0]/verify", `[{"verdict":"supported","score":1},{"verdict":"unsupported","score":0.1},{"verdict":"unsupported","score":0.1}]`)
	checked.Input = json.RawMessage(`[{"claim":"it is red"},{"claim":"it is blue"},{"claim":"it is round"}]`)
	elsewhere := record(1, assay.StepVerify, "finish[0]/repair[0]/elsewhere[0]/verify", `[{"verdict":"supported","score":0.9},{"verdict":"unsupported","score":0.1}]`)
	elsewhere.Input = json.RawMessage(`[{"claim":"it is blue"},{"claim":"it is round"}]`)
	sought := record(2, assay.StepVerify, "finish[0]/sought[0]/verify", `[{"verdict":"unsupported","score":0.2}]`)
	sought.Input = json.RawMessage(`[{"claim":"it is round"}]`)
	o := Observe(assay.Run{State: assay.RunActive}, []assay.Record{checked, elsewhere, sought}, nil)
	if o.Claims != 3 || o.Rejected != 1 {
		t.Errorf("%d of %d claims rejected, want 1 of 3", o.Rejected, o.Claims)
	}
}

var today = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// runsOf returns n runs from an hour before the given number of days ago, each modified by edit.
func runsOf(n int, days float64, edit func(i int, o *Observation)) []Observation {
	var all []Observation
	for i := range n {
		o := Observation{
			Run: fmt.Sprintf("%v-%d", days, i), Created: today.Add(-time.Duration(days*24*float64(time.Hour)) - time.Hour), Strategy: "static",
			State: assay.RunDone, Status: assay.Answered, Stop: assay.StopSufficient, Graded: true, FirstTry: i%10 != 0,
			Iterations: 1 + i%2, Searched: true, TopRelevance: 0.7 + 0.002*float64(i%50), Claims: 3, Rejected: one(i%15 == 0),
			ToolCalls: 1, Latency: time.Duration(100+i%37) * time.Millisecond,
		}
		if edit != nil {
			edit(i, &o)
		}
		all = append(all, o)
	}
	return all
}

func TestQuiet(t *testing.T) {
	all := append(runsOf(100, 0, nil), append(runsOf(120, 2, nil), runsOf(80, 5, nil)...)...)
	r := Of(all, Options{Now: today})
	if len(r.Alerts)+len(r.Alarms)+len(r.Faults) > 0 || r.TooFew != "" {
		t.Errorf("alarms of healthy runs: %+v", r)
	}
	for _, d := range r.Drift {
		if d.Drifting {
			t.Errorf("drift of healthy runs: %+v", d)
		}
	}
	for _, o := range r.Objectives {
		if !o.Met {
			t.Errorf("missed: %+v", o)
		}
	}
	if len(r.Days) != 3 || r.Days[0].Signals.Runs != 80 || r.All.Runs != 300 || r.Collections[0].Name != everywhere {
		t.Errorf("groups: %+v", r.Days)
	}
}

func TestDegrading(t *testing.T) {
	all := append(runsOf(150, 3, nil), runsOf(60, 0, func(i int, o *Observation) {
		o.FirstTry, o.TopRelevance, o.Iterations = i%2 == 0, 0.4+0.002*float64(i), 9
		if i%4 == 0 {
			o.Status, o.Stop = assay.NotFound, assay.StopDeadline
		}
		o.ToolErrors, o.Latency = one(i%5 == 0), 31*time.Second
	})...)
	r := Of(all, Options{Now: today})
	var alerts []string
	for _, a := range r.Alerts {
		alerts = append(alerts, a.Signal)
	}
	if diff := cmp.Diff([]string{"iterations", "cap_hits", "latency_ms", "tool_errors"}, alerts); diff != "" {
		t.Error(diff)
	}
	var alarms []string
	for _, a := range r.Alarms {
		alarms = append(alarms, a.Name)
	}
	if diff := cmp.Diff([]string{"retrieval", "services", "everything"}, alarms); diff != "" {
		t.Error(diff)
	}
	for _, o := range r.Objectives {
		if o.Met != (o.Signal == "complete_traces") {
			t.Errorf("objective: %+v", o)
		}
	}
	better := Of(append(runsOf(60, 0, nil), runsOf(150, 3, func(i int, o *Observation) { o.Latency = 40 * time.Second })...), Options{Now: today})
	for _, d := range better.Drift {
		if d.Worse || d.Drifting != (d.Signal == "latency_ms") {
			t.Errorf("what got better: %+v", d)
		}
	}
}

// TestMeasuring checks that the runs of evaluations are left out.
func TestMeasuring(t *testing.T) {
	r := Of(append(runsOf(30, 0, nil), runsOf(70, 0, func(_ int, o *Observation) { o.Measuring, o.Latency = true, time.Hour })...), Options{Now: today})
	if r.All.Runs != 30 || r.Measuring != 70 || len(r.Alerts) > 0 {
		t.Errorf("%d runs, %d of evaluations, %v", r.All.Runs, r.Measuring, r.Alerts)
	}
	asked := assay.Run{Request: json.RawMessage(`{"strategy":"auto","measuring":true}`)}
	if !Observe(asked, nil, nil).Measuring {
		t.Error("a run of an evaluation passes for a user's")
	}
}

func TestFewRuns(t *testing.T) {
	r := Of(runsOf(5, 0, nil), Options{Now: today})
	if r.TooFew == "" || len(r.Drift) > 0 {
		t.Errorf("drift of five runs: %+v", r.Drift)
	}
	if empty := Of(nil, Options{Now: today}); empty.All.Runs != 0 || empty.Objectives[0].Met || len(empty.Alerts) > 0 {
		t.Errorf("no runs: %+v", empty)
	}
}

// TestFalseAlarms draws the recent runs and those before from one distribution. Hardly any report
// may call a signal drifting.
func TestFalseAlarms(t *testing.T) {
	wrong := 0
	for seed := range 200 {
		random := func(i, k int) float64 { // a hash of all three, in [0, 1)
			x := uint64(seed)*0x9e3779b97f4a7c15 + uint64(i)*0xbf58476d1ce4e5b9 + uint64(k)*0x94d049bb133111eb
			x ^= x >> 31
			x *= 0x7fb5d329728ea185
			x ^= x >> 27
			x *= 0x81dadef4bc2dd44d
			x ^= x >> 33
			return float64(x>>11) / (1 << 53)
		}
		draw := func(offset int) func(i int, o *Observation) {
			return func(i int, o *Observation) {
				i += offset
				o.FirstTry, o.TopRelevance, o.Iterations = random(i, 1) < 0.8, random(i, 2), 1+int(4*random(i, 3))
				o.Rejected, o.Latency = int(4*random(i, 4)), time.Duration(1e9*random(i, 5))
				if random(i, 6) < 0.1 {
					o.Status = assay.NotFound
				}
			}
		}
		r := Of(append(runsOf(40, 0, draw(0)), runsOf(200, 3, draw(1000))...), Options{Now: today})
		for _, d := range r.Drift {
			if d.Drifting {
				wrong++
				break
			}
		}
	}
	if wrong > 6 { // 2 of 200 are expected
		t.Errorf("%d of 200 reports see a drift where there is none", wrong)
	}
}

// TestSymptomsAreDocumented checks docs/symptoms.md against the table in the program.
func TestSymptomsAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/symptoms.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	for _, s := range Symptoms() {
		for _, want := range append([]string{"## " + s.Title, s.Shows}, s.Do...) {
			if !strings.Contains(strings.Join(strings.Fields(doc), " "), strings.Join(strings.Fields(want), " ")) {
				t.Errorf("docs/symptoms.md lacks %q", want)
			}
		}
	}
}

// TestHTML checks that for hostile names of collections the page has no script and makes no
// requests, and that it has the expected plots.
func TestHTML(t *testing.T) {
	hostile := "</style><script>alert(1)</script><img src=http://example.com/x>"
	all := append(runsOf(40, 0, func(_ int, o *Observation) { o.Collections, o.Strategy = []string{hostile}, hostile }), runsOf(40, 2, nil)...)
	var b strings.Builder
	if err := HTML(&b, Of(all, Options{Now: today})); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "<img", "</style><"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if n := strings.Count(page, "<svg"); n != 9 {
		t.Errorf("%d plots", n)
	}
	b.Reset()
	if err := HTML(&b, Of(nil, Options{Now: today})); err != nil || !strings.Contains(b.String(), "No runs.") {
		t.Errorf("no runs: %v %s", err, b.String())
	}
}
