package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/rerank"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/internal/webfetch"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
	"github.com/assay-rag/assay/strategy"
)

// DefaultTenant is the tenant of a Config that names none.
const DefaultTenant = store.DefaultTenant

// A Config configures an Engine. One of Dir, Store and OpenStore is required; all other fields are optional.
type Config struct {
	// Dir is the data directory, a store on this machine (see package store/sqlite). A missing or
	// empty directory is initialised.
	Dir string

	// Store holds the data instead of a data directory. The caller closes it after the engine.
	Store store.Store

	// OpenStore opens the store that holds the data instead of a data directory. It is called once, and
	// the engine closes the store.
	OpenStore func(context.Context) (store.Store, error)

	// Tenant names the tenant whose data the engine works on; empty: DefaultTenant, which is created
	// if it does not exist.
	Tenant string

	// OpenIndex opens the index of a tenant's content, which the engine closes; nil: an index of files
	// on this machine. Only this program can provide one, because the interface has internal types.
	OpenIndex func(ctx context.Context, t store.Tenant) (Index, error)

	// RemoveIndex deletes the index that OpenIndex has made of the content with an identity, if there
	// is one; nil: there is nothing to delete. A Host calls it for tenants that were deleted; see
	// DeleteTenant.
	RemoveIndex func(ctx context.Context, identity string) error

	// Now returns the current time; nil: time.Now.
	Now func() time.Time

	// NewID returns the ID of a new run; nil: 16 random letters and digits.
	NewID func() string

	// Encoders provides the encoders of passages and questions; nil: searches use text only.
	Encoders Encoders

	// Walk parses a source and the documents inside it, as parse.Walk does. Parser identifies its
	// behaviour if that differs from parse.Walk's; files are parsed again when it changes. nil:
	// parse.Walk, which parses in this process, so that a file on which a parser runs out of memory
	// ends the program. The command assay parses in child processes.
	Walk   WalkFunc
	Parser string

	// OCR returns the installed program that recognises text in images, or nil; parse.FindOCR is one.
	// It is called by each ingest. nil: images have no text.
	OCR func(context.Context) (*parse.OCR, error)

	// Reader opens the reader that local roles judge with; nil: no reader. It is called once, by
	// the first question. If it fails, every question returns its error.
	Reader func() (llm.Reader, error)

	// Models are the language models that do roles; zero: none.
	Models Models

	// Roles returns the roles of a run, given the built-in ones, which are local or done by Models.
	// It replaces or wraps some of them and returns the others unchanged. It is called for each run,
	// also when a run is resumed or replayed, except if Request.Local is set. A role must fulfil the
	// contract of package role: it is deterministic, and calls models only through its Caller. If a
	// role is removed, the question's error is assay.ErrInvalid. Answers are not cached.
	Roles func(builtin strategy.Roles) strategy.Roles

	// Strategies are strategies besides those of package strategy, which a Request can name. A name
	// that is in use is assay.ErrInvalid. Their answers are not cached.
	Strategies []strategy.Spec

	// Retriever returns the retriever of runs and searches, given the built-in one, which it wraps
	// or replaces. Its hits must be passages of the engine's documents, because citations are read
	// back from the store, and the principal's Access must allow them. Answers are not cached.
	Retriever func(builtin assay.Retriever) assay.Retriever

	// Services are searched beside the documents, each as a collection of its own. Their passages are
	// cited from the journal of the run, which is all that is kept of them. Answers are not cached.
	Services []SearchService

	// Strategy, Limits and Settings are the defaults for requests that do not set them. An empty
	// Strategy is "auto"; zero fields of Limits and Settings have their own defaults.
	Strategy string
	Limits   strategy.Limits
	Settings strategy.Settings

	// Web searches the web for questions that allow it; nil: no web search. Pages fetches the
	// pages that it finds; nil: a fetcher that reaches only the public internet, within Egress.
	Web   assay.WebSearcher
	Pages assay.PageFetcher

	// Managed is the service behind the strategy "managed", which answers questions by itself;
	// nil: none.
	Managed strategy.Managed

	// Sources are the kinds of source that AddSource and Sync know; package source/kinds lists the
	// built-in ones. Getenv returns the environment variables that hold their credentials; nil:
	// os.Getenv.
	// Command returns the credential that a command prints, by the name that the user has given it;
	// nil: there are none.
	Sources []source.Kind
	Getenv  func(string) string
	Command func(name string) (string, error)

	// Egress decides which hosts sources and pages are reached at; nil: the default rules, which
	// docs/egress.md describes. Models, Encoders and the other services connect on their own, with
	// clients that their configuration is given.
	Egress *Egress

	// Alarm is called after an alarm was raised and appended to the audit log. It must not block. It
	// may be nil.
	Alarm func(ctx context.Context, a Alarm)

	// Observer is told of the runs and of the calls to encoders and rerankers; nil: none.
	Observer Observer

	// Webhooks configure the delivery of webhooks; zero: other processes deliver them.
	Webhooks Webhooks

	// SharedLimits are buckets for requests per second and minute that several servers share; nil: each
	// process has its own. While they cannot be reached, requests with such a limit are refused.
	SharedLimits limit.Shared

	// SharedVectors keep the vectors of passages for several servers, if the encoder is a service; nil:
	// each data directory has its own vectors made.
	SharedVectors SharedVectors

	// NoBackground disables the background embedder. Vectors are then made only by Embed, by
	// IngestRequest.Wait and by searches that need them. Programs that ask one question and exit
	// gain nothing from the background embedder.
	NoBackground bool

	// NoCache disables the answer cache.
	NoCache bool
}

