package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// checkOptions are the flags of check.
type checkOptions struct {
	servers, questions int
	rates              []float64
	seed               uint64
	warm               bool
	set, index         string
	database, assay    string
	save               string
	asJSON             bool
}

// warmUp is how many questions each server is asked before anything is measured.
const warmUp = 4

// recordPause is the time between two recorded questions.
const recordPause = 100 * time.Millisecond

func runCheck(ctx context.Context, args []string, out io.Writer) error {
	var o checkOptions
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.IntVar(&o.servers, "servers", 3, "number of servers")
	flags.IntVar(&o.questions, "questions", 200, "questions that are recorded, and asked at each rate")
	rates := flags.String("rates", "0.5,1,1.5,2", "questions a `second`, separated by commas")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the arrivals")
	flags.BoolVar(&o.warm, "warm", false, "let each server answer its questions beforehand, so that it has read the passages")
	flags.StringVar(&o.set, "set", "", "`folder` with corpus.jsonl and queries.jsonl")
	flags.StringVar(&o.index, "index", "own", "index of the servers: own or pgvector")
	flags.StringVar(&o.database, "database", os.Getenv("ASSAY_TEST_POSTGRES"), "`URL` of a PostgreSQL server on this machine, for a database of its own")
	flags.StringVar(&o.assay, "assay", "", "the `program`; default: it is built")
	flags.StringVar(&o.save, "save", "", "write the recorded runs to this `file`, for simulate")
	flags.BoolVar(&o.asJSON, "json", false, "print a JSON object")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, word := range strings.Split(*rates, ",") {
		rate, err := strconv.ParseFloat(word, 64)
		if err != nil || !(rate > 0) {
			return fmt.Errorf("-rates: %q is no rate", word)
		}
		o.rates = append(o.rates, rate)
	}
	if o.set == "" || o.servers < 1 || o.questions < 2 {
		return errors.New("want a data set (-set), a server and two questions at least")
	}
	report, err := check(ctx, o)
	if err != nil {
		return err
	}
	if o.asJSON {
		return json.NewEncoder(out).Encode(report)
	}
	return report.write(out)
}

// A Report compares measured rates with simulated ones.
type Report struct {
	Servers   int     `json:"servers"`
	Cores     int     `json:"cores"`
	Index     string  `json:"index"`
	Warm      bool    `json:"warm"`
	Questions int     `json:"questions"`
	Recorded  float64 `json:"recorded"` // mean processor time of a recorded question, in milliseconds
	Weight    float64 `json:"weight"`   // share of a core that a thread of another program had for one of a server's
	Rates     []Rate  `json:"rates"`
	Config    Config  `json:"config"` // of the simulations
}

// A Rate is one rate, measured and simulated with the same arrivals and questions.
type Rate struct {
	Rate      float64 `json:"rate"`
	Measured  Figures `json:"measured"`
	Simulated Figures `json:"simulated"`
	Failed    int     `json:"failed"` // questions without an answer
	// Others is how many threads of other programs ran or were ready to run on average, the asking one
	// included. The simulation has as many.
	Others float64 `json:"others"`
}

// Figures are what is compared. Times are milliseconds.
type Figures struct {
	Throughput float64 `json:"throughput"`
	Mean       float64 `json:"mean"`
	P50        float64 `json:"p50"`
	P95        float64 `json:"p95"`
	Busy       float64 `json:"busy"` // share of the cores that servers and database use
	CPU        float64 `json:"cpu"`  // processor time of a question
}

// check records questions one at a time, and compares each rate with a simulation.
func check(ctx context.Context, o checkOptions) (_ Report, err error) {
	report := Report{Servers: o.servers, Cores: runtime.NumCPU(), Index: o.index, Warm: o.warm, Questions: o.questions}
	questions, err := readQuestions(o.set + "/queries.jsonl")
	if err != nil {
		return report, err
	}
	if len(questions) < o.questions+warmUp {
		return report, fmt.Errorf("the data set has %d questions, and -questions needs %d", len(questions), o.questions+warmUp)
	}
	others := questions[o.questions : o.questions+warmUp]
	questions = questions[:o.questions]
	say("building assay and ingesting the documents")
	r, err := newRig(ctx, o)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	say("starting %d servers", o.servers)
	if err := r.start(ctx, others); err != nil {
		return report, err
	}
	if o.warm {
		say("asking %d questions beforehand", len(questions))
		if err := r.askAll(ctx, questions); err != nil {
			return report, err
		}
	}
	say("recording %d questions, one at a time", len(questions))
	traces, err := r.recordAll(ctx, questions)
	if err != nil {
		return report, err
	}
	for _, t := range traces {
		report.Recorded += t.cpu() / float64(len(traces))
	}
	report.Config = sharedMachine(o.seed, o.servers, report.Cores, len(traces))
	for _, rate := range o.rates {
		if !o.warm { // so that the questions are new
			if err := errors.Join(r.stop(), r.start(ctx, others)); err != nil {
				return report, err
			}
		}
		say("asking %d questions, %.4g a second: %.0f s or more", len(questions), rate, float64(len(questions))/rate)
		compared, err := r.compare(ctx, report.Config, rate, questions, traces)
		if err != nil {
			return report, err
		}
		report.Rates = append(report.Rates, compared)
	}
	report.Weight = r.recorded.weight()
	return report, nil
}

// say prints a line of progress, or of a failure, to standard error.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "scale: "+format+"\n", args...) }

