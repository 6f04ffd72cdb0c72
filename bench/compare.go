package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/standalone"
	"github.com/assay-rag/assay/store"
)

// clients is the number of concurrent callers when throughput is measured.
const clients = 8

// compareServers measures assay's index beside those of servers: pgvector, OpenSearch and Weaviate,
// as many of them as the environment names.
func (b *bench) compareServers(ctx context.Context) (err error) {
	o := b.options
	if b.embedded, err = queryVectors(o.vectorQueries, o.dimensions, o.queries); err != nil {
		return err
	}
	systems, err := b.openSystems(ctx)
	defer func() {
		for _, s := range systems {
			err = errors.Join(err, s.close())
		}
	}()
	if err != nil {
		return err
	}
	if err := b.fillSystems(ctx, systems); err != nil {
		return err
	}
	if err := b.searchSystems(ctx, systems); err != nil {
		return err
	}
	if o.asks == 0 {
		return nil
	}
	return b.askSystems(ctx, systems)
}

// openSystems opens assay's index and those of the servers that are there. The caller closes the systems
// that it returns, also after an error.
func (b *bench) openSystems(ctx context.Context) (systems []system, err error) {
	source := sharedSource{newSource(b.corpus, b.vectors), b.encoder.Model()}
	add := func(s system, err error) error {
		if err == nil {
			systems = append(systems, s)
		}
		return err
	}
	own, err := openOwn(ctx, filepath.Join(b.dir, "own"), source)
	if err := add(own, err); err != nil {
		return systems, err
	}
	if database := os.Getenv("ASSAY_TEST_POSTGRES"); database != "" {
		x, err := openPGVector(ctx, database, source, b.vectors.row(0))
		if err := add(x, err); err != nil {
			return systems, err
		}
	}
	if addresses := os.Getenv("ASSAY_TEST_OPENSEARCH"); addresses != "" {
		x, err := openOpenSearch(ctx, addresses, os.Getenv("ASSAY_TEST_OPENSEARCH_RIG"), source)
		if err := add(x, err); err != nil {
			return systems, err
		}
	}
	if addresses := os.Getenv("ASSAY_TEST_WEAVIATE"); addresses != "" {
		x, err := openWeaviate(addresses, os.Getenv("ASSAY_TEST_WEAVIATE_RIG"), source)
		if err := add(x, err); err != nil {
			return systems, err
		}
	}
	return systems, nil
}

// fillSystems stores the corpus in each system, one after the other.
func (b *bench) fillSystems(ctx context.Context, systems []system) error {
	p := b.report.part("Ingest", "", "Text, given vectors and lists of access, until a search finds everything, then until the work behind that is done (merges; the graph of pgvector). "+
		"Processor time is that of the servers and of this process. Memory is the largest amount beside mapped files.")
	for _, s := range systems {
		progress("filling %s", s.name())
		if err := b.fillSystem(ctx, p, s); err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
		if w, ok := s.(*weaviate); ok {
			what, err := w.vectorIndex(ctx)
			if err != nil {
				return err
			}
			b.note("Weaviate's index of vectors: %s", what)
		}
	}
	return nil
}

func (b *bench) fillSystem(ctx context.Context, p *part, s system) error {
	servers, err := serverTime(s)
	if err != nil {
		return err
	}
	watch := watchServers(s)
	here, began := cpuTime(), time.Now()
	err = s.fill(ctx)
	filled := time.Since(began)
	if err == nil {
		err = s.settle(ctx)
	}
	settled := time.Since(began)
	serverMemory, memory := watch.end()
	if err != nil {
		return err
	}
	after, err := serverTime(s)
	if err != nil {
		return err
	}
	used := after - servers + cpuTime() - here
	if w, ok := s.(*weaviate); ok { // a timer begins it, so that it is not measured
		if err := w.written(ctx); err != nil {
			return err
		}
	}
	size, err := s.size(ctx)
	if err != nil {
		return err
	}
	p.add("chunks, until found", s.name(), perSecond, float64(b.corpus.chunks)/filled.Seconds())
	p.add("chunks, until all is done", s.name(), perSecond, float64(b.corpus.chunks)/settled.Seconds())
	p.addDuration("processor time", s.name(), seconds, used)
	p.add("on disk", s.name(), megabytes, float64(size)/1e6)
	p.add("memory of the servers", s.name(), megabytes, float64(serverMemory)/1e6)
	p.add("memory of this process", s.name(), megabytes, float64(memory)/1e6)
	progress("    found after %.1f s, done after %.1f s, %.0f MB", filled.Seconds(), settled.Seconds(), float64(size)/1e6)
	return nil
}

// A serverWatch records the largest memory of a system's servers and of this process.
type serverWatch struct {
	system        system
	stop          chan struct{}
	done          sync.WaitGroup
	servers, here int64
}

func watchServers(s system) *serverWatch {
	runtime.GC()
	w := &serverWatch{system: s, stop: make(chan struct{})}
	w.done.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			w.look()
			select {
			case <-w.stop:
				return
			case <-tick.C:
			}
		}
	})
	return w
}

