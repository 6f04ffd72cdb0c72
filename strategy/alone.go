package strategy

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

// ahead is by how much more relevant than the next a hit has to be that a generator reads
// alone.
const ahead = 0.1

// alone returns the hit that a model is to read alone, where the limits say from which
// relevance one is: what suffices rests on one finding, whose best hit is that relevant
// and clearly ahead of the others. A question that compares, or asks for several things,
// has none.
func (e Env) alone(found []finding) (hit assay.Hit, ok bool) {
	if e.Limits.Alone == 0 || e.Limits.Passages > 0 || e.writer() == "" || len(found) != 1 || !found[0].sufficient() {
		return assay.Hit{}, false
	}
	hits := found[0].accepted(len(found[0].hits))
	if len(hits) < 2 {
		return assay.Hit{}, false // there is none to leave out
	}
	slices.SortStableFunc(hits, byRelevance)
	if best := hits[0].Scores.Relevance; best < e.Limits.Alone || hits[1].Scores.Relevance > best-ahead {
		return assay.Hit{}, false
	}
	plan, err := local.Planner{}.Plan(context.Background(), nil, e.Question) // by grammar: it asks nobody
	if err != nil || plan.Shape != role.Single {
		return assay.Hit{}, false
	}
	return hits[0], true
}