// sharedMachine returns the configuration of servers, and a database, on the cores of one machine. The commits of the
// tenant's journal are one after the other.
func sharedMachine(seed uint64, servers, cores, questions int) Config {
	commit := Use{Resource: "cores", Lock: "journal"}
	return Config{
		Seed: seed, Questions: questions, Servers: servers, InOrder: true,
		Resources: []Resource{{Name: "cores", Units: cores, Shared: true, Each: cores}, {Name: "journal", Units: 1}},
		Steps: map[string]Use{
			"*": {Resource: "cores"}, kindCreate: commit, kindCommit: commit, kindEnd: commit,
		},
		Server: "cores",
	}
}

// askAll asks each question of the server that it is asked of later. The passages of all questions would not fit into
// what its reader keeps.
func (r *rig) askAll(ctx context.Context, questions []string) error {
	for i, question := range questions {
		if _, err := ask(ctx, r.servers[i%len(r.servers)].url, question, nil); err != nil {
			return err
		}
	}
	return nil
}

// recordAll records each question, from the servers in turn.
func (r *rig) recordAll(ctx context.Context, questions []string) ([]Trace, error) {
	var traces []Trace
	for i, question := range questions {
		t, err := r.record(ctx, r.servers[i%len(r.servers)], question, recordPause)
		if err != nil {
			return nil, err
		}
		traces = append(traces, t)
	}
	if r.o.save == "" {
		return traces, nil
	}
	var lines strings.Builder
	for _, t := range traces {
		if err := json.NewEncoder(&lines).Encode(t); err != nil {
			return nil, err
		}
	}
	return traces, os.WriteFile(r.o.save, []byte(lines.String()), 0o600)
}

// cpu returns the processor time of a run.
func (t Trace) cpu() float64 {
	sum := t.After
	for _, s := range t.Steps {
		sum += s.work(0).cpu
	}
	return sum
}

// compare measures a rate and simulates it.
func (r *rig) compare(ctx context.Context, c Config, rate float64, questions []string, traces []Trace) (Rate, error) {
	compared, err := r.measure(ctx, newArrivals(c.Seed, rate), questions)
	if err != nil {
		return compared, err
	}
	compared.Rate, c.Rate = rate, rate
	c.Resources = slices.Clone(c.Resources)
	c.Resources[0].Others, c.Resources[0].Weight = compared.Others, r.recorded.weight()
	simulated, err := Simulate(c, traces)
	if err != nil {
		return compared, err
	}
	f := Figures{Throughput: simulated.Throughput, Mean: simulated.Mean, P50: simulated.P50, P95: simulated.P95}
	for _, l := range simulated.Resources {
		if l.Name == c.Server {
			f.Busy, f.CPU = l.Utilisation, l.Demand
		}
	}
	compared.Simulated = f
	return compared, nil
}

// measure asks the questions as they arrive, from the servers in turn, however many are not answered yet.
func (r *rig) measure(ctx context.Context, next arrivals, questions []string) (Rate, error) {
	var all Rate
	clocks, err := r.clocks(r.servers...)
	if err != nil {
		return all, err
	}
	var mu sync.Mutex
	var latencies []float64
	var ended time.Time
	asked := func(ms float64, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			all.Failed++
			say("a question failed: %v", err)
			return
		}
		latencies, ended = append(latencies, ms), time.Now()
	}
	var s surroundings
	began := time.Now()
	err = s.observed(clocks, func() error {
		var asking sync.WaitGroup
		defer asking.Wait()
		due := began
		for i, question := range questions {
			if gap := next.gap(); i > 0 { // the first asks at once, and the simulation counts from it
				due = due.Add(time.Duration(gap * float64(time.Millisecond)))
			}
			select {
			case <-time.After(time.Until(due)):
			case <-ctx.Done():
				return ctx.Err()
			}
			asking.Go(func() { asked(ask(ctx, r.servers[i%len(r.servers)].url, question, nil)) })
		}
		return nil
	})
	all.Others = s.threads()
	all.Measured = figures(latencies, milliseconds(ended.Sub(began)), s.used.CPU)
	return all, errors.Join(err, ctx.Err())
}

// figures returns the figures of questions that took some time together.
func figures(latencies []float64, took, used float64) Figures {
	slices.Sort(latencies)
	n := float64(max(len(latencies), 1))
	f := Figures{
		Throughput: float64(len(latencies)) / took * 1000, P50: quantile(latencies, 0.5), P95: quantile(latencies, 0.95),
		Busy: used / took / float64(runtime.NumCPU()), CPU: used / n,
	}
	for _, ms := range latencies {
		f.Mean += ms / n
	}
	return f
}

// write prints the report as a table: measured, simulated, and how much the simulation is off.
func (r Report) write(out io.Writer) error {
	caches := "new to their server"
	if r.Warm {
		caches = "asked before"
	}
	fmt.Fprintf(out, "%d servers with the index %s on %d cores; %d questions, %s; recorded one at a time: %.1f ms of processor time each; weight of other programs' threads: %.2f\n",
		r.Servers, r.Index, r.Cores, r.Questions, caches, r.Recorded, r.Weight)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "a second\tanswered\tp50, ms\tp95, ms\tcores busy\tprocessor time, ms\tother threads\tfailed")
	pair := func(format string, measured, simulated float64) string {
		return fmt.Sprintf(format+" → "+format+" (%+.0f %%)", measured, simulated, 100*(simulated/measured-1))
	}
	for _, x := range r.Rates {
		m, s := x.Measured, x.Simulated
		fmt.Fprintf(w, "%.4g\t%s\t%s\t%s\t%s\t%s\t%.2f\t%d\n", x.Rate, pair("%.2f", m.Throughput, s.Throughput), pair("%.0f", m.P50, s.P50),
			pair("%.0f", m.P95, s.P95), pair("%.0f %%", 100*m.Busy, 100*s.Busy), pair("%.1f", m.CPU, s.CPU), x.Others, x.Failed)
	}
	return w.Flush()
}