func (w *serverWatch) look() {
	w.here = max(w.here, anonymousMemory())
	if pids, err := w.system.processes(); err == nil {
		if n, err := memoryOf(pids); err == nil {
			w.servers = max(w.servers, n)
		}
	}
}

func (w *serverWatch) end() (servers, here int64) {
	close(w.stop)
	w.done.Wait()
	w.look()
	return w.servers, w.here
}

// A searchKind is a way to search.
type searchKind struct {
	title, about string
	find         func(ctx context.Context, s system, group string, i int) (answer, error)
	reference    func(group string, share float64) ([][]int, error) // the best chunks of each query; nil: those of the first system
}

func (b *bench) searchKinds() []searchKind {
	scan := newFloatScan(b.corpus, b.vectors)
	question := func(i int) string { return b.questions[i%len(b.questions)] }
	vector := func(i int) []float32 { return b.embedded[i%len(b.embedded)] }
	agreement := "The last column is the share of assay's best ten that are among the best ten."
	return []searchKind{{
		"Words", agreement,
		func(ctx context.Context, s system, group string, i int) (answer, error) {
			return s.text(ctx, group, question(i))
		},
		nil,
	}, {
		"Vectors", "The last column is the recall of the exact best ten.",
		func(ctx context.Context, s system, group string, i int) (answer, error) {
			return s.nearest(ctx, group, vector(i))
		},
		func(_ string, share float64) (exact [][]int, err error) {
			for i := range b.options.queries {
				found, err := scan.nearest(vector(i), share, 10)
				if err != nil {
					return nil, err
				}
				exact = append(exact, found())
			}
			return exact, nil
		},
	}, {
		"Hybrid", "Assay's indexes are searched by words, then by vectors, as the engine does, and ranks are fused here; Weaviate does both in one call. " + agreement,
		func(ctx context.Context, s system, group string, i int) (answer, error) {
			return s.hybrid(ctx, group, question(i), vector(i))
		},
		nil,
	}}
}

// searchSystems measures searches of each kind by each group.
func (b *bench) searchSystems(ctx context.Context, systems []system) error {
	for _, kind := range b.searchKinds() {
		p := b.report.part(fmt.Sprintf("%s: the best %d", kind.title, top), "system, what may be seen", fmt.Sprintf(
			"Wall time of %d searches, one after the other, the systems taking turns with each; CPU is the processor time of servers and client, per search; throughput is that of %d clients in this process. %s",
			b.options.queries*b.options.rounds, clients, kind.about))
		for _, g := range groups {
			progress("%s, %s", kind.title, g.what)
			measured, err := b.takeTurns(ctx, systems, func(ctx context.Context, s system, i int) (answer, error) { return kind.find(ctx, s, g.name, i) })
			if err != nil {
				return err
			}
			want := measured[0].answers
			if kind.reference != nil {
				if want, err = kind.reference(g.name, g.share); err != nil {
					return err
				}
			}
			for i, s := range systems {
				row := s.name() + ": " + g.what
				m := measured[i]
				p.addTimes(row, m.wall, m.cpu)
				rate, err := b.throughput(ctx, func(ctx context.Context, n int) error {
					_, err := kind.find(ctx, s, g.name, n)
					return err
				})
				if err != nil {
					return fmt.Errorf("%s: %w", s.name(), err)
				}
				p.add(row, fmt.Sprintf("%d clients", clients), perSecond, rate)
				p.add(row, "best ten", shareOf, overlap(want, m.answers))
				progress("    %-16s p50 %.2f ms, p95 %.2f ms, min %.2f ms, CPU %.2f ms, %.0f/s, best ten %.3f", s.name(), inUnit(percentile(m.wall, 0.5), milliseconds),
					inUnit(percentile(m.wall, 0.95), milliseconds), inUnit(slices.Min(m.wall), milliseconds), inUnit(m.cpu, milliseconds), rate, overlap(want, m.answers))
			}
		}
	}
	return nil
}

// addTimes adds the columns of single calls.
func (p *part) addTimes(row string, wall []time.Duration, cpu time.Duration) {
	p.addDuration(row, "p50", milliseconds, percentile(wall, 0.5))
	p.addDuration(row, "p95", milliseconds, percentile(wall, 0.95))
	p.addDuration(row, "min", milliseconds, slices.Min(wall))
	p.addDuration(row, "CPU", milliseconds, cpu)
}

// turns holds the times of a system's searches, which alternated with those of the other systems.
type turns struct {
	wall    []time.Duration
	cpu     time.Duration // per call, of servers and client
	answers [][]int       // of each query, once
}

