package main

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"text/tabwriter"
)

// A Config is an installation under load. Times are milliseconds.
type Config struct {
	Seed      uint64     `json:"seed"`
	Rate      float64    `json:"rate"`               // questions a second, which arrive at random (Poisson)
	Questions int        `json:"questions"`          // that are simulated
	WarmUp    int        `json:"warm_up"`            // of the first, which do not count
	Servers   int        `json:"servers,omitempty"`  // that take the questions in turn; 0: 1
	InOrder   bool       `json:"in_order,omitempty"` // question i replays trace i; otherwise one at random
	Resources []Resource `json:"resources"`

	// Steps says which resource does the steps of a kind; "*" stands for all others.
	Steps map[string]Use `json:"steps"`
	// Server is the resource of a run's time outside of its steps, and Commit that of the commit after
	// each step. Empty: none.
	Server string `json:"server"`
	Commit string `json:"commit"`
}

// A Resource is a group of equal units with one queue, first come, first served, or shared.
type Resource struct {
	Name  string `json:"name"`
	Units int    `json:"units"` // that work at once: cores, connections

	// Parts is the number of shards, each with Units and a queue of its own, all of which a step
	// visits at once. 0 or 1: it is not divided.
	Parts int `json:"parts,omitempty"`

	// Shared says that all visits are served at once, as the threads of a machine by its cores (processor
	// sharing): a visit with Step.Threads threads has as many units if there are enough, and otherwise its
	// share. The visits of one server together have at most Each units. 0: Units.
	Shared bool `json:"shared,omitempty"`
	Each   int  `json:"each,omitempty"`
	// Others is the number of threads of other programs that always compute on a shared resource, and Weight the share
	// that each has for one of a visit's threads. 0: 1.
	Others float64 `json:"others,omitempty"`
	Weight float64 `json:"weight,omitempty"`

	// Service is the time of one visit. Nil: that of the recorded step.
	Service *Service `json:"service,omitempty"`
}

// A Use is how a step uses a resource.
type Use struct {
	Resource string  `json:"resource"`
	Times    float64 `json:"times,omitempty"` // factor of the recorded time; 0: 1
	Lock     string  `json:"lock,omitempty"`  // a resource of which the step holds a unit meanwhile
}

// A Service is a distribution of times.
type Service struct {
	Mean    float64   `json:"mean"`
	Random  bool      `json:"random"`            // exponential; otherwise always Mean
	Samples []float64 `json:"samples,omitempty"` // drawn at random instead
}

// defaultConfig is one server of two cores with everything in it.
func defaultConfig() Config {
	return Config{
		Seed: 1, Rate: 10, Questions: 20_000, WarmUp: 1000,
		Resources: []Resource{
			{Name: "server", Units: 2},
			{Name: "commits", Units: 1, Service: &Service{Mean: 0.231}}, // docs/performance.md, BenchmarkStep/durable
		},
		Steps:  map[string]Use{"*": {Resource: "server"}},
		Server: "server", Commit: "commits",
	}
}

// A Result is what a simulation came to.
type Result struct {
	Rate       float64 `json:"rate"`       // questions a second that were asked
	Throughput float64 `json:"throughput"` // that were answered
	Mean       float64 `json:"mean"`       // milliseconds to the answer
	P50        float64 `json:"p50"`
	P95        float64 `json:"p95"`
	P99        float64 `json:"p99"`

	Resources []Load `json:"resources"` // the busiest first
	// First is the resource that saturates first, and Most the rate at which it does. Empty: none works.
	First string  `json:"first"`
	Most  float64 `json:"most"`
}

// A Load is how busy a resource was.
type Load struct {
	Name        string  `json:"name"`
	Utilisation float64 `json:"utilisation"` // share of the time of all units
	Demand      float64 `json:"demand"`      // milliseconds of one part's units for a question
	Wait        float64 `json:"wait"`        // mean time that a visit waits, or takes longer because it shares
	Queue       int     `json:"queue"`       // longest; of a shared resource the most visits above its units
	Most        float64 `json:"most"`        // rate at which it saturates; 0: it does not work
}

