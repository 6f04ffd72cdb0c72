package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/graph"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/rerank"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/internal/webfetch"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
	"github.com/assay-rag/assay/strategy"
)

// tenantName is the only tenant of a data directory, because tenants are not authenticated yet.
const tenantName = "default"

// A Config configures an Engine.
type Config struct {
	// Dir is the data directory. A missing or empty directory is initialised.
	Dir string

	// Now returns the current time; nil: time.Now.
	Now func() time.Time

	// NewID returns the ID of a new run; nil: 16 random letters and digits.
	NewID func() string

	// Encoders provides the encoders of passages and questions; nil: searches use text only.
	Encoders Encoders

	// Reader opens the reader that local roles judge with; nil: no reader. It is called once, by
	// the first question. If it fails, every question returns its error.
	Reader func() (llm.Reader, error)

	// Models are the language models that do roles; zero: none.
	Models Models

	// Strategy, Limits and Settings are the defaults for requests that do not set them. An empty
	// Strategy is "auto"; zero fields of Limits and Settings have their own defaults.
	Strategy string
	Limits   strategy.Limits
	Settings strategy.Settings

	// Web searches the web for questions that allow it; nil: no web search. Pages fetches the
	// pages that it finds; nil: a fetcher that reaches only the public internet. Only this
	// module's tests set Pages.
	Web   assay.WebSearcher
	Pages *webfetch.Fetcher

	// Managed is the service behind the strategy "managed", which answers questions by itself;
	// nil: none.
	Managed strategy.Managed

	// NoBackground disables the background embedder. Vectors are then made only by Embed, by
	// IngestRequest.Wait and by searches that need them. Programs that ask one question and exit
	// gain nothing from the background embedder.
	NoBackground bool

	// NoCache disables the answer cache.
	NoCache bool
}

// An Engine works on one data directory. Any number of engines, in any number of processes, may
// open the same directory, but only one at a time can ingest. An Engine is safe for concurrent
// use.
type Engine struct {
	config  Config
	tenant  *sqlite.Tenant
	content store.Content
	runs    store.Runs
	ranker  retrieve.Ranker
	pages   *webfetch.Fetcher
	reader  func() (llm.Reader, error) // opened once

	chooser   *chooser
	filler    *filler
	catching  *catching
	catalogue catalogue

	// retriever searches according to chosen. The first search opens the index; operations that
	// only read runs do not need it.
	mu        sync.Mutex
	retriever assay.Retriever
	chosen    *choice
	index     *index.Searcher
}

// Open opens a data directory. It returns assay.ErrForeign if another program wrote the
// directory, assay.ErrNewer if a newer version did, and assay.ErrDamaged if part of it is
// missing.
func Open(ctx context.Context, config Config) (*Engine, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.NewID == nil {
		config.NewID = func() string { return strings.ToLower(rand.Text()[:16]) }
	}
	if err := config.Models.check(); err != nil {
		return nil, err
	}
	if _, err := strategy.Lookup(config.Strategy); err != nil {
		return nil, err
	}
	config.Limits.Wall = 0 // set by each request's Budget
	ranker, err := rerank.New(rerank.Default())
	if err != nil {
		return nil, err
	}
	s, err := sqlite.Open(ctx, config.Dir)
	if err != nil {
		return nil, err
	}
	tenant, err := s.Tenant(ctx, tenantName)
	if err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", config.Dir, err)
	}
	e := &Engine{config: config, tenant: tenant, content: tenant.Content(), runs: tenant.Runs(), ranker: ranker}
	if e.pages = config.Pages; e.pages == nil {
		e.pages = webfetch.New(webfetch.Config{})
	}
	e.chooser = &chooser{dir: tenant.Dir(), content: e.content, shelf: newShelf(config.Encoders, config.Now), now: config.Now}
	e.reader = sync.OnceValues(func() (llm.Reader, error) {
		r, err := openReader(config)
		if r == nil || err != nil {
			return nil, err
		}
		return llm.CacheReadings(r, keptReadings), nil
	})
	e.filler, e.catching = newFiller(e), newCatching(e)
	if config.Encoders != nil && !config.NoBackground && !tenant.ReadOnly() {
		e.catching.start()
	}
	return e, nil
}

// keptReadings is the number of cached readings, enough for about fifty questions.
const keptReadings = 1000

