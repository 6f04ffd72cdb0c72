package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
)

// Vectors is what Embed works on; a store.Writer is one.
type Vectors interface {
	// Unembedded yields the passages that the model has yet to embed; see
	// store.Content.
	Unembedded(ctx context.Context, model string, after int64) iter.Seq2[assay.Passage, error]

	// Coverage counts how far the model has come.
	Coverage(ctx context.Context, model string) (store.Coverage, error)

	// PutVectors stores vectors of the model in one transaction.
	PutVectors(ctx context.Context, model string, vectors ...store.Vector) (int64, error)
}

// DefaultEmbedBatch is how many passages Embed hands to the embedder at a time, and
// stores in one transaction: enough for several processors, and what a crash loses is
// made again in a second.
const DefaultEmbedBatch = 32

// What Embed puts up with before it takes an embedder for broken.
const (
	embedAttempts = 3   // for a passage that fails
	embedFailures = 8   // passages in a row that fail
	embedMost     = 100 // passages that fail, all in all
)

// EmbedOptions says how to embed. Zero fields mean what their comments say.
type EmbedOptions struct {
	Batch int   // passages at a time; 0: DefaultEmbedBatch
	After int64 // only documents that changed after this sequence are looked at

	// Uncounted leaves Progress.Left at 0: to count looks at every chunk.
	Uncounted bool

	// Before is called before each batch, and holds it up until it returns: who
	// shares the machine or the store waits there for others. Its error ends Embed.
	Before func(context.Context) error

	// Progress is called when Embed starts and whenever vectors were stored.
	Progress func(EmbedProgress)

	// Pause is how long to wait before a passage that failed is tried again, and
	// twice as long the next time; 0: 100 ms.
	Pause time.Duration

	// Now tells the time; nil: time.Now.
	Now func() time.Time
}

// EmbedProgress is where Embed is.
type EmbedProgress struct {
	Model  string
	Stored int           // vectors stored so far
	Left   int           // chunks without one, at most: some share one; documents that came meanwhile are not counted
	Rate   float64       // vectors stored in a second so far; 0: not known yet
	ETA    time.Duration // until all are stored, at that rate; 0: not known yet

	// Hashes are the passages whose vectors became durable with this call.
	Hashes []string
}

// An EmbedReport says what Embed did. What it counts is stored, whatever the error.
type EmbedReport struct {
	Model     string        `json:"model"`
	Stored    int           `json:"stored"` // vectors
	Failed    []EmbedFailed `json:"failed"` // in the order met
	ElapsedMS int64         `json:"elapsed_ms"`
}

// EmbedFailed is a passage that the embedder failed at. The next Embed tries again.
type EmbedFailed struct {
	URI    string `json:"uri"`
	Chunk  string `json:"chunk"` // ID of one chunk that has it
	Line   int    `json:"line"`  // 0: not known
	Detail string `json:"detail"`
}

// Embed stores the vectors that the model lacks, passages worded alike once, until
// there is none left, and reports what it did. A passage that the embedder fails at
// several times is in the report, and the others are embedded all the same. What is
// searched meanwhile finds each vector as soon as it is stored.
//
// The error is ctx's, the store's, that of Before, or, when the embedder fails at
// one passage after the other or at a hundred, or is a service that is down, the
// embedder's. What was stored stays, and the next Embed goes on from there.
func Embed(ctx context.Context, v Vectors, e llm.Embedder, opts EmbedOptions) (EmbedReport, error) {
	opts.Batch = cmp.Or(opts.Batch, DefaultEmbedBatch)
	opts.Pause = cmp.Or(opts.Pause, 100*time.Millisecond)
	if opts.Now == nil {
		opts.Now = time.Now
	}
	m := &embedding{v: v, e: e, opts: opts, began: opts.Now(), failed: map[string]bool{}}
	m.report = EmbedReport{Model: e.Model(), Failed: []EmbedFailed{}}
	err := m.run(ctx)
	m.report.ElapsedMS = opts.Now().Sub(m.began).Milliseconds()
	if err != nil {
		err = fmt.Errorf("embed with %s: %w", e.Model(), err)
	}
	return m.report, err
}

// An embedding is one Embed.
type embedding struct {
	v     Vectors
	e     llm.Embedder
	opts  EmbedOptions
	began time.Time

	lacking int             // chunks, when it began
	failed  map[string]bool // hashes
	inARow  int             // passages that failed since one did not
	report  EmbedReport
}

