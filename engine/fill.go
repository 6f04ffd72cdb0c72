package engine

import (
	"context"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/retrieve"
	"github.com/assay-rag/assay/store"
)

// What a search may wait for vectors that are still missing: at most fillMost, and
// all searches of a run together one part in fillShare of its wall time, twice
// fillMost at most; a search that is not of a run, less than a person notices.
const (
	fillMost  = time.Second
	fillShare = 6
	fillAlone = 500 * time.Millisecond

	fillKept = 4096 // vectors kept until they can be stored

	// Passages at a time: as many as are made in a fourth of a second, because what
	// time cuts off is lost.
	fillFewest, fillMany = 2, 32
	fillStep             = 250 * time.Millisecond
)

// An allowance is how long searches may wait for vectors, all together.
type allowance struct {
	mu   sync.Mutex
	left time.Duration
}

// newAllowance returns that of a run with so much wall time.
func newAllowance(wall time.Duration) *allowance {
	return &allowance{left: min(2*fillMost, wall/fillShare)}
}

// take returns how long the next search may wait; what it did not need is given
// back. A nil allowance is that of a search alone.
func (a *allowance) take() time.Duration {
	if a == nil {
		return fillAlone
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := min(a.left, fillMost)
	a.left -= taken
	return taken
}

func (a *allowance) giveBack(unused time.Duration) {
	if a == nil || unused <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left += unused
}

// A filler makes vectors of the passages that a search needs and that have none yet.
// It keeps them for the searches that follow and stores them as soon as this process
// can be the writer; where it cannot, nothing is lost but their making.
type filler struct {
	engine *Engine

	mu      sync.Mutex
	made    map[fillKey]llm.Vector // not stored yet
	making  map[fillKey]bool
	stored  bool    // some, which the index on disk does not have yet
	perByte float64 // seconds, of the last batch; 0: not known
}

type fillKey struct{ model, hash string }

func newFiller(e *Engine) *filler {
	return &filler{engine: e, made: map[fillKey]llm.Vector{}, making: map[fillKey]bool{}}
}

// by returns what fills vectors in with an encoder, within an allowance.
func (f *filler) by(e llm.Embedder, a *allowance) retrieve.Filler {
	return func(ctx context.Context, _ string, ps []assay.Passage) ([]llm.Vector, error) {
		began, allowed := time.Now(), a.take()
		defer func() { a.giveBack(allowed - time.Since(began)) }()
		wait := allowed
		if deadline, ok := ctx.Deadline(); ok {
			wait = min(wait, time.Until(deadline)/4) // the search goes on after it
		}
		return f.fill(ctx, e, ps, began.Add(wait))
	}
}

func (f *filler) fill(ctx context.Context, e llm.Embedder, ps []assay.Passage, until time.Time) ([]llm.Vector, error) {
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
			break // for want of time; or it fails at one, which a pass over all will name
		}
		f.measured(bytes, time.Since(began))
		todo = todo[len(batch):]
	}
	f.store(ctx, e.Model(), 0)
	return vectors, nil
}

// begin fills in what was made before and returns the passages, by index, that are
// to be made: those that no other search is just making.
func (f *filler) begin(model string, ps []assay.Passage, vectors []llm.Vector) (todo []int) {
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

func (f *filler) end(model string, todo []int, ps []assay.Passage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range todo {
		delete(f.making, fillKey{model, ps[i].Hash()})
	}
}

func (f *filler) keep(key fillKey, v llm.Vector) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.made) < fillKept {
		f.made[key] = v
	}
}

// batch returns the next passages to embed, and their bytes: none when there is no
// time left for them.
func (f *filler) batch(ps []assay.Passage, todo []int, left time.Duration) (batch []assay.Passage, bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	step := min(left, fillStep).Seconds()
	for _, at := range todo[:min(len(todo), fillMany)] {
		more := bytes + len(ps[at].Words())
		switch {
		case len(batch) < fillFewest: // enough for two processors
			if f.perByte*float64(more) > left.Seconds() {
				if len(batch) == 0 { // one slow batch is not to be the last: it is tried again
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

func (f *filler) measured(bytes int, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.perByte = took.Seconds() / float64(max(1, bytes))
}

// store puts what was made into the store, if this process can become the writer
// within the patience. What fails is tried again with the next.
func (f *filler) store(ctx context.Context, model string, patience time.Duration) {
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
		return // the vectors serve this engine's searches all the same
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stored = true
	for _, v := range vectors {
		delete(f.made, fillKey{model, v.Hash})
	}
}

// close stores what is left, and has the index on disk take up what was stored, if
// this process can be the writer: the next one would read it from the store.
func (f *filler) close() {
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
		_ = f.engine.write(ctx, 0, func(store.Writer) error { return f.engine.flush(ctx) }) // else the next writer does
	}
}
