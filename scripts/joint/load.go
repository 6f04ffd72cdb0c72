//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay/store/postgres"
)

// A load uploads documents and asks questions while processes are killed.
type load struct {
	w       *world
	o       options
	texts   *texts
	clients []*client // one for each tenant
	report  *report
	store   *postgres.Store
	began   time.Time
	pace    *pacer

	mu           sync.Mutex
	acknowledged []map[int]int // number → version, for each tenant
	runs         []map[string]outcome
	uploads      []time.Duration
	answers      []time.Duration
	roots        []root // of the logs, as the primary had them before it was killed
}

// questionTime is how long a run may take, so that a busy machine is no reason to end one.
const questionTime = 2 * time.Minute

// An outcome is how a run ended, as its client has seen it.
type outcome struct {
	status string // of the answer, or "failed"
	reason string // of a run that failed
}

func newLoad(w *world) (*load, error) {
	l := &load{w: w, o: w.o, report: newReport(w.o)}
	var err error
	if l.texts, err = readTexts(w.o.data, w.o.documents, w.o.questions); err != nil {
		return nil, err
	}
	if l.store, err = postgres.Open(context.Background(), w.database.url(), postgres.WithFolder(w.o.dir)); err != nil {
		return nil, err
	}
	for _, t := range w.tenants {
		l.clients = append(l.clients, newClient(w, t))
		l.acknowledged = append(l.acknowledged, map[int]int{})
		l.runs = append(l.runs, map[string]outcome{})
	}
	l.pace = newPacer(w.o.kills)
	return l, nil
}

