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

// Vectors is the store that Embed works on; a store.Writer implements it.
type Vectors interface {
	// Unembedded yields the passages without a vector of the model; see store.Content.
	Unembedded(ctx context.Context, model string, after int64) iter.Seq2[assay.Passage, error]

	// Coverage returns how many chunks have a vector of the model.
	Coverage(ctx context.Context, model string) (store.Coverage, error)

	// PutVectors stores vectors of the model in one transaction.
	PutVectors(ctx context.Context, model string, vectors ...store.Vector) (int64, error)
}

// DefaultEmbedBatch is how many passages Embed passes to the embedder at a time and stores in one
// transaction. It is enough for several processors, and the work lost in a crash is redone in a
// second.
const DefaultEmbedBatch = 32

// Limits after which Embed gives up.
const (
	embedAttempts = 3   // attempts for a failing passage
	embedFailures = 8   // consecutive passages that fail
	embedMost     = 100 // passages that fail in total
)

// EmbedOptions configures Embed. The zero value is valid.
type EmbedOptions struct {
	Batch int   // passages per batch; 0: DefaultEmbedBatch
	After int64 // embed only documents that changed after this sequence

	// Uncounted leaves Progress.Left at 0, because counting visits every chunk.
	Uncounted bool

	// Before is called before each batch and may block, for example to yield the machine or the
	// store to others. An error from it ends Embed.
	Before func(context.Context) error

	// Progress is called when Embed starts and whenever vectors were stored.
	Progress func(EmbedProgress)

	// Pause is the delay before the first retry of a failed passage. It doubles for each further
	// retry; 0 means 100 ms.
	Pause time.Duration

	// Now returns the current time; nil means time.Now.
	Now func() time.Time
}

// EmbedProgress is the progress of an Embed.
type EmbedProgress struct {
	Model  string
	Stored int           // vectors stored so far
	Left   int           // upper bound of the chunks still to do; later documents are not counted
	Rate   float64       // vectors stored per second so far; 0: not yet known
	ETA    time.Duration // time until all are stored at that rate; 0: not yet known

	// Hashes are the hashes of the passages whose vectors became durable since the last call.
	Hashes []string
}

// An EmbedReport is the result of Embed. The vectors counted are stored even if Embed returns an
// error.
type EmbedReport struct {
	Model     string        `json:"model"`
	Stored    int           `json:"stored"` // vectors
	Failed    []EmbedFailed `json:"failed"` // in the order in which they failed
	ElapsedMS int64         `json:"elapsed_ms"`
}

// EmbedFailed is a passage that the embedder failed on. The next Embed tries it again.
type EmbedFailed struct {
	URI    string `json:"uri"`
	Chunk  string `json:"chunk"` // ID of one chunk with this text
	Line   int    `json:"line"`  // 0: unknown
	Detail string `json:"detail"`
}

// Embed stores the missing vectors of the model, once for all passages with the same text, until
// none is missing. A passage that fails repeatedly is reported, and the others are still embedded.
// Each vector is searchable as soon as it is stored.
//
// The error is from ctx, the store or Before. It is the embedder's error if several consecutive
// passages or a hundred in total fail, or if the embedder is a service that is down. Stored vectors
// stay, and the next Embed continues from there.
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

// An embedding is the state of one Embed.
type embedding struct {
	v     Vectors
	e     llm.Embedder
	opts  EmbedOptions
	began time.Time

	lacking int             // chunks without a vector at the start
	failed  map[string]bool // hashes of the failed passages
	inARow  int             // consecutive failed passages
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
	held := map[string]bool{} // hashes in the batch
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

// batch embeds and stores a batch.
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

// embed embeds and stores passages. If the embedder fails, it bisects them to find the failing
// passage.
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
	if isUnavailable(err) {
		return err
	}
	if len(rest) == 1 {
		return m.retry(ctx, rest[0], err)
	}
	first := 1 // the passage that failed, if the embedder returned those before it
	if len(made) == 0 {
		first = len(rest) / 2
	}
	if err := m.embed(ctx, rest[:first]); err != nil {
		return err
	}
	return m.embed(ctx, rest[first:])
}

// isUnavailable reports whether err means that an embedding service is unavailable, whatever its
// input. No passage is to blame then, and splitting the batch would only add requests to those
// already retried.
func isUnavailable(err error) bool {
	if errors.Is(err, assay.ErrQuota) {
		return true
	}
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

// retry retries a passage that failed with err, and records it as failed if the retries fail too.
func (m *embedding) retry(ctx context.Context, p assay.Passage, err error) error {
	pause := m.opts.Pause
	for range embedAttempts - 1 {
		if errors.As(err, new(*llm.TooLongError)) {
			break // a retry would fail too
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
		if isUnavailable(err) {
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

// lastPut bounds the time to store finished vectors after ctx has ended.
const lastPut = 2 * time.Second

// put stores vectors. If ctx ends, it still stores the vectors already made in one more
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
