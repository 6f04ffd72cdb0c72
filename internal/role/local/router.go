package local

import (
	"context"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/role"
)

// manyWords is the least number of content words of a very long question.
const manyWords = 14

// several matches questions for more than one thing, or for one of many.
var several = lazyregexp.New(`(?i)\b(?:all|each|every|list|several|both|most|least|same|\pL+est)\b`)

// Route implements role.Router. It estimates the work for a question. Questions that the planner
// splits are complex. Questions for several things, very long and very short ones are moderate.
// Others are simple. It returns an error only when ctx has ended.
func (Planner) Route(ctx context.Context, c role.Caller, question string) (role.Route, error) {
	plan, err := Planner{}.Plan(ctx, c, question)
	if err != nil {
		return role.Route{}, err
	}
	words := len(contentWords(strings.TrimSpace(question)))
	switch {
	case plan.Shape == role.Comparison:
		return role.Route{Complexity: role.Complex, Reason: "it is a comparison"}, nil
	case plan.Shape == role.Conjunction:
		return role.Route{Complexity: role.Complex, Reason: "it has several parts"}, nil
	case plan.Shape == role.Chain:
		return role.Route{Complexity: role.Complex, Reason: "it describes an entity without naming it"}, nil
	case words < 2:
		return role.Route{Complexity: role.Moderate, Reason: "it is too short to tell its topic"}, nil
	case several.MatchString(question):
		return role.Route{Complexity: role.Moderate, Reason: "it asks for several things, or for one out of many"}, nil
	case words >= manyWords:
		return role.Route{Complexity: role.Moderate, Reason: "it is long; one passage may not cover all of it"}, nil
	}
	return role.Route{Complexity: role.Simple, Reason: "it is a single question"}, nil
}