// Simulate runs the questions of a configuration, each of which does what a run of the traces did. It is
// deterministic.
func Simulate(c Config, traces []Trace) (Result, error) {
	s, err := newSimulation(c, traces)
	if err != nil {
		return Result{}, err
	}
	s.arrive()
	for s.events.Len() > 0 {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
	}
	return s.result(), nil
}

// A simulation is a simulation in progress.
type simulation struct {
	c         Config
	traces    []Trace
	rng       *rand.Rand
	resources map[string]*resource
	now       float64 // milliseconds
	events    events
	count     int64 // of events, which orders those of one moment

	asked     int
	next      arrivals
	began     float64 // when the first that counts arrived
	ended     float64 // when the last ended
	latencies []float64
}

func newSimulation(c Config, traces []Trace) (*simulation, error) {
	if !(c.Rate > 0) || math.IsInf(c.Rate, 0) || c.Questions <= c.WarmUp || c.WarmUp < 0 || len(traces) == 0 {
		return nil, errors.New("want a rate above 0, more questions than warm_up, and a trace")
	}
	s := &simulation{
		c: c, traces: traces, rng: rand.New(rand.NewPCG(c.Seed, c.Seed)), next: newArrivals(c.Seed, c.Rate),
		resources: map[string]*resource{},
	}
	for _, r := range c.Resources {
		if r.Units < 1 || r.Parts < 0 || r.Others < 0 || r.Weight < 0 || r.Name == "" || s.resources[r.Name] != nil {
			return nil, fmt.Errorf("resource %q: want another name, and one unit at least", r.Name)
		}
		s.resources[r.Name] = s.newResource(r)
	}
	names := []string{c.Server, c.Commit}
	for _, u := range c.Steps {
		names = append(names, u.Resource, u.Lock)
		if lock := s.resources[u.Lock]; lock != nil && (lock.Shared || lock.Parts > 1) {
			return nil, fmt.Errorf("resource %q is a lock: it can be neither shared nor divided", u.Lock)
		}
	}
	for _, name := range names {
		if name != "" && s.resources[name] == nil {
			return nil, fmt.Errorf("there is no resource %q", name)
		}
	}
	return s, nil
}

func (s *simulation) newResource(r Resource) *resource {
	made := &resource{Resource: r}
	for range max(r.Parts, 1) {
		if r.Shared {
			made.parts = append(made.parts, &shared{
				s: s, units: float64(r.Units), each: float64(cmp.Or(r.Each, r.Units)), others: r.Others, weight: cmp.Or(r.Weight, 1),
			})
			continue
		}
		made.parts = append(made.parts, &queue{s: s, units: r.Units})
	}
	return made
}

// arrivals are the times between questions that arrive at random. They depend on nothing but a seed.
type arrivals struct {
	rng  *rand.Rand
	rate float64
}

func newArrivals(seed uint64, rate float64) arrivals {
	return arrivals{rand.New(rand.NewPCG(seed, seed+1)), rate}
}

// gap returns the milliseconds until the next question.
func (a arrivals) gap() float64 { return a.rng.ExpFloat64() * 1000 / a.rate }

// An event is something that happens at a time.
type event struct {
	at    float64
	order int64
	do    func()
}

// events is a heap.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if e[i].at != e[j].at {
		return e[i].at < e[j].at
	}
	return e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (s *simulation) after(ms float64, do func()) {
	s.count++
	heap.Push(&s.events, event{s.now + ms, s.count, do})
}

