package retrieval

import (
	"cmp"
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/graph"
	"github.com/assay-rag/assay/internal/retrieve"
)

// A Ranking is a configuration of the search.
type Ranking struct {
	Name   string
	Mode   assay.Mode
	Fusion assay.Fusion
	Graph  bool // adds passages linked to the best hits
	Rerank bool // reranks the best hits
	Read   bool // then runs the reader on them
	BM25   bool // orders lexical hits by BM25 alone, whatever the other fields say

	Parameters assay.BM25 // of the score by words
}

// Rankings returns the rankings that are compared by default, from the simplest to the default
// search. It leaves out those that need vectors if vectors is false, and the one with a reader if
// reader is false.
func Rankings(vectors, reader bool) []Ranking {
	all := []Ranking{
		{Name: "bm25", Mode: assay.ModeText, BM25: true},
		{Name: "text", Mode: assay.ModeText},
		{Name: "vector", Mode: assay.ModeVector},
		{Name: "hybrid"},
		{Name: "hybrid +graph", Graph: true},
		{Name: "hybrid +graph +rerank", Graph: true, Rerank: true},
	}
	if !vectors {
		all = []Ranking{all[0], all[1], {Name: "text +graph", Mode: assay.ModeText, Graph: true}, {Name: "text +graph +rerank", Mode: assay.ModeText, Graph: true, Rerank: true}}
	}
	if reader {
		last := all[len(all)-1]
		last.Name, last.Read = last.Name+" +read", true
		all = append(all, last)
	}
	return all
}

// A Report is the result on one set.
type Report struct {
	Set      string `json:"set"`
	Passages int    `json:"passages"`
	Queries  int    `json:"queries"`
	Dropped  int    `json:"dropped_judgements"`
	Model    string `json:"model,omitempty"` // of the vectors
	Rows     []Row  `json:"rankings"`
	EncodeMS int64  `json:"encode_ms"`
	IndexMS  int64  `json:"index_ms"`
}

// Run measures each ranking on a set. Each row after the first is compared with the first.
func Run(ctx context.Context, set testset.Set, parts Parts, rankings []Ranking) (_ Report, err error) {
	report := Report{Set: set.Name, Passages: len(set.Passages), Queries: len(set.Queries), Dropped: set.Dropped}
	o, err := Open(ctx, set, parts)
	if err != nil {
		return report, err
	}
	defer func() { err = cmp.Or(err, o.Close()) }()
	report.EncodeMS, report.IndexMS = o.Encoded.Milliseconds(), o.Indexed.Milliseconds()
	if o.Embedder != nil {
		report.Model = o.Embedder.Model()
	}
	for _, ranking := range rankings {
		row, err := o.Measure(ctx, ranking.Name, o.Retriever(ranking), assay.Query{Mode: ranking.Mode, Fusion: ranking.Fusion, BM25: ranking.Parameters})
		if err != nil {
			return report, err
		}
		if len(report.Rows) > 0 {
			d := Compare(row, report.Rows[0])
			row.Against = &d
		}
		report.Rows = append(report.Rows, row)
	}
	return report, nil
}

// Retriever returns the retriever of the default search with the parts that the ranking selects.
func (o *Opened) Retriever(ranking Ranking) assay.Retriever {
	c := retrieve.Config{Index: o.Index, Content: o.Content, Embedder: o.Embedder, Relevance: o.relevance}
	if ranking.Graph {
		c.Graph = graph.New(o.Index, graph.Options{})
	}
	if ranking.Rerank {
		c.Ranker = o.ranker
	}
	if ranking.Read {
		c.Reader = o.Reader
	}
	r := retrieve.New(c)
	if ranking.BM25 {
		return byBM25{r}
	}
	return r
}

// byBM25 orders the hits of a lexical search by BM25 alone.
type byBM25 struct{ assay.Retriever }

// Retrieve implements assay.Retriever.
func (r byBM25) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	q.Mode = assay.ModeText
	found, err := r.Retriever.Retrieve(ctx, access, q)
	SortByBM25(found.Hits)
	return found, err
}

// SortByBM25 orders hits by BM25, and equal ones by chunk ID.
func SortByBM25(hits []assay.Hit) {
	score := func(h assay.Hit) float64 {
		if h.Scores.BM25 == nil {
			return 0
		}
		return *h.Scores.BM25
	}
	slices.SortFunc(hits, func(a, b assay.Hit) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a.Chunk.ID, b.Chunk.ID))
	})
}
