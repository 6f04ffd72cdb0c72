package engine

import (
	"context"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
)

// Limits on how long a search waits for missing vectors. One search waits at most fillMost. All
// searches of a run together wait at most 1/fillShare of its wall time, and at most twice
// fillMost. A search outside a run waits fillAlone, which a user hardly notices.
const (
	fillMost  = time.Second
	fillShare = 6
	fillAlone = 500 * time.Millisecond

	fillKept = 4096 // vectors kept until they can be stored

	// A batch has as many passages as can be embedded in a quarter of a second, because the work
	// on an unfinished batch is lost.
	fillFewest, fillMany = 2, 32
	fillStep             = 250 * time.Millisecond
)

// fillBudget is the time that a group of searches may wait for vectors in total.
type fillBudget struct {
	mu   sync.Mutex
	left time.Duration
}

// newFillBudget returns the budget of a run with the given wall time.
func newFillBudget(wall time.Duration) *fillBudget {
	return &fillBudget{left: min(2*fillMost, wall/fillShare)}
}

// take returns how long the next search may wait. The caller returns unused time with giveBack. A
// nil budget grants fillAlone to each search.
func (a *fillBudget) take() time.Duration {
	if a == nil {
		return fillAlone
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := min(a.left, fillMost)
	a.left -= taken
	return taken
}

func (a *fillBudget) giveBack(unused time.Duration) {
	if a == nil || unused <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left += unused
}

// vectorFiller makes the missing vectors of passages that a search needs. It keeps them for later
// searches and stores them as soon as this process can take the writer lock. If it never can,
// only the work of making them is lost.
type vectorFiller struct {
	engine *Engine

	mu      sync.Mutex
	made    map[fillKey]llm.Vector // not stored yet
	making  map[fillKey]bool
	stored  bool    // some vectors were stored but are not in the index on disk
	perByte float64 // seconds per byte in the last batch; 0: unknown
}

type fillKey struct{ model, hash string }

func newVectorFiller(e *Engine) *vectorFiller {
	return &vectorFiller{engine: e, made: map[fillKey]llm.Vector{}, making: map[fillKey]bool{}}
}

// withBudget returns a retrieve.Filler that embeds with e and waits within a.
func (f *vectorFiller) withBudget(e llm.Embedder, a *fillBudget) retrieve.Filler {
	return func(ctx context.Context, _ string, ps []assay.Passage) ([]llm.Vector, error) {
		began, allowed := time.Now(), a.take()
		defer func() { a.giveBack(allowed - time.Since(began)) }()
		wait := allowed
		if deadline, ok := ctx.Deadline(); ok {
			wait = min(wait, time.Until(deadline)/4) // leaves time for the rest of the search
		}
		return f.fill(ctx, e, ps, began.Add(wait))
	}
}

func (f *vectorFiller) fill(ctx context.Context, e llm.Embedder, ps []assay.Passage, until time.Time) ([]llm.Vector, error) {
	vectors := make([]llm.Vector, len(ps))
	todo := f.begin(e.Model(), ps, vectors)
	defer f.end(e.Model(), todo, ps)
	limited, cancel := context.WithDeadline(llm.WithPrice(ctx, llm.FactsOf(e)), until)
	defer cancel()
	for len(todo) > 0 {
		batch, bytes := f.batch(ps, todo, time.Until(until))
		if len(batch) == 0 {
			break
		}
		began := time.Now()
		made, err := llm.EmbedPassages(limited, e, batch)
		for i, v := range made {
			vectors[todo[i]] = v
			f.keep(fillKey{e.Model(), batch[i].Hash()}, v)
		}
		if ctx.Err() != nil {
			return vectors, ctx.Err()
		}
		if err != nil {
			break // out of time, or a passage failed, which a full pass reports
		}
		f.measured(bytes, time.Since(began))
		todo = todo[len(batch):]
	}
	f.store(ctx, e.Model(), 0)
	return vectors, nil
}

// begin fills in the vectors that were made before. It returns the indexes of the passages to
// embed, without those that another search is embedding now.
func (f *vectorFiller) begin(model string, ps []assay.Passage, vectors []llm.Vector) (todo []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, p := range ps {
		key := fillKey{model, p.Hash()}
		if v, ok := f.made[key]; ok {
			vectors[i] = v
		} else if !f.making[key] {
			f.making[key] = true
			todo = append(todo, i)
		}
	}
	return todo
}

func (f *vectorFiller) end(model string, todo []int, ps []assay.Passage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range todo {
		delete(f.making, fillKey{model, ps[i].Hash()})
	}
}

func (f *vectorFiller) keep(key fillKey, v llm.Vector) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.made) < fillKept {
		f.made[key] = v
	}
}

// batch returns the next passages to embed and their size in bytes. It returns none if there is
// no time left for them.
func (f *vectorFiller) batch(ps []assay.Passage, todo []int, left time.Duration) (batch []assay.Passage, bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	step := min(left, fillStep).Seconds()
	for _, at := range todo[:min(len(todo), fillMany)] {
		more := bytes + len(ps[at].Words())
		switch {
		case len(batch) < fillFewest: // a minimum that keeps two processors busy
			if f.perByte*float64(more) > left.Seconds() {
				if len(batch) == 0 { // lower the estimate so that one slow batch does not stop all later ones
					f.perByte /= 2
				}
				return batch, bytes
			}
		case f.perByte == 0 || f.perByte*float64(more) > step:
			return batch, bytes
		}
		batch, bytes = append(batch, ps[at]), more
	}
	return batch, bytes
}

func (f *vectorFiller) measured(bytes int, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.perByte = took.Seconds() / float64(max(1, bytes))
}

// store writes the vectors to the store if it gets the writer lock within the given patience. If
// it fails, the next call tries again.
func (f *vectorFiller) store(ctx context.Context, model string, patience time.Duration) {
	f.mu.Lock()
	var vectors []store.Vector
	for key, values := range f.made {
		if key.model == model {
			vectors = append(vectors, store.Vector{Hash: key.hash, Values: values})
		}
	}
	f.mu.Unlock()
	if len(vectors) == 0 {
		return
	}
	err := f.engine.write(ctx, patience, func(w store.Writer) error {
		_, err := w.PutVectors(ctx, model, vectors...)
		return err
	})
	if err != nil {
		return // the vectors still serve this engine's searches
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stored = true
	for _, v := range vectors {
		delete(f.made, fillKey{model, v.Hash})
	}
}

// close stores the remaining vectors and adds the stored ones to the index on disk if it gets the
// writer lock. Otherwise the next process reads them from the store.
func (f *vectorFiller) close() {
	ctx, cancel := context.WithTimeout(context.Background(), lastFlush)
	defer cancel()
	models := map[string]bool{}
	f.mu.Lock()
	for key := range f.made {
		models[key.model] = true
	}
	f.mu.Unlock()
	for model := range models {
		f.store(ctx, model, 0)
	}
	f.mu.Lock()
	stored := f.stored
	f.mu.Unlock()
	if stored {
		_ = f.engine.flushAlone(ctx, 0) // on failure the next writer flushes
	}
}
