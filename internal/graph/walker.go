package graph

import (
	"cmp"
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/entity"
	"github.com/assay-rag/assay/internal/index"
)

// An Index provides the graph of the passages that a search may find. *index.Searcher is one.
type Index interface {
	// Graph returns the graph of the passages that access may see, that are in q.Collections and
	// that q.Filter keeps.
	Graph(ctx context.Context, access assay.Access, q assay.Query) (index.Graph, error)
}

// A Walker walks over the graph of an index. It is safe for concurrent use.
type Walker struct {
	index   Index
	options Options
}

// farPower and farDamping are the settings of a far walk (assay.WalkFar), which starts almost only
// at the best seeds and continues longer. With the weight that package retrieve gives to the walk,
// nDCG@10 and the rate of all gold in the first ten are 0.846 and 0.80 on musique-train100 (near
// walk: 0.826 and 0.76), 0.929 and 0.97 on hotpotqa-train100 (near: 0.936 and 0.99), and 0.819 and
// 0.80 on anthropic-docs (near: 0.837 and 0.83). Starting more evenly from ten seeds (power 3) is
// worse on all of them.
const (
	farPower   = 20
	farDamping = 0.9
)

// New returns a walker over an index.
func New(ix Index, options Options) *Walker { return &Walker{ix, options} }

// Walk runs the function Walk on the graph of the passages that a search for q by access may find.
// It starts from the seeds, best first, and from the entities of q's text. The passages of q.From
// must come first among the seeds. They are used in addition to the usual number of seeds.
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
