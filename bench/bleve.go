package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/blevesearch/bleve/v2"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/en" // the analyzer "en"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"
	indexapi "github.com/blevesearch/bleve_index_api"
)

// A bleveIndex is the corpus in bleve, configured to be fast and comparable: one text field with
// nothing stored, no term vectors and no doc values, BM25 with assay's k1 and b.
type bleveIndex struct{ bleve.Index }

type bleveChunk struct {
	Text  string  `json:"text"`
	Share float64 `json:"share"`
}

func buildBleve(ctx context.Context, dir string, c *corpus) (*bleveIndex, error) {
	search.BM25_k1, search.BM25_b = 0.9, 0.4
	text := bleve.NewTextFieldMapping()
	text.Analyzer = "en"
	text.Store, text.IncludeInAll, text.IncludeTermVectors, text.DocValues = false, false, false, false
	number := bleve.NewNumericFieldMapping()
	number.Store, number.IncludeInAll, number.DocValues = false, false, false
	chunk := bleve.NewDocumentStaticMapping()
	chunk.AddFieldMappingsAt("text", text)
	chunk.AddFieldMappingsAt("share", number)
	mapping := bleve.NewIndexMapping()
	mapping.DefaultMapping = chunk
	mapping.ScoringModel = indexapi.BM25Scoring
	ix, err := bleve.New(filepath.Join(dir, "bleve"), mapping)
	if err != nil {
		return nil, fmt.Errorf("bleve: %w", err)
	}
	batch := ix.NewBatch()
	for d := range c.documents() {
		document := c.document(d)
		for i, chunk := range document.Chunks {
			if err := batch.Index(strconv.Itoa(int(c.first[d])+i), bleveChunk{oneField(document, chunk), document.Share}); err != nil {
				return nil, fmt.Errorf("bleve: %w", err)
			}
		}
		if batch.Size() >= 1000 || d == c.documents()-1 {
			if err := ix.Batch(batch); err != nil {
				return nil, fmt.Errorf("bleve: %w", err)
			}
			batch = ix.NewBatch()
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
	}
	waitIdle(ctx) // its merges
	return &bleveIndex{ix}, nil
}

// oneField returns a chunk as text for engines without weighted fields. The title and heading are
// repeated three times, which gives their words the same weight as in assay.
func oneField(d corpusDocument, c corpusChunk) string {
	head := d.Title + "\n" + c.Heading + "\n"
	return head + head + head + c.Text
}

func (b *bleveIndex) find(ctx context.Context, q string, below float64, limit int) (answer, error) {
	match := query.Query(bleve.NewMatchQuery(q))
	match.(*query.MatchQuery).SetField("text")
	if below < 1 {
		share := bleve.NewNumericRangeQuery(nil, &below)
		share.SetField("share")
		share.SetBoost(0)
		match = bleve.NewConjunctionQuery(match, share)
	}
	request := bleve.NewSearchRequestOptions(match, limit, 0, false)
	result, err := b.SearchInContext(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("bleve: %w", err)
	}
	return func() []int {
		var chunks []int
		for _, hit := range result.Hits {
			if n, err := strconv.Atoi(hit.ID); err == nil {
				chunks = append(chunks, n)
			}
		}
		return chunks
	}, nil
}
