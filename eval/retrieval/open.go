// Package retrieval measures rankings on labelled sets. Open embeds and indexes the passages of a set,
// with a cache of vectors on disk. Run compares the rankings from plain BM25 to the default search.
package retrieval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/rerank"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/strategy"
)

// CacheDir returns dir or, if it is empty, the folder in the user's cache that keeps the vectors of
// evaluations.
func CacheDir(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder: %w", err)
	}
	return filepath.Join(cache, "assay", "eval"), nil
}

// Parts are the optional parts of the search over a set.
type Parts struct {
	Embedder llm.Embedder // nil: lexical search only
	CacheDir string       // of the vector cache; empty: none
	// Covered reports whether the passage with this index in the set gets a vector; nil: all do.
	Covered func(passage int) bool
	// Relevance and Ranker replace the embedded models, for example by ones that were not fitted to
	// this set; nil: the embedded ones.
	Relevance *retrieve.RelevanceModel
	Ranker    retrieve.Ranker

	Reader llm.Reader // reads the best hits of a reranked search; nil: none

	Progress func(eval.Progress) // called by one goroutine at a time; may be nil
}

// An Opened set can be searched. Each passage is a document with one chunk, whose URI is the
// passage's ID.
type Opened struct {
	Set      testset.Set
	Index    *index.Searcher
	Content  retrieve.Content
	Stored   strategy.Content // the passages, for the documents behind citations
	Embedder llm.Embedder     // that of Parts, with the cache; nil: none
	Reader   llm.Reader       // that of Parts; nil: none

	Encoded time.Duration // duration of embedding
	Indexed time.Duration

	relevance *retrieve.RelevanceModel
	ranker    retrieve.Ranker
	progress  func(eval.Progress)
	dir       string // of the index
	cache     *vectorCache
}

// Open embeds and indexes the passages of a set. The index is in a temporary folder, which Close
// removes, and the vectors are in memory.
func Open(ctx context.Context, set testset.Set, parts Parts) (*Opened, error) {
	return open(ctx, set, parts, func(llm.Embedder) (*corpus, error) { return newCorpus(ctx, set) })
}

// open is Open with another way to make the documents, which is given the encoder with its cache.
func open(ctx context.Context, set testset.Set, parts Parts, documents func(llm.Embedder) (*corpus, error)) (_ *Opened, err error) {
	o := &Opened{Set: set, Embedder: parts.Embedder, progress: parts.Progress, relevance: parts.Relevance, ranker: parts.Ranker, Reader: parts.Reader}
	if o.ranker == nil {
		if o.ranker, err = rerank.New(rerank.Default()); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", set.Name, err), o.Close())
		}
	}()
	if parts.Embedder != nil && parts.CacheDir != "" {
		if o.cache, err = openVectorCache(parts.CacheDir, parts.Embedder.Model()); err != nil {
			return nil, err
		}
		o.Embedder = cached(parts.Embedder, o.cache)
	}
	c, err := documents(o.Embedder)
	if err != nil {
		return nil, err
	}
	o.Content, o.Stored = c, c
	if o.Embedder != nil {
		report := o.Stage("encode")
		if err := c.embed(ctx, o.Embedder, parts.Covered, report); err != nil {
			return nil, err
		}
		o.Encoded = report(0, 0)
	}
	report := o.Stage("index")
	if o.dir, err = os.MkdirTemp("", "assay-eval-"); err != nil {
		return nil, err
	}
	if o.Index, err = index.Open(ctx, o.dir, c); err != nil {
		return nil, err
	}
	// The first search fills the index from its source.
	if _, err := o.Index.Search(ctx, assay.Local().Access(), assay.Query{Text: "", Limit: 1}); err != nil {
		return nil, err
	}
	o.Indexed = report(len(c.documents), len(c.documents))
	return o, nil
}

