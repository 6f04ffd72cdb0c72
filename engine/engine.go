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
	"github.com/assay-rag/assay/graph"
	"github.com/assay-rag/assay/index"
	"github.com/assay-rag/assay/internal/webfetch"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/rerank"
	"github.com/assay-rag/assay/retrieve"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
	"github.com/assay-rag/assay/strategy"
)

// tenantName is the one tenant of a data directory, as long as nothing
// authenticates others.
const tenantName = "default"

// A Config says what an Engine works on.
type Config struct {
	// Dir is the data directory. One that is missing or empty becomes one.
	Dir string

	// Now tells the time; nil: time.Now.
	Now func() time.Time

	// NewID names a new run; nil: 16 random letters and digits.
	NewID func() string

	// Encoders make vectors of passages and questions; nil: text alone.
	Encoders Encoders

	// Reader opens the reader, which local roles judge with; nil: there is none. It is
	// called once, by the first question. A reader that cannot be opened is an error of
	// every question that is asked.
	Reader func() (llm.Reader, error)

	// Models are the language models that do roles; the zero Models: none.
	Models Models

	// Strategy is the strategy of requests that name none; empty: "auto". Limits and
	// Settings are those of requests that do not set them; zero fields: their defaults.
	Strategy string
	Limits   strategy.Limits
	Settings strategy.Settings

	// Web searches the web for questions that allow it, and Pages reads what it finds; nil:
	// nobody does, and a fetcher that reaches nothing but the public internet, which is
	// what programs have: another one is for this module's tests.
	Web   assay.WebSearcher
	Pages *webfetch.Fetcher

	// Managed answers questions by itself, for the strategy of that name; nil: nobody does.
	Managed strategy.Managed

	// NoBackground leaves vectors to Embed, to IngestRequest.Wait and to the searches
	// that need them. Without it they catch up by themselves, in the background, as
	// long as the engine is open: who only asks once and ends has nothing of that.
	NoBackground bool

	// NoCache has each question gone about anew, and no answer kept to be given again.
	NoCache bool
}

// An Engine works on one data directory. Any number of engines, in any number of
// processes, may have the same one open; one at a time ingests. It is safe for
// concurrent use.
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

	// retriever searches as was chosen. The index below it is opened by the first
	// search: what only looks at runs needs none.
	mu        sync.Mutex
	retriever assay.Retriever
	chosen    *choice
	index     *index.Searcher
}

// Open opens a data directory. One of another program is assay.ErrForeign, one
// of a newer version assay.ErrNewer, one of which a part is missing
// assay.ErrDamaged.
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
	config.Limits.Wall = 0 // a request's
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

// keptReadings is how many readings are kept: those of some fifty questions.
const keptReadings = 1000

// openReader opens the configured reader; nil: there is none.
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

// A lateReader is a reader that is opened when it is first asked: an ingest needs none.
type lateReader struct {
	open func() (llm.Reader, error)
}

// Model implements llm.Reader; empty: it cannot be opened.
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

// Close releases the data directory. Nothing of the engine may be in use.
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

// indexDir is where a tenant's index is kept: beside the content it is made from.
func indexDir(t *sqlite.Tenant) string { return filepath.Join(t.Dir(), "index") }

// search returns what searches the tenant's content, with the index opened, by the
// vectors of the model that serves now.
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

// rebuild writes an index of which nothing is left, or that another version wrote,
// anew, so that it is made once and not by each process that searches. While
// another process writes, or where nothing may be written, each does with what it
// has in memory. The error is that ctx has ended.
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

// pipeline puts together what searches by the vectors of the model that was chosen.
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

// catchUp brings the index, which is open, up to date, so that a run need not:
// where it was lost, or is of an older version, making it again can take longer
// than a run may. What is wrong with the content is left to the run's first
// search, whose error its journal keeps; the error is that ctx has ended.
func (e *Engine) catchUp(ctx context.Context) error {
	e.mu.Lock()
	ix := e.index
	e.mu.Unlock()
	if err := ix.CatchUp(ctx); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}
