package graph

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/index"
	"github.com/assay-rag/assay/internal/entity"
)

// An Index has a graph of what a search may find; *index.Searcher is one.
type Index interface {
	// Graph returns the graph of the passages that access may see, that are in
	// q.Collections and that q.Filter keeps.
	Graph(ctx context.Context, access assay.Access, q assay.Query) (*index.Graph, error)
}

// A Walker walks over the graph of an index. It is safe for concurrent use.
type Walker struct {
	index   Index
	options Options
}

// New returns a walker over an index.
func New(ix Index, options Options) *Walker { return &Walker{ix, options} }

// Walk returns the passages that the seeds, best first, and the entities of q's text
// lead to, as the function Walk does, of those that a search for q by access may
// find.
func (w *Walker) Walk(ctx context.Context, access assay.Access, q assay.Query, seeds []Seed) ([]Score, error) {
	g, err := w.index.Graph(ctx, access, q)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	var finder entity.Finder
	scores, err := Walk(ctx, g, seeds, finder.Question(q.Text, ""), w.options)
	if err != nil {
		return nil, fmt.Errorf("walk from what was found for %q: %w", q.Text, err)
	}
	return scores, nil
}