// Close removes the index. The vector cache stays.
func (o *Opened) Close() error {
	var errs []error
	if o.Index != nil {
		errs = append(errs, o.Index.Close())
	}
	if o.dir != "" {
		errs = append(errs, os.RemoveAll(o.dir))
	}
	if o.cache != nil {
		errs = append(errs, o.cache.close())
	}
	return errors.Join(errs...)
}

// Stage begins a step and returns a function that reports its progress and returns the time since
// its start. The function is safe for concurrent use.
func (o *Opened) Stage(what string) func(done, all int) time.Duration {
	var mu sync.Mutex
	started := time.Now()
	return func(done, all int) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		elapsed := time.Since(started)
		if o.progress != nil && all > 0 {
			o.progress(eval.Progress{Set: o.Set.Name, What: what, Done: done, All: all, Elapsed: elapsed})
		}
		return elapsed
	}
}

// A Row is the result of one ranking on one set.
type Row struct {
	Ranking string `json:"ranking"`
	Metrics        // means over the queries
	// Low and High are 95% bootstrap bounds of the means over the queries.
	Low  Metrics `json:"low"`
	High Metrics `json:"high"`
	// Against compares nDCG@10 with another ranking of the same queries.
	Against *Difference `json:"against,omitempty"`

	SearchMS float64   `json:"search_ms"`       // mean wall time per query
	Notes    []Noted   `json:"notes,omitempty"` // of the searches, the most frequent first
	PerQuery []Metrics `json:"-"`               // in the order of the set's queries
}

// A Noted is a note with its frequency.
type Noted struct {
	Note    string `json:"note"`
	Queries int    `json:"queries"` // number of queries that got the note
}

// Depth is the number of hits per search, which recall@100 needs.
const Depth = 100

// Measure searches with r for each of the set's queries and measures the hits. It uses query with
// the text replaced and a limit of 100. If a query is too long for the encoder, a search by vectors
// alone finds nothing. Queries run in parallel, one per processor.
func (o *Opened) Measure(ctx context.Context, name string, r assay.Retriever, query assay.Query) (Row, error) {
	queries := o.Set.Queries
	row := Row{Ranking: name, PerQuery: make([]Metrics, len(queries))}
	report := o.Stage(name)
	var mu sync.Mutex
	done, spent, notes := 0, time.Duration(0), map[string]int{}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range queries {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			query := query
			query.Text, query.Limit = q.Text, Depth
			began := time.Now()
			found, err := r.Retrieve(gctx, assay.Local().Access(), query)
			if long, ok := errors.AsType[*llm.TooLongError](err); ok && query.Mode == assay.ModeVector {
				found = assay.Results{Notes: []assay.Note{{Kind: assay.NoteSearch, Text: fmt.Sprintf("the query exceeds the limit of %d tokens of %s: nothing found", long.Limit, long.Model)}}}
			} else if err != nil {
				return fmt.Errorf("%s: query %s: %w", o.Set.Name, q.ID, err)
			}
			took := time.Since(began)
			ranked := make([]string, len(found.Hits))
			for j, h := range found.Hits {
				ranked[j] = h.URI
			}
			row.PerQuery[i] = Measure(ranked, q.Relevant)
			mu.Lock()
			defer mu.Unlock()
			for _, note := range found.Notes {
				notes[note.Text]++
			}
			done, spent = done+1, spent+took
			report(done, len(queries))
			return nil
		})
	}
	if err := errors.Join(g.Wait(), ctx.Err()); err != nil {
		return row, err
	}
	row.Notes = CountNotes(notes)
	row.SearchMS = float64(spent.Microseconds()) / 1000 / float64(max(len(queries), 1))
	row.Metrics = Mean(row.PerQuery)
	row.Low, row.High = interval(row.PerQuery)
	return row, nil
}

// CountNotes lists notes by falling frequency.
func CountNotes(times map[string]int) []Noted {
	var all []Noted
	for note, n := range times {
		all = append(all, Noted{note, n})
	}
	slices.SortFunc(all, func(a, b Noted) int { return cmp.Or(b.Queries-a.Queries, strings.Compare(a.Note, b.Note)) })
	return all
}