// takeTurns has each system in turn answer each query, as often as there are rounds, after some
// queries to warm up. A system that takes longer than 30 times -slow in all answers fewer queries.
func (b *bench) takeTurns(ctx context.Context, systems []system, find func(context.Context, system, int) (answer, error)) ([]turns, error) {
	all := make([]turns, len(systems))
	before := make([]time.Duration, len(systems)) // processor time of the servers
	for k, s := range systems {
		for i := range min(20, b.options.queries) {
			if _, err := find(ctx, s, i); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name(), err)
			}
		}
		var err error
		if before[k], err = serverTime(s); err != nil {
			return nil, err
		}
	}
	spent := make([]time.Duration, len(systems))
	for i := range b.options.queries * b.options.rounds {
		for turn := range systems {
			k := (i + turn) % len(systems)
			if spent[k] > 30*b.options.slow {
				continue
			}
			here, began := cpuTime(), time.Now()
			found, err := find(ctx, systems[k], i%b.options.queries)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", systems[k].name(), err)
			}
			took := time.Since(began)
			spent[k] += took
			all[k].cpu += cpuTime() - here
			all[k].wall = append(all[k].wall, took)
			if i < b.options.queries {
				all[k].answers = append(all[k].answers, found())
			}
		}
	}
	for k, s := range systems {
		after, err := serverTime(s)
		if err != nil {
			return nil, err
		}
		all[k].cpu = (all[k].cpu + after - before[k]) / time.Duration(len(all[k].wall))
	}
	return all, nil
}

// serverTime returns the processor time that a system's servers have used.
func serverTime(s system) (time.Duration, error) {
	pids, err := s.processes()
	if err != nil {
		return 0, err
	}
	return processorTime(pids)
}

// throughput returns the calls per second of several clients.
func (b *bench) throughput(ctx context.Context, call func(ctx context.Context, n int) error) (float64, error) {
	var next, done atomic.Int64
	var failed error
	var once sync.Once
	var group sync.WaitGroup
	began := time.Now()
	end := began.Add(b.options.period)
	for range clients {
		group.Go(func() {
			for time.Now().Before(end) {
				if err := call(ctx, int(next.Add(1))); err != nil {
					once.Do(func() { failed = err })
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	return float64(done.Load()) / time.Since(began).Seconds(), failed
}

// askSystems asks questions of engines that differ in their index.
func (b *bench) askSystems(ctx context.Context, systems []system) (err error) {
	asked, engines, err := b.openEngines(ctx, systems)
	defer func() {
		for _, e := range engines {
			err = errors.Join(err, e.Close())
		}
	}()
	if err != nil {
		return err
	}
	p := b.report.part("Ask", "index", fmt.Sprintf("Wall time of %d questions from begin to answer, one after the other, without a model and without reused answers. The engines work on the same store, "+
		"a data directory on this machine, take turns, and differ in their index. Weaviate has no counterpart.", b.options.asks))
	answered := make([]int, len(asked))
	questions := bench{options: b.options}
	questions.options.queries, questions.options.rounds = b.options.asks, 1
	measured, err := questions.takeTurns(ctx, asked, func(ctx context.Context, s system, i int) (answer, error) {
		k := slices.Index(asked, s)
		status, err := ask(ctx, engines[k], b.questions[i%len(b.questions)])
		return func() []int {
			if status == assay.Answered {
				answered[k]++
			}
			return nil
		}, err
	})
	if err != nil {
		return err
	}
	for k, s := range asked {
		p.addTimes(s.name(), measured[k].wall, measured[k].cpu)
		p.add(s.name(), "answered", shareOf, float64(answered[k])/float64(len(measured[k].wall)))
		rate, err := b.throughput(ctx, func(ctx context.Context, n int) error {
			_, err := ask(ctx, engines[k], b.questions[n%len(b.questions)])
			return err
		})
		if err != nil {
			return err
		}
		p.add(s.name(), fmt.Sprintf("%d clients", clients), perSecond, rate)
		progress("    ask %-16s p50 %.1f ms, %.1f/s", s.name(), inUnit(percentile(measured[k].wall, 0.5), milliseconds), rate)
	}
	return nil
}

// openEngines opens an engine for each of assay's indexes. The caller must close them, also after an
// error.
func (b *bench) openEngines(ctx context.Context, systems []system) (asked []system, engines []*engine.Engine, err error) {
	dir, err := b.dataDirectory(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range systems {
		x, ok := s.(*indexSystem)
		if !ok {
			continue
		}
		c := standalone.Config(dir)
		c.Encoders, c.NoBackground, c.NoCache = b.encoder, true, true
		if x.open != nil {
			c.OpenIndex = func(ctx context.Context, _ store.Tenant) (engine.Index, error) { return x.open(ctx) }
		}
		e, err := engine.Open(ctx, c)
		if err != nil {
			return asked, engines, fmt.Errorf("%s: %w", s.name(), err)
		}
		asked, engines = append(asked, s), append(engines, e)
	}
	return asked, engines, nil
}

// ask asks a question and returns the status of its answer.
func ask(ctx context.Context, e *engine.Engine, question string) (status assay.Status, err error) {
	asker := assay.Principal{User: "someone", Groups: []string{"all"}}
	for event, err := range e.Ask(ctx, asker, engine.Request{Question: question, NoCache: true}) {
		if err != nil {
			return "", err
		}
		if event.Answer != nil {
			status = event.Answer.Status
		}
	}
	return status, ctx.Err()
}
