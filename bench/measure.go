package main

import (
	"bufio"
	"context"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// cpuTime returns the processor time used by all threads of the process, including an engine's own
// goroutines.
func cpuTime() time.Duration { return usage(syscall.RUSAGE_SELF) }

func usage(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A contender is an engine that answers queries of one kind, by number.
type contender struct {
	engine string
	find   func(ctx context.Context, query int) (answer, error)
}

// An answer returns the numbers of the chunks found, best first. The conversion from an engine's
// own IDs is not measured.
type answer func() []int

// A cost is the cost of a query in an engine.
type cost struct {
	cpu     time.Duration // per query, the median of the rounds
	queries int           // answered in each round
	rounds  []time.Duration
	answers [][]int // of the first queries, best first; not more than queries
}

// A protocol configures how contenders are measured.
type protocol struct {
	rounds  int
	queries int
	// least is the minimum duration of a round; a fast engine answers all queries again. most ends
	// a slow engine's round, after at least 5 queries.
	least, most time.Duration
}

// compare measures contenders on one thread, side by side. In each round every contender in turn
// answers the queries. The first round is a warm-up.
func (p protocol) compare(ctx context.Context, contenders []contender) ([]cost, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	costs := make([]cost, len(contenders))
	for round := range p.rounds + 1 {
		for i, c := range contenders {
			runtime.GC() // garbage of others must not count for this one
			perQuery, n, answers, err := p.round(ctx, c, round == 0)
			if err != nil {
				return nil, err
			}
			if round == 0 {
				costs[i].answers = answers
				continue
			}
			costs[i].rounds = append(costs[i].rounds, perQuery)
			costs[i].queries = n
		}
	}
	for i := range costs {
		costs[i].cpu = median(costs[i].rounds)
	}
	return costs, nil
}

func (p protocol) round(ctx context.Context, c contender, warming bool) (perQuery time.Duration, n int, answers [][]int, err error) {
	began, count := cpuTime(), 0
	for spent := time.Duration(0); ; count++ {
		if count%p.queries == 0 && count > 0 && (warming || spent >= p.least) {
			break
		}
		if err := ctx.Err(); err != nil {
			return 0, 0, nil, err
		}
		found, err := c.find(ctx, count%p.queries)
		if err != nil {
			return 0, 0, nil, err
		}
		if warming {
			answers = append(answers, found())
		}
		if spent = cpuTime() - began; spent >= p.most && count >= 4 {
			count++
			break
		}
	}
	return (cpuTime() - began) / time.Duration(count), min(count, p.queries), answers, nil
}

func median[T time.Duration | float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// percentile returns the value that the share p of the values does not exceed.
func percentile(values []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}

// overlap returns the share of the first ten of want that are among the first ten of got, averaged
// over the queries that both answered. Queries without results in want do not count.
func overlap(want, got [][]int) float64 {
	sum, n := 0.0, 0
	for i := range min(len(want), len(got)) {
		w, g := want[i][:min(10, len(want[i]))], got[i][:min(10, len(got[i]))]
		if len(w) == 0 {
			continue
		}
		found := 0
		for _, chunk := range w {
			if slices.Contains(g, chunk) {
				found++
			}
		}
		sum += float64(found) / float64(len(w))
		n++
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// waitIdle waits until the process has been nearly idle for a third of a second, so that an
// engine's background work is done. It waits at most a minute.
func waitIdle(ctx context.Context) {
	const step = 300 * time.Millisecond
	for range 200 {
		before := cpuTime()
		select {
		case <-ctx.Done():
			return
		case <-time.After(step):
		}
		if cpuTime()-before < step/20 {
			return
		}
	}
}

// A memoryWatch records the largest anonymous memory of the process, which excludes mapped files,
// and the largest Go heap.
type memoryWatch struct {
	stop chan struct{}
	done sync.WaitGroup

	anonymous, heap int64 // bytes; complete after end
}

func watchMemory() *memoryWatch {
	w := &memoryWatch{stop: make(chan struct{})}
	w.done.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			w.look()
			select {
			case <-w.stop:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	})
	return w
}

func (w *memoryWatch) look() {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	w.heap = max(w.heap, int64(heap[0].Value.Uint64()))
	w.anonymous = max(w.anonymous, anonymousMemory())
}

func (w *memoryWatch) end() {
	close(w.stop)
	w.done.Wait()
	w.look()
}

// anonymousMemory returns RssAnon of /proc/self/status in bytes, or 0 if it is not available.
func anonymousMemory() int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if kb, ok := strings.CutPrefix(lines.Text(), "RssAnon:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(kb, "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// with returns the protocol for the given number of queries.
func (p protocol) with(queries int) protocol {
	p.queries = queries
	return p
}
