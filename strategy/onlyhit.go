package strategy

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/role"
)

// minLead is the lead in relevance over the next hit that a hit needs to be read alone by a
// generator.
const minLead = 0.1

// onlyHit returns the only hit that a model is to read, if Limits.Alone sets a threshold for it:
// there must be one sufficient sub-question, whose best hit reaches the threshold and is clearly
// ahead of the others. There is no such hit for a question that compares things or asks for
// several.
func (e Env) onlyHit(found []subQuestion) (hit assay.Hit, ok bool) {
	isSet := e.Limits.Alone > 0 && e.Limits.Passages == 0 && e.writer() != ""
	if !isSet || len(found) != 1 || !found[0].sufficient() {
		return assay.Hit{}, false
	}
	hits := found[0].accepted(len(found[0].hits))
	if len(hits) < 2 {
		return assay.Hit{}, false // there is no other hit to leave out
	}
	slices.SortStableFunc(hits, byRelevance)
	if best := hits[0].Scores.Relevance; best < e.Limits.Alone || hits[1].Scores.Relevance > best-minLead {
		return assay.Hit{}, false
	}
	plan, err := local.Planner{}.Plan(context.Background(), nil, e.Question) // by grammar, without a model
	if err != nil || plan.Shape != role.Single {
		return assay.Hit{}, false
	}
	return hits[0], true
}
