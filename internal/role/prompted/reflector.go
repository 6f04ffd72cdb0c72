package prompted

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// reflectionReply is the reply requested from the model.
type reflectionReply struct {
	Justification string                `json:"justification,omitempty"`
	Coverage      float64               `json:"coverage"`
	Status        role.ReflectionStatus `json:"status"`
}

var reflectionOutput = outputOf[reflectionReply]("reflection")

// Reflect implements role.Reflector. It judges whether the known statements suffice. It checks
// that the coverage of COMPLETED reaches the threshold.
func (r Judge) Reflect(ctx context.Context, c role.Caller, in role.ReflectInput) (role.Reflection, error) {
	threshold := in.Threshold
	if threshold <= 0 || threshold > 1 {
		threshold = role.DefaultThreshold
	}
	return typed[reflectionReply, role.Reflection]{
		job: job[reflectionReply]{
			Config: r.Config, task: role.ReflectorTask, out: reflectionOutput(), maxTokens: 300,
			write: writeReflection(in, threshold),
			check: func(r *reflectionReply) []string {
				if r.Coverage < 0 || r.Coverage > 1 {
					return []string{fmt.Sprintf("the coverage is %v, not between 0 and 1", r.Coverage)}
				}
				return nil
			},
		},
		local: ifAny(r.Local != nil, func() (role.Reflection, error) { return r.Local.Reflect(ctx, c, in) }),
		cautious: func(o role.Outcome) role.Reflection {
			return role.Reflection{Status: role.IncompleteStatus, Justification: "the reflector failed: " + o.Failure, Threshold: threshold, Outcome: o}
		},
		finish: func(reply reflectionReply, outcome role.Outcome) role.Reflection {
			out := role.Reflection{
				Status: reply.Status, Justification: shorten(visible.Line(reply.Justification), 500), Coverage: reply.Coverage, Threshold: threshold, Outcome: outcome,
			}
			switch {
			case out.Status == role.CompletedStatus && len(in.Known) == 0:
				out.Status, out.Coverage = role.IncompleteStatus, 0
				out.Justification = "nothing is known yet"
			case out.Status == role.CompletedStatus && out.Coverage < threshold:
				out.Status = role.IncompleteStatus
				out.Justification = fmt.Sprintf("%.0f%% of the question is answered; %.0f%% is needed: %s", 100*out.Coverage, 100*threshold, out.Justification)
			}
			return out
		},
	}.do(ctx, c)
}

// writeReflection shows the known statements, as many of the first ones as fit.
func writeReflection(in role.ReflectInput, threshold float64) func(prompt, int) (string, []string, bool) {
	return fitting(len(in.Known), "known statements", func(k int) any {
		return map[string]any{
			"Question": in.Question, "Known": strings.Join(in.Known[:k], "\n"), "Open": strings.Join(in.Open, "\n"),
			"Rounds": in.Rounds, "Threshold": threshold,
		}
	})
}