func (m *embedding) run(ctx context.Context) error {
	if !m.opts.Uncounted {
		covered, err := m.v.Coverage(ctx, m.e.Model())
		if err != nil {
			return err
		}
		m.lacking = covered.Chunks - covered.Embedded
	}
	m.progress(nil)
	batch := make([]assay.Passage, 0, m.opts.Batch)
	held := map[string]bool{} // hashes of the batch
	for p, err := range m.v.Unembedded(ctx, m.e.Model(), m.opts.After) {
		if err != nil {
			return err
		}
		if hash := p.Hash(); !held[hash] && !m.failed[hash] {
			held[hash] = true
			batch = append(batch, p)
		}
		if len(batch) < m.opts.Batch {
			continue
		}
		if err := m.batch(ctx, batch); err != nil {
			return err
		}
		batch = batch[:0]
		clear(held)
	}
	return m.batch(ctx, batch)
}

// batch embeds and stores what was collected.
func (m *embedding) batch(ctx context.Context, passages []assay.Passage) error {
	if len(passages) == 0 {
		return nil
	}
	if m.opts.Before != nil {
		if err := m.opts.Before(ctx); err != nil {
			return err
		}
	}
	return m.embed(ctx, passages)
}

// embed embeds and stores passages. Where the embedder fails, it is asked again for
// fewer, until it is known at which passage.
func (m *embedding) embed(ctx context.Context, passages []assay.Passage) error {
	made, err := llm.EmbedPassages(ctx, m.e, passages)
	if err := m.put(ctx, passages[:len(made)], made); err != nil {
		return err
	}
	if err == nil {
		return nil
	}
	rest := passages[len(made):]
	if err := ctx.Err(); err != nil {
		return err
	}
	if down(err) {
		return err
	}
	if len(rest) == 1 {
		return m.again(ctx, rest[0], err)
	}
	first := 1 // it says which it failed at
	if len(made) == 0 {
		first = len(rest) / 2
	}
	if err := m.embed(ctx, rest[:first]); err != nil {
		return err
	}
	return m.embed(ctx, rest[first:])
}

// down reports whether an embedder that is a service failed whatever it was asked: no
// passage is to blame, and to ask for fewer is to ask a service more often that has
// been asked again already.
func down(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return false
	}
	switch e.Kind {
	case llm.BadKey, llm.NoModel, llm.NoQuota:
		return true
	}
	return e.Kind.Temporary()
}

// again tries a passage that failed with err some more times, then leaves it out.
func (m *embedding) again(ctx context.Context, p assay.Passage, err error) error {
	pause := m.opts.Pause
	for range embedAttempts - 1 {
		if errors.As(err, new(*llm.TooLongError)) {
			break // as it will be the next time
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause *= 2
		var made []llm.Vector
		if made, err = llm.EmbedPassages(ctx, m.e, []assay.Passage{p}); err == nil {
			return m.put(ctx, []assay.Passage{p}, made)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if down(err) {
			return err
		}
	}
	m.failed[p.Hash()] = true
	m.report.Failed = append(m.report.Failed, EmbedFailed{URI: p.URI, Chunk: p.Chunk.ID, Line: p.Line, Detail: err.Error()})
	m.inARow++
	switch {
	case m.inARow >= embedFailures:
		return fmt.Errorf("it failed at %d passages in a row, the last one of %s: %w", m.inARow, p.URI, err)
	case len(m.failed) >= embedMost:
		return fmt.Errorf("it failed at %d passages, the last one of %s: %w", len(m.failed), p.URI, err)
	}
	return nil
}

// lastPut is how long what has been made may take to be stored once ctx has ended.
const lastPut = 2 * time.Second

// put stores vectors. It does not end with ctx: what has been made is worth one more
// transaction.
func (m *embedding) put(ctx context.Context, passages []assay.Passage, made []llm.Vector) error {
	if len(made) == 0 {
		return nil
	}
	vectors := make([]store.Vector, len(made))
	hashes := make([]string, len(made))
	for i, values := range made {
		hashes[i] = passages[i].Hash()
		vectors[i] = store.Vector{Hash: hashes[i], Values: values}
	}
	_, err := m.v.PutVectors(ctx, m.e.Model(), vectors...)
	if err != nil && ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPut)
		defer cancel()
		_, err = m.v.PutVectors(last, m.e.Model(), vectors...)
	}
	if err != nil {
		return err
	}
	m.inARow = 0
	m.report.Stored += len(made)
	m.progress(hashes)
	return nil
}

func (m *embedding) progress(hashes []string) {
	if m.opts.Progress == nil {
		return
	}
	p := EmbedProgress{Model: m.e.Model(), Stored: m.report.Stored, Left: max(0, m.lacking-m.report.Stored), Hashes: hashes}
	if took := m.opts.Now().Sub(m.began); took > 0 && p.Stored > 0 {
		p.Rate = float64(p.Stored) / took.Seconds()
		p.ETA = time.Duration(float64(p.Left) / p.Rate * float64(time.Second))
	}
	m.opts.Progress(p)
}