// openReader opens the configured reader. It returns nil if none is configured.
func openReader(config Config) (llm.Reader, error) {
	if config.Reader == nil {
		return nil, nil
	}
	r, err := config.Reader()
	if err != nil {
		return nil, fmt.Errorf("open the reader: %w", err)
	}
	return r, nil
}

// A lateReader opens its reader at the first call, because an ingest needs none.
type lateReader struct {
	open func() (llm.Reader, error)
}

// Model implements llm.Reader. It returns "" if the reader cannot be opened.
func (l lateReader) Model() string {
	r, err := l.open()
	if err != nil {
		return ""
	}
	return r.Model()
}

// Read implements llm.Reader.
func (l lateReader) Read(ctx context.Context, question string, passages []llm.Excerpt) ([]llm.Reading, error) {
	r, err := l.open()
	if err != nil {
		return nil, err
	}
	return r.Read(ctx, question, passages)
}

// Entail implements llm.Reader.
func (l lateReader) Entail(ctx context.Context, pairs []llm.ClaimPair) ([]llm.Entailment, error) {
	r, err := l.open()
	if err != nil {
		return nil, err
	}
	return r.Entail(ctx, pairs)
}

// Close releases the data directory. No method of the engine may be running.
func (e *Engine) Close() error {
	e.catching.stop()
	e.filler.close()
	e.mu.Lock()
	defer e.mu.Unlock()
	var err error
	if e.index != nil {
		err = e.index.Close()
	}
	return errors.Join(err, e.chooser.shelf.close(), e.tenant.Close())
}

// indexDir returns the directory of a tenant's index, next to the content that it is built from.
func indexDir(t *sqlite.Tenant) string { return filepath.Join(t.Dir(), "index") }

// search opens the index if necessary and returns a retriever that uses the vectors of the
// serving model.
func (e *Engine) search(ctx context.Context) (assay.Retriever, error) {
	chosen, err := e.chooser.choose(ctx)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.retriever != nil && (e.chosen == chosen || chosen.wanted == "" && chosen.problem == nil) {
		return e.retriever, nil
	}
	if e.index == nil {
		if e.index, err = index.Open(ctx, indexDir(e.tenant), e.content); err != nil {
			e.index = nil
			return nil, fmt.Errorf("open the index: %w", err)
		}
		if err := e.rebuild(ctx); err != nil {
			return nil, err
		}
	}
	e.retriever, e.chosen = e.pipeline(chosen), chosen
	return e.retriever, nil
}

// rebuild writes an index that was lost or written by another version, so that not every
// searching process rebuilds it. If another process is writing, or the directory is read-only,
// the index stays in memory only. The only error is that ctx has ended.
func (e *Engine) rebuild(ctx context.Context) error {
	if e.index.Version().Sequence > 0 {
		return nil
	}
	err := e.write(ctx, 0, func(store.Writer) error { return e.index.Flush(ctx) })
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// pipeline returns a searcher that uses the vectors of the chosen model.
func (e *Engine) pipeline(chosen *choice) *searcher {
	c := retrieve.Config{Index: e.index, Content: e.content, Graph: graph.New(e.index, graph.Options{}), Ranker: e.ranker}
	s := &searcher{notes: chosen.notes, local: e.ranker, domain: e.config.Models.Domain}
	if m := e.config.Models.Reranker; m != nil {
		s.ranker = &rerank.Texts{Model: m, Best: readBest, Limit: readLimit}
	}
	if e.config.Reader != nil {
		c.Reader = lateReader{e.reader}
	}
	if encoder := chosen.embedder; encoder != nil {
		s.encoder = encoder.Model()
		if isService(encoder) {
			encoder, s.remote = &hasty{encoder, embedLimit}, true
		}
		c.Embedder = encoder
		s.filler = func(a *allowance) retrieve.Filler { return e.filler.by(chosen.embedder, a) }
		c.Fill = s.filler(nil)
	}
	s.retriever = retrieve.New(c)
	return s
}

// catchUp brings the open index up to date before a run starts, because rebuilding a lost or
// outdated index can take longer than a run's wall time. It ignores errors in the content, which
// the run's first search records in the journal. The only error is that ctx has ended.
func (e *Engine) catchUp(ctx context.Context) error {
	e.mu.Lock()
	ix := e.index
	e.mu.Unlock()
	if err := ix.CatchUp(ctx); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}
