package graph

import (
	"cmp"
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

// A far walk (assay.WalkFar) starts at the best seeds almost alone and goes on longer.
// With the weight that retrieve gives it nDCG@10 and all gold in the first ten are 0.846
// and 0.80 on musique-train100, where a near one has 0.826 and 0.76; on
// hotpotqa-train100 0.929 and 0.97, near 0.936 and 0.99; on anthropic-docs 0.819 and
// 0.80, near 0.837 and 0.83. To start from ten seeds more evenly (power 3) is worse on
// all of them.
const (
	farPower   = 20
	farDamping = 0.9
)

// New returns a walker over an index.
func New(ix Index, options Options) *Walker { return &Walker{ix, options} }

// Walk returns the passages that the seeds, best first, and the entities of q's text
// lead to, as the function Walk does, of those that a search for q by access may
// find. What q.From names, which is to come first, is started from beside as many others
// as without it.
func (w *Walker) Walk(ctx context.Context, access assay.Access, q assay.Query, seeds []Seed) ([]Score, error) {
	g, err := w.index.Graph(ctx, access, q)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	options := w.options
	options.Seeds = cmp.Or(options.Seeds, defaultSeeds) + len(q.From)
	if q.Walk == assay.WalkFar {
		options.Power, options.Damping = farPower, farDamping
	}
	var finder entity.Finder
	scores, err := Walk(ctx, g, seeds, finder.Question(q.Text, ""), options)
	if err != nil {
		return nil, fmt.Errorf("walk from what was found for %q: %w", q.Text, err)
	}
	return scores, nil
}
