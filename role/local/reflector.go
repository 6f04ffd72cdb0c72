package local

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay/role"
)

// Reflector says whether known statements answer a question by how many of its words
// they speak of: every name and number, what the question word asks for, and the
// threshold's share of the rest.
type Reflector struct{}

// Reflect implements role.Reflector. It returns an error only when ctx has ended.
func (Reflector) Reflect(ctx context.Context, _ role.Caller, in role.ReflectInput) (role.Reflection, error) {
	if err := ctx.Err(); err != nil {
		return role.Reflection{}, err
	}
	threshold := in.Threshold
	if threshold <= 0 || threshold > 1 {
		threshold = role.DefaultThreshold
	}
	q := read(in.Question, nil)
	c := covered(q, in.Known)
	out := role.Reflection{Status: role.IncompleteStatus, Coverage: c.share, Threshold: threshold}
	switch {
	case len(in.Known) == 0:
		out.Coverage, out.Justification = 0, "nothing is known yet"
	case len(q.terms) == 0:
		out.Justification = "the question has no words to look for"
	case len(c.names) > 0:
		out.Justification = "nothing known speaks of " + strings.Join(c.names, ", ")
	case c.lacks != anything:
		out.Justification = fmt.Sprintf("the question asks for %s, and nothing known has one", c.lacks)
	case c.share < threshold:
		out.Justification = fmt.Sprintf("what is known speaks of %.0f%% of the question, %.0f%% are wanted; open: %s", 100*c.share, 100*threshold, strings.Join(c.missing, ", "))
	default:
		out.Status = role.CompletedStatus
		out.Justification = fmt.Sprintf("what is known speaks of %.0f%% of the question", 100*c.share)
	}
	return out, nil
}