// run does the whole load.
func (l *load) run(ctx context.Context) error {
	l.began = time.Now()
	if l.o.limit > 0 {
		defer time.AfterFunc(l.o.limit, l.pace.end).Stop()
	}
	all, ctx := errgroup.WithContext(ctx)
	documents, questions := make(chan int), make(chan int)
	all.Go(func() error { return l.pace.feed(ctx, documents, l.o.documents, true) })
	all.Go(func() error { return l.pace.feed(ctx, questions, l.o.questions, false) })
	for range l.o.uploads {
		all.Go(func() error {
			var own []int
			for n := range documents {
				if err := l.upload(ctx, n, 1); err != nil {
					return err
				}
				if own = append(own, n); rand.IntN(20) > 0 {
					continue
				}
				at := rand.IntN(len(own))
				if err := l.upload(ctx, own[at], 2); err != nil {
					return err
				}
				own = append(own[:at], own[at+1:]...)
			}
			return nil
		})
	}
	for range l.o.asks {
		all.Go(func() error {
			for n := range questions {
				if err := l.ask(ctx, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	all.Go(func() error { return l.killAll(ctx) })
	progress, stop := context.WithCancel(ctx)
	defer stop()
	go l.show(progress)
	return all.Wait()
}

// upload uploads a version of a document until a server acknowledges it.
func (l *load) upload(ctx context.Context, n, version int) error {
	which := n % len(l.clients)
	c, d := l.clients[which], document{number: n / len(l.clients), version: version}
	title, err := json.Marshal(map[string]string{"title": d.title(c.tenant)})
	if err != nil {
		return err
	}
	began := time.Now()
	r, err := c.call(ctx, http.MethodPut, "/api/v1/collections/default/documents/"+d.name(),
		map[string]string{"Assay-Metadata": string(title), "Content-Type": "text/plain"}, d.text(c.tenant, l.texts.passages[n]))
	if err != nil {
		return err
	}
	if r.status != http.StatusAccepted && r.status != http.StatusCreated && r.status != http.StatusOK {
		return fmt.Errorf("upload of %s: %d %s", d.name(), r.status, r.body)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged[which][d.number] = version
	l.uploads = append(l.uploads, time.Since(began))
	return nil
}

// ask asks a question until a server accepts it, and follows the run to its end on any server. Then it reads the
// run from another.
func (l *load) ask(ctx context.Context, n int) error {
	which := n % len(l.clients)
	c := l.clients[which]
	body, err := json.Marshal(map[string]any{
		"question": l.texts.questions[n%len(l.texts.questions)], "strategy": l.o.strategy, "no_cache": true,
		"budget": map[string]any{"wall_ns": questionTime},
	})
	if err != nil {
		return err
	}
	began := time.Now()
	r, err := c.call(ctx, http.MethodPost, "/api/v1/ask", map[string]string{
		"Content-Type": "application/json", "Idempotency-Key": fmt.Sprintf("question-%d", n), "Prefer": "respond-async",
	}, string(body))
	if err != nil {
		return err
	}
	var accepted struct{ Run string }
	if err := json.Unmarshal(r.body, &accepted); err != nil || accepted.Run == "" {
		return fmt.Errorf("question %d: %d %s", n, r.status, r.body)
	}
	var seen outcome
	if n%2 == 0 {
		seen, err = l.follow(ctx, c, accepted.Run)
	} else {
		seen, err = l.poll(ctx, c, accepted.Run)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", accepted.Run, err)
	}
	again, err := l.poll(ctx, c, accepted.Run)
	if err != nil {
		return fmt.Errorf("run %s: %w", accepted.Run, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if again != seen {
		l.report.fail("run %s: one server says %v, another %v", accepted.Run, seen, again)
	}
	if _, twice := l.runs[which][accepted.Run]; twice {
		l.report.fail("two questions are the run %s", accepted.Run)
	}
	l.runs[which][accepted.Run] = seen
	l.answers = append(l.answers, time.Since(began))
	return nil
}

// poll reads a run until it has ended.
func (l *load) poll(ctx context.Context, c *client, run string) (outcome, error) {
	for {
		var view struct {
			State  string
			Error  string
			Answer *struct{ Status string }
		}
		if err := c.get(ctx, "/api/v1/runs/"+run, &view); err != nil {
			return outcome{}, err
		}
		switch {
		case view.State == "done" && view.Answer != nil:
			return outcome{status: view.Answer.Status}, nil
		case view.State == "failed":
			return outcome{status: "failed", reason: view.Error}, nil
		case view.State != "active":
			return outcome{}, fmt.Errorf("its state is %q", view.State)
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return outcome{}, err
		}
	}
}

// follow reads the events of a run until it has ended.
func (l *load) follow(ctx context.Context, c *client, run string) (outcome, error) {
	for {
		r, err := c.once(ctx, http.MethodGet, "/api/v1/runs/"+run+"/events", map[string]string{"Accept": "text/event-stream"}, "")
		if ctx.Err() != nil {
			return outcome{}, ctx.Err()
		}
		if err == nil && r.status == http.StatusNotFound {
			return outcome{}, errors.New("it was accepted and is not found")
		}
		if last, ended := lastEvent(r.body); ended {
			return last, nil
		}
		if err != nil || r.status != http.StatusOK {
			c.repeat(http.MethodGet, "/events", r, err)
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return outcome{}, err
		}
	}
}

// lastEvent returns how a run ended, if its events say so. A complete event ends with an empty line.
func lastEvent(stream []byte) (o outcome, ended bool) {
	events := strings.Split(string(stream), "\n\n")
	for _, event := range events[:len(events)-1] {
		var kind, data string
		for line := range strings.SplitSeq(event, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "event":
				kind = value
			case "data":
				data += value
			}
		}
		var value struct {
			Status    any
			Detail    string
			Resumable bool
			State     string
			Answer    struct{ Status string }
		}
		if json.Unmarshal([]byte(data), &value) != nil {
			continue
		}
		switch {
		case kind == "answer":
			status, _ := value.Status.(string)
			if status == "" {
				status = value.Answer.Status
			}
			return outcome{status: status}, true
		case kind == "error" && !value.Resumable:
			return outcome{status: "failed", reason: value.Detail}, true
		}
	}
	return outcome{}, false
}

// killAll kills processes of each kind in turn, at random moments of the load.
func (l *load) killAll(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	kinds := l.w.killers()
	free := map[string]chan struct{}{}
	for _, kind := range kinds {
		free[kind] = make(chan struct{}, 1)
		free[kind] <- struct{}{}
	}
	rng := rand.New(rand.NewPCG(l.o.seed, 2))
	for k := range l.o.kills {
		kind := kinds[k%len(kinds)]
		at := (float64(k) + 0.1 + 0.8*rng.Float64()) / float64(l.o.kills)
		if err := l.pace.wait(ctx, at*float64(l.o.documents), at*float64(l.o.questions)); err != nil {
			break
		}
		select {
		case <-free[kind]:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), all.Wait())
		}
		if kind == kindDatabase {
			if err := l.remember(ctx); err != nil {
				return errors.Join(err, all.Wait())
			}
		}
		l.pace.killed()
		all.Go(func() error {
			began := time.Now()
			l.o.log("kill %d: %s", k+1, kind)
			if err := l.w.kill(ctx, kind, k/len(kinds)); err != nil {
				return err
			}
			took := time.Since(began)
			l.o.log("kill %d: %s is replaced after %.1f s", k+1, kind, took.Seconds())
			l.mu.Lock()
			l.report.Kills[kind]++
			l.report.recovered(kind, took)
			l.mu.Unlock()
			free[kind] <- struct{}{}
			return nil
		})
	}
	return all.Wait()
}

// show prints the progress now and then.
func (l *load) show(ctx context.Context) {
	for sleep(ctx, 10*time.Second) == nil {
		documents, questions := l.pace.progress()
		q := ""
		if counts, err := l.waiting(ctx); err == nil {
			q = fmt.Sprintf(", %d documents wait", counts)
		}
		l.o.log("%d documents, %d questions%s", documents, questions, q)
	}
}

// A pacer spreads the load over the kills: neither is ever far ahead of the other.
type pacer struct {
	mu                   sync.Mutex
	changed              *sync.Cond
	kills, done          int
	documents, questions int // begun
	ended                bool
}

func newPacer(kills int) *pacer {
	p := &pacer{kills: kills}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// feed sends the numbers up to n, each once the kills are far enough.
func (p *pacer) feed(ctx context.Context, to chan<- int, n int, documents bool) error {
	defer close(to)
	defer context.AfterFunc(ctx, p.wake)()
	for i := range n {
		p.mu.Lock()
		for p.done+2 < p.kills && i*p.kills >= n*(p.done+2) && ctx.Err() == nil && !p.ended {
			p.changed.Wait()
		}
		if p.ended {
			p.mu.Unlock()
			return nil
		}
		if documents {
			p.documents++
		} else {
			p.questions++
		}
		p.changed.Broadcast()
		p.mu.Unlock()
		select {
		case to <- i:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// errEnded says that nothing more is to be begun.
var errEnded = errors.New("the time is over")

// wait waits until as many documents and questions have begun.
func (p *pacer) wait(ctx context.Context, documents, questions float64) error {
	defer context.AfterFunc(ctx, p.wake)()
	p.mu.Lock()
	defer p.mu.Unlock()
	for (float64(p.documents) < documents || float64(p.questions) < questions) && ctx.Err() == nil && !p.ended {
		p.changed.Wait()
	}
	if p.ended {
		return errEnded
	}
	return ctx.Err()
}

func (p *pacer) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Broadcast()
}

// end lets nothing more begin.
func (p *pacer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.changed.Broadcast()
}

func (p *pacer) killed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.changed.Broadcast()
}

func (p *pacer) progress() (documents, questions int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.documents, p.questions
}

// missing reports whether the data sets are not there.
func missing(folder string) bool {
	_, err := os.Stat(folder)
	return err != nil
}