// An Engine works on one tenant's data. Any number of engines, in any number of processes, may open
// the same data, but only one at a time can ingest. An Engine is safe for concurrent use.
type Engine struct {
	config   Config
	store    io.Closer // opened by the engine; nil: Config.Store
	tenant   store.Tenant
	content  store.Content
	runs     store.Runs
	indexDir indexDir
	ranker   retrieve.Ranker
	wrap     func(builtin assay.Retriever) (assay.Retriever, error) // see Config.Retriever
	pages    assay.PageFetcher
	reader   func() (llm.Reader, error) // opened once

	encoderSelector *encoderSelector
	filler          *vectorFiller
	embedder        *backgroundEmbedder
	indexWriter     *indexWriter
	keyCache        keyCache
	limitTable      limitTable
	bursts          limit.Bursts
	stopState       stopState
	runNotices      runNotices
	storing         sync.Mutex // held by a worker while it stores a document
	stopWebhooks    func()
	systemStore     systemHandle
	canaryMarks     canaryCache
	egressRules     egressCache
	refusals        refusals
	pageImages      *pageImages
	suggested       contentCache[[]Suggestion]
	counted         contentCache[map[string]int] // documents by collection
	patience        time.Duration                // of an ingest; see writerPatience
	fewTime         time.Duration                // of WaitFew; see fewTime

	// retriever searches according to chosen. The first search opens the index; operations that
	// only read runs do not need it.
	mu        sync.Mutex
	retriever *searcher
	chosen    *encoderSelection
	index     Index
}

// Open opens a tenant's data. It returns assay.ErrInvalid if config contradicts itself,
// assay.ErrForeign if another program wrote the data directory, assay.ErrNewer if a newer version
// did, and assay.ErrDamaged if part of the data is missing. It returns assay.ErrNotFound if the
// tenant does not exist, and assay.ErrStopped if it is suspended. The engine must be closed.
func Open(ctx context.Context, config Config) (*Engine, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	ranker, err := rerank.New(rerank.Default())
	if err != nil {
		return nil, err
	}
	s, own, err := config.open(ctx)
	if err != nil {
		return nil, err
	}
	e := &Engine{config: config, store: own, ranker: ranker, pages: config.Pages, pageImages: newPageImages(), patience: writerPatience, fewTime: fewTime}
	e.systemStore.store = s
	if e.tenant, err = s.Tenant(ctx, config.Tenant); err != nil {
		return nil, errors.Join(config.opening(err), e.closeStore())
	}
	if e.indexDir, err = config.indexDirOf(e.tenant); err != nil {
		return nil, errors.Join(err, e.tenant.Close(), e.closeStore())
	}
	e.content, e.runs = e.tenant.Content(), e.tenant.Runs()
	e.wrap = config.wrapper(e.content)
	e.encoderSelector = &encoderSelector{tenant: e.tenant, content: e.content, encoders: newEncoderCache(e.screenEncoders(config.Encoders), config.Now), now: config.Now}
	e.reader = sync.OnceValues(func() (llm.Reader, error) {
		r, err := openReader(config)
		if r == nil || err != nil {
			return nil, err
		}
		return llm.CacheReadings(r, keptReadings), nil
	})
	e.filler, e.embedder, e.indexWriter = newVectorFiller(e), newBackgroundEmbedder(e), newIndexWriter(e)
	if config.Encoders != nil && !config.NoBackground && !e.tenant.ReadOnly() {
		e.embedder.start()
	}
	e.stopWebhooks = e.startWebhooks()
	return e, nil
}