// arrive lets one question arrive, and the next after a random time.
func (s *simulation) arrive() {
	s.after(s.next.gap(), func() {
		number := s.asked
		if s.asked++; s.asked < s.c.Questions {
			s.arrive()
		}
		if number == s.c.WarmUp {
			s.startCounting()
		}
		trace := number % len(s.traces)
		if !s.c.InOrder {
			trace = s.rng.IntN(len(s.traces))
		}
		s.ask(s.traces[trace], number%max(s.c.Servers, 1), number >= s.c.WarmUp)
	})
}

func (s *simulation) startCounting() {
	s.began = s.now
	for _, r := range s.resources {
		for _, q := range r.parts {
			q.reset()
		}
	}
}

// ask runs one question on a server, and then counts it.
func (s *simulation) ask(t Trace, server int, counts bool) {
	begin := s.now
	stages, after := t.stages()
	s.run(stages, after, server, func() {
		if counts {
			s.latencies, s.ended = append(s.latencies, s.now-begin), s.now
		}
		s.serve(s.c.Server, timed(t.After, server), func() {})
	})
}

// run runs the first stage and then the others.
func (s *simulation) run(stages []stage, after float64, server int, done func()) {
	if len(stages) == 0 {
		s.serve(s.c.Server, timed(after, server), done)
		return
	}
	first := stages[0]
	s.serve(s.c.Server, timed(first.before, server), func() {
		left := len(first.steps)
		for _, step := range first.steps {
			s.step(step, server, func() {
				if left--; left == 0 {
					s.run(stages[1:], after, server, done)
				}
			})
		}
	})
}

// step runs one step and commits it.
func (s *simulation) step(step Step, server int, done func()) {
	use, ok := s.c.Steps[step.Kind]
	if !ok {
		use = s.c.Steps["*"]
	}
	w := step.work(server)
	if use.Times > 0 {
		w.ms, w.cpu = w.ms*use.Times, w.cpu*use.Times
	}
	s.locked(use.Lock, func(unlock func()) {
		s.serve(use.Resource, w, func() {
			unlock()
			if s.c.Commit == "" {
				done()
				return
			}
			s.visit(s.resources[s.c.Commit], timed(0, server), done)
		})
	})
}

// locked calls do once it has a unit of a resource, which is free again when do calls unlock. An empty name
// is no resource.
func (s *simulation) locked(name string, do func(unlock func())) {
	if name == "" {
		do(func() {})
		return
	}
	lock := s.resources[name].parts[0].(*queue)
	lock.acquire(func() { do(lock.release) })
}

// work is what a visit asks of a resource: milliseconds alone, of which it computes for cpu on so many threads at
// once.
type work struct {
	ms, cpu, threads float64
	server           int
}

// timed returns work of one thread.
func timed(ms float64, server int) work { return work{ms, ms, 1, server} }

// serve visits a resource. Without a resource, or a time, nothing waits.
func (s *simulation) serve(name string, w work, done func()) {
	switch r := s.resources[name]; {
	case r == nil:
		s.after(w.ms, done)
	case w.ms == 0 && r.Service == nil:
		done()
	default:
		s.visit(r, w, done)
	}
}

// visit visits all parts of a resource, and calls done when the slowest has ended.
func (s *simulation) visit(r *resource, w work, done func()) {
	left := len(r.parts)
	for _, p := range r.parts {
		visit := w
		if r.Service != nil {
			visit = timed(s.service(r.Service), w.server)
		}
		p.enter(visit, func() {
			if left--; left == 0 {
				done()
			}
		})
	}
}

func (s *simulation) service(d *Service) float64 {
	switch {
	case len(d.Samples) > 0:
		return d.Samples[s.rng.IntN(len(d.Samples))]
	case d.Random:
		return d.Mean * s.rng.ExpFloat64()
	}
	return d.Mean
}

// A resource is a Resource with its parts.
type resource struct {
	Resource
	parts []part
}

// A part serves visits: a *queue or a *shared.
type part interface {
	enter(w work, done func())
	reset() // forgets what was counted
	counted() *usage
}

