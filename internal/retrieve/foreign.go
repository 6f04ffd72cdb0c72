package retrieve

import (
	"context"
	"fmt"
	"math"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/llm"
)

// Rate sets the relevance of hits that another service found, as it is set for passages of the index:
// by their words and, of the best ReadHits, by the reader, which may be nil. Their order stays. The
// statistics of words are those of the results themselves. If the reader fails, the relevance is by
// words alone, and a note of the results reports it. The only error is that ctx has ended.
func Rate(ctx context.Context, reader llm.Reader, query string, found *assay.Results) error {
	r := newRater(new(analysis.Analyzers), query, found.Terms, nil, found.Chunks)
	var read []int
	var passages []llm.Excerpt
	for i := range found.Hits {
		h := &found.Hits[i]
		h.Scores.Relevance = r.relevance(r.read(*h))
		if i < ReadHits && reader != nil && Readable(reader, *h) {
			read, passages = append(read, i), append(passages, llm.Excerpt{Heading: h.Under(), Text: h.Text})
		}
	}
	if len(read) == 0 {
		return ctx.Err()
	}
	readings, err := reader.Read(ctx, query, passages)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && len(readings) != len(read) {
		err = fmt.Errorf("%d readings for %d hits", len(readings), len(read))
	}
	if err != nil {
		found.Notes = append(found.Notes, assay.Note{Kind: assay.NoteSearch, Text: "the hits are not read: " + trimmed(err)})
		return nil
	}
	for k, i := range read {
		s := &found.Hits[i].Scores
		if rated := readRelevance(readings[k], s.Relevance); !math.IsNaN(rated) {
			s.Relevance = rated
		}
	}
	return nil
}
