package main

import (
	"fmt"
	"strings"
	"testing"
)

// sharedOf returns a configuration with cores that all steps share.
func sharedOf(rate float64, cores int, s *Service) Config {
	c := queueOf(rate, cores, s)
	c.Resources[0].Shared = true
	return c
}

// TestShared compares processor sharing with closed forms: the mean time of M/G/1-PS depends on the mean service alone,
// and that of M/M/c-PS, where each visit has a core at most, is that of a queue.
func TestShared(t *testing.T) {
	const mean, busy = 10.0, 0.6
	for name, s := range map[string]*Service{
		"equal": {Mean: mean}, "exponential": {Mean: mean, Random: true}, "of two sizes": {Samples: []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 91}},
	} {
		r := simulate(t, sharedOf(busy/mean*1000, 1, s), oneStep)
		near(t, name+": time to the answer", r.Mean, mean/(1-busy), 0.05)
		near(t, name+": utilisation", r.Resources[0].Utilisation, busy, 0.03)
		near(t, name+": time lost by sharing", r.Resources[0].Wait, mean/(1-busy)-mean, 0.08)
	}
	const cores = 4
	r := simulate(t, sharedOf(busy*cores/mean*1000, cores, &Service{Mean: mean, Random: true}), oneStep)
	near(t, "four cores", r.Mean, mean+erlangC(cores, busy*cores)*mean/(cores*(1-busy)), 0.05)
}

// TestThreads replays steps that compute on several threads and wait for something else.
func TestThreads(t *testing.T) {
	alone := Trace{MS: 35, Steps: []Step{{Kind: "search", MS: 35, CPU: 60, Threads: 2}}} // waits 5, then computes 30 on two cores
	c := sharedOf(0.001, 2, nil)
	c.Questions, c.WarmUp = 100, 1
	near(t, "alone", simulate(t, c, []Trace{alone}).Mean, 35, 1e-6)
	c.Resources[0].Each = 1
	near(t, "on one core of a server", simulate(t, c, []Trace{alone}).Mean, 65, 1e-6)

	// Two steps of one question at once: three threads on two cores until the one with two has ended.
	both := Trace{MS: 20, Steps: []Step{{Kind: "a", MS: 20, CPU: 40, Threads: 2}, {Kind: "b", MS: 20, CPU: 20, Threads: 1}}}
	c.Resources[0].Each = 2
	near(t, "three threads", simulate(t, c, []Trace{both}).Mean, 30, 1e-6)
}

// TestOthers shares cores with the threads of other programs.
func TestOthers(t *testing.T) {
	for _, x := range []struct{ threads, others, weight, want float64 }{
		{1, 0, 1, 1}, {4, 0, 1, 0.5}, // 2 cores
		{1, 1, 1, 1}, {1, 1, 9, 1}, {2, 2, 1, 0.5}, {2, 1, 1, 2. / 3},
		{2, 1, 9, 0.5}, {2, 20, 0.05, 2. / 3}, {1, 20, 0.01, 1},
	} {
		q := shared{units: 2, others: x.others, weight: x.weight}
		near(t, fmt.Sprint(x), q.portion(x.threads), x.want, 1e-9)
	}
	var s surroundings
	s.took, s.used, s.machine, s.running = 1000, clock{CPU: 800, Delay: 400}, 1800, 3200
	near(t, "threads of others", s.threads(), 2, 1e-9)
	near(t, "their weight", s.weight(), 0.5*1.5, 1e-9) // each had 0.5 of a core, and one of ours 1 / 1.5
}

// TestLock lets the steps of several servers hold a lock while they compute.
func TestLock(t *testing.T) {
	const mean, busy = 10.0, 0.5
	c := sharedOf(busy/mean*1000, 8, nil)
	c.Servers = 3
	c.Resources = append(c.Resources, Resource{Name: "journal", Units: 1})
	c.Steps["*"] = Use{Resource: "r", Lock: "journal"}
	r := simulate(t, c, []Trace{{MS: mean, Steps: []Step{{Kind: "commit", MS: mean}}}})
	near(t, "M/D/1", r.Mean, mean+busy*mean/(2*(1-busy)), 0.05)
	for _, l := range r.Resources {
		if l.Name == "journal" {
			near(t, "the lock is held", l.Utilisation, busy, 0.03)
		}
	}
	if r.First != "journal" {
		t.Errorf("first to saturate: %s", r.First)
	}
	for name, lock := range map[string]Resource{"shared": {Name: "journal", Units: 1, Shared: true}, "divided": {Name: "journal", Units: 1, Parts: 2}} {
		c.Resources[1] = lock
		if _, err := Simulate(c, oneStep); err == nil {
			t.Errorf("a lock that is %s: no error", name)
		}
	}
}

// TestRecorder makes a trace of intervals.
func TestRecorder(t *testing.T) {
	var r recorder
	r.add("search", 100, clock{CPU: 80, Delay: 80}, 1)  // 1.6 threads, which had half of the time they wanted
	r.add("model", 100, clock{CPU: 10, Delay: 10}, 0.5) // 50 ms, of which it waited 40
	r.add("grade", 0, clock{CPU: 1}, 1)
	want := []Step{
		{Kind: "search", MS: 50, CPU: 80, Threads: 1.6},
		{Kind: "model", At: 50, MS: 45, CPU: 5, Threads: 1},
	}
	if got := fmt.Sprint(r.trace.Steps); got != fmt.Sprint(want) || r.end != 95 {
		t.Errorf("%s until %v, want %v", got, r.end, want)
	}
	if _, err := parseTraces(strings.NewReader(`{"steps":[{"kind":"x","at":0,"ms":1,"cpu":-1}]}`)); err == nil {
		t.Error("negative processor time: no error")
	}
}

// TestReport prints a report.
func TestReport(t *testing.T) {
	r := Report{Servers: 3, Cores: 2, Index: "own", Questions: 9, Recorded: 5, Rates: []Rate{{
		Rate: 2, Measured: figures([]float64{4, 1, 3, 2}, 2000, 20), Simulated: Figures{Throughput: 2.2, P50: 3, P95: 2, Busy: 0.01, CPU: 5},
	}}}
	var out strings.Builder
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2.00 → 2.20 (+10 %)", "3 → 3 (+0 %)", "4 → 2 (-50 %)", "5.0 → 5.0 (+0 %)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