// complete validates c and fills in the defaults.
func (c Config) complete() (Config, error) {
	if c.Dir != "" && (c.Store != nil || c.OpenStore != nil) {
		return c, fmt.Errorf("open an engine: both a data directory, %s, and a store are given: %w", c.Dir, assay.ErrInvalid)
	}
	if c.Store != nil && c.OpenStore != nil {
		return c, fmt.Errorf("open an engine: both a store and a way to open one are given: %w", assay.ErrInvalid)
	}
	c.Tenant = cmp.Or(c.Tenant, DefaultTenant)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = func() string { return strings.ToLower(rand.Text()[:16]) }
	}
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	if c.Pages == nil {
		c.Pages = webfetch.New(webfetch.Config{Guard: c.Egress})
	}
	c.Limits.Wall = 0 // set by each request's Budget
	if err := c.Models.check(); err != nil {
		return c, err
	}
	if err := c.Limits.Check(); err != nil {
		return c, err
	}
	if err := c.Settings.Check(); err != nil {
		return c, err
	}
	if err := strategy.CheckSpecs(c.Strategies); err != nil {
		return c, err
	}
	if err := c.checkServices(); err != nil {
		return c, err
	}
	_, err := strategy.Lookup(c.Strategy, c.Strategies...)
	return c, err
}

// open returns the configured store. own closes it, and is nil if the caller does.
func (c Config) open(ctx context.Context) (s store.Store, own io.Closer, err error) {
	if c.Store != nil {
		return c.Store, nil, nil
	}
	if c.OpenStore != nil {
		if s, err = c.OpenStore(ctx); err != nil {
			return nil, nil, err
		}
		return s, s, nil
	}
	opened, err := sqlite.Open(ctx, c.Dir)
	if err != nil {
		return nil, nil, err
	}
	return opened, opened, nil
}

// remote reports whether the data is not in a data directory.
func (c Config) remote() bool { return c.Store != nil || c.OpenStore != nil }

// opening wraps the error of opening the tenant.
func (c Config) opening(err error) error {
	if c.remote() {
		return fmt.Errorf("open tenant %s: %w", c.Tenant, err)
	}
	return fmt.Errorf("open data directory %s: %w", c.Dir, err)
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

// lazyReader opens its reader at the first call, because an ingest needs none.
type lazyReader struct {
	open func() (llm.Reader, error)
}

// Model implements llm.Reader. It returns "" if the reader cannot be opened.
func (l lazyReader) Model() string {
	r, err := l.open()
	if err != nil {
		return ""
	}
	return r.Model()
}

// Read implements llm.Reader.
func (l lazyReader) Read(ctx context.Context, question string, passages []llm.Excerpt) ([]llm.Reading, error) {
	r, err := l.open()
	if err != nil {
		return nil, err
	}
	return r.Read(ctx, question, passages)
}

// Entail implements llm.Reader.
func (l lazyReader) Entail(ctx context.Context, pairs []llm.ClaimPair) ([]llm.Entailment, error) {
	r, err := l.open()
	if err != nil {
		return nil, err
	}
	return r.Entail(ctx, pairs)
}

// Close releases the data. No method of the engine may be running.
func (e *Engine) Close() error {
	e.stopWebhooks()
	e.embedder.stop()
	e.filler.close()
	e.indexWriter.stop()
	e.runNotices.close()
	e.mu.Lock()
	defer e.mu.Unlock()
	var err error
	if e.index != nil {
		err = e.index.Close()
	}
	return errors.Join(err, e.indexDir.close(), e.encoderSelector.encoders.close(), e.tenant.Close(), e.systemStore.close(), e.closeStore())
}

// closeStore closes the store if the engine opened it.
func (e *Engine) closeStore() error {
	if e.store == nil {
		return nil
	}
	return e.store.Close()
}

// search opens the index if necessary and returns a searcher that uses the vectors of the serving
// model.
func (e *Engine) search(ctx context.Context) (*searcher, error) {
	chosen, err := e.encoderSelector.selection(ctx)
	if err != nil {
		return nil, err
	}
	ix, err := e.openedIndex(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.awaitIndex(ctx, ix); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.retriever != nil && (e.chosen == chosen || chosen.wanted == "" && chosen.problem == nil) {
		return e.retriever, nil
	}
	e.retriever, e.chosen = e.pipeline(chosen), chosen
	return e.retriever, nil
}

// pipeline returns a searcher that uses the vectors of the chosen model.
func (e *Engine) pipeline(chosen *encoderSelection) *searcher {
	c := retrieve.Config{Index: e.index, Content: e.content, Graph: walkerOver(e.index), Ranker: e.ranker}
	s := &searcher{notes: chosen.notes, local: e.ranker, domain: e.config.Models.Domain}
	if m := e.config.Models.Reranker; m != nil {
		s.ranker = &rerank.Texts{Model: e.screenReranker(m), Best: readBest, Limit: readLimit}
	}
	if e.config.Reader != nil {
		c.Reader = lazyReader{e.reader}
	}
	if encoder := chosen.embedder; encoder != nil {
		s.encoder = encoder.Model()
		if isService(encoder) {
			encoder, s.remote = &timeoutEmbedder{encoder, embedLimit}, true
		} else {
			encoder = e.observeLocal(encoder)
		}
		c.Embedder = encoder
		s.filler = func(a *fillBudget) retrieve.Filler { return e.filler.withBudget(chosen.embedder, a) }
		c.Fill = s.filler(nil)
	}
	s.retriever = retrieve.New(c)
	return s
}
