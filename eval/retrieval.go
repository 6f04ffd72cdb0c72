package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/index"
	"github.com/assay-rag/assay/retrieve"
)

// A RetrievalReport is the result of one set.
type RetrievalReport struct {
	Set       string  `json:"set"`
	Passages  int     `json:"passages"`
	Queries   int     `json:"queries"`
	Dropped   int     `json:"dropped_judgements"`
	Metrics           // of BM25
	Relevance Metrics `json:"relevance"` // of the same hits ordered by relevance
	IndexMS   int64   `json:"index_ms"`
	SearchMS  float64 `json:"search_ms"` // mean per query
}

// Retrieval searches a set's passages for each of its queries, 100 hits deep,
// and measures the ranking. progress, which may be nil, is called after each
// query.
func Retrieval(ctx context.Context, set Set, progress func(done, all int)) (RetrievalReport, error) {
	report := RetrievalReport{Set: set.Name, Passages: len(set.Passages), Queries: len(set.Queries), Dropped: set.Dropped}
	started := time.Now()
	r, err := openSet(ctx, set)
	if err != nil {
		return report, err
	}
	defer r.close()
	report.IndexMS = time.Since(started).Milliseconds()

	started = time.Now()
	metrics := make([]Metrics, len(set.Queries))
	relevance := make([]Metrics, len(set.Queries))
	for i, q := range set.Queries {
		found, err := r.search(ctx, q.Text, 100)
		if err != nil {
			return report, err
		}
		ranked := make([]string, len(found.Hits))
		for j, h := range found.Hits {
			ranked[j] = h.URI
		}
		relevance[i] = Measure(ranked, q.Relevant)
		byBM25(found.Hits)
		for j, h := range found.Hits {
			ranked[j] = h.URI
		}
		metrics[i] = Measure(ranked, q.Relevant)
		if progress != nil {
			progress(i+1, len(set.Queries))
		}
	}
	report.SearchMS = float64(time.Since(started).Microseconds()) / 1000 / float64(len(set.Queries))
	report.Metrics, report.Relevance = mean(metrics), mean(relevance)
	return report, nil
}

// byBM25 orders hits as the index found them.
func byBM25(hits []assay.Hit) {
	slices.SortFunc(hits, func(a, b assay.Hit) int {
		return cmp.Or(cmp.Compare(*b.Scores.BM25, *a.Scores.BM25), cmp.Compare(a.Chunk.ID, b.Chunk.ID))
	})
}

// An openedSet is a set that can be searched.
type openedSet struct {
	*retrieve.Retriever
	index index.Index
	dir   string
}

// openSet indexes a set in a temporary folder.
func openSet(ctx context.Context, set Set) (*openedSet, error) {
	dir, err := os.MkdirTemp("", "assay-eval-")
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", set.Name, err)
	}
	c := newCorpus(set)
	ix, err := index.Open(ctx, dir, c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("index %s: %w", set.Name, err), os.RemoveAll(dir))
	}
	return &openedSet{Retriever: retrieve.New(retrieve.Config{Index: ix, Content: c}), index: ix, dir: dir}, nil
}

func (s *openedSet) search(ctx context.Context, text string, limit int) (assay.Results, error) {
	return s.Retrieve(ctx, assay.Local().Access(), assay.Query{Text: text, Limit: limit})
}

func (s *openedSet) close() error {
	return errors.Join(s.index.Close(), os.RemoveAll(s.dir))
}