// usage is what is counted of a part.
type usage struct {
	spent   float64 // busy units times milliseconds
	last    float64 // when that was added up
	waited  float64
	visits  int
	longest int
}

func (u *usage) counted() *usage { return u }

// A queue is a queue in front of equal units.
type queue struct {
	usage
	s       *simulation
	units   int
	busy    int
	waiting []waiter
}

// A waiter waits for a unit.
type waiter struct {
	since float64
	do    func()
}

func (q *queue) enter(w work, done func()) {
	q.acquire(func() {
		q.s.after(w.ms, func() {
			q.release()
			done()
		})
	})
}

// acquire calls do once a unit is free, which release frees again.
func (q *queue) acquire(do func()) {
	w := waiter{q.s.now, do}
	if q.busy < q.units {
		q.start(w)
		return
	}
	q.waiting = append(q.waiting, w)
	q.longest = max(q.longest, len(q.waiting))
}

func (q *queue) start(w waiter) {
	q.spend()
	q.busy++
	q.visits++
	q.waited += q.s.now - w.since
	w.do()
}

func (q *queue) release() {
	q.spend()
	q.busy--
	if len(q.waiting) > 0 {
		next := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.start(next)
	}
}

// spend adds up what the units have worked.
func (q *queue) spend() {
	q.spent += float64(q.busy) * (q.s.now - q.last)
	q.last = q.s.now
}

func (q *queue) reset() {
	q.spend()
	q.usage = usage{last: q.last, longest: len(q.waiting)}
}

// result adds up what was counted.
func (s *simulation) result() Result {
	slices.Sort(s.latencies)
	n := len(s.latencies)
	took := s.ended - s.began
	r := Result{
		Rate: s.c.Rate, Throughput: float64(n) / took * 1000,
		P50: quantile(s.latencies, 0.5), P95: quantile(s.latencies, 0.95), P99: quantile(s.latencies, 0.99),
	}
	for _, ms := range s.latencies {
		r.Mean += ms / float64(n)
	}
	for _, c := range s.c.Resources {
		l := s.resources[c.Name].load(took, float64(n))
		r.Resources = append(r.Resources, l)
		if l.Most > 0 && (r.First == "" || l.Most < r.Most) {
			r.First, r.Most = l.Name, l.Most
		}
	}
	slices.SortStableFunc(r.Resources, func(a, b Load) int { return cmp.Compare(b.Utilisation, a.Utilisation) })
	return r
}

// load returns the load of the busiest part.
func (r *resource) load(took, questions float64) Load {
	l := Load{Name: r.Name}
	visits, waited := 0, 0.0
	for _, p := range r.parts {
		u := p.counted()
		l.Demand = max(l.Demand, u.spent/questions)
		l.Utilisation = max(l.Utilisation, u.spent/took/float64(r.Units))
		l.Queue = max(l.Queue, u.longest)
		visits, waited = visits+u.visits, waited+u.waited
	}
	if visits > 0 {
		l.Wait = waited / float64(visits)
	}
	if l.Demand > 0 {
		l.Most = 1000 * float64(r.Units) / l.Demand
	}
	return l
}

// quantile returns a quantile of sorted values; 0 of none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// write prints the result as a table.
func (r Result) write(out io.Writer) error {
	fmt.Fprintf(out, "asked %.4g, answered %.4g questions a second; ms to the answer: mean %.1f, p50 %.1f, p95 %.1f, p99 %.1f\n", r.Rate, r.Throughput, r.Mean, r.P50, r.P95, r.P99)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "resource\tbusy\tms a question\twait, ms\tlongest queue\tmost a second")
	for _, l := range r.Resources {
		fmt.Fprintf(w, "%s\t%.1f %%\t%.2f\t%.2f\t%d\t%.4g\n", l.Name, 100*l.Utilisation, l.Demand, l.Wait, l.Queue, l.Most)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "first to saturate: %s, at %.4g questions a second\n", r.First, r.Most)
	return err
}
