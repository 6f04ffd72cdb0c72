package prompted

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// revisionReply is the reply requested from the model.
type revisionReply struct {
	Reason   string                `json:"reason,omitempty"`
	Decision role.RevisionDecision `json:"decision"`
	Parts    []revisedReply        `json:"sub_questions,omitempty"`
}

type revisedReply struct {
	Text  string `json:"text"`
	Needs []int  `json:"needs,omitempty"` // from 1, the searched ones first
}

var revisionOutput = outputOf[revisionReply]("revision")

// Revise implements role.Planner. A reply that cannot be used keeps the plan.
func (p Planner) Revise(ctx context.Context, c role.Caller, in role.RevisionInput) (role.Revision, error) {
	return typed[revisionReply, role.Revision]{
		job: job[revisionReply]{
			Config: p.Config, task: role.ReviserTask, out: revisionOutput(), maxTokens: 500,
			write: writeRevision(in),
			check: func(r *revisionReply) []string { return checkRevision(in, r) },
			salvage: func(r *revisionReply) ([]string, bool) {
				r.Decision, r.Parts = role.Keep, nil
				return []string{"the model's revised plan cannot be searched; the plan is kept"}, true
			},
		},
		local: ifAny(p.Local != nil, func() (role.Revision, error) { return p.Local.Revise(ctx, c, in) }),
		cautious: func(o role.Outcome) role.Revision {
			return role.Revision{Decision: role.Keep, Reason: "the planner failed: " + o.Failure, Outcome: o}
		},
		finish: func(reply revisionReply, outcome role.Outcome) role.Revision {
			out := role.Revision{Decision: reply.Decision, Reason: shorten(visible.Line(reply.Reason), maxPhrase), Outcome: outcome}
			if reply.Decision == role.Replace {
				out.SubQuestions = revised(in, reply.Parts)
			}
			return out
		},
	}.do(ctx, c)
}

// writeRevision shows the plan with the results of as many of the latest hops as fit.
func writeRevision(in role.RevisionInput) func(prompt, int) (string, []string, bool) {
	n := len(in.Done)
	return fitting(n, "searched sub-questions with what they found", func(k int) any {
		done := make([]string, n)
		for i, h := range in.Done {
			done[i] = fmt.Sprintf("%d. %s\nAnswers: %s", i+1, line(h.Question), line(strings.Join(h.Answers, "; ")))
			if i >= n-k {
				done[i] += "\nFound: " + shorten(line(strings.Join(h.Found, " / ")), shownBrought)
			}
		}
		remaining := make([]string, len(in.Remaining))
		for i, sub := range in.Remaining {
			remaining[i] = fmt.Sprintf("%d. %s", n+i+1, line(sub.Text))
		}
		return map[string]any{"Question": in.Question, "Done": done, "Remaining": strings.Join(remaining, "\n")}
	})
}

// checkRevision returns the problems of a revision.
func checkRevision(in role.RevisionInput, r *revisionReply) []string {
	if r.Decision != role.Replace {
		return nil
	}
	var problems []string
	if n := len(r.Parts); n < 1 || n > maxParts {
		problems = append(problems, fmt.Sprintf("there are %d sub-questions; want 1 to %d", n, maxParts))
	}
	for i, part := range r.Parts {
		number := len(in.Done) + i + 1
		if query(part.Text) == "" {
			problems = append(problems, fmt.Sprintf("sub-question %d has no text", number))
		}
		problems = append(problems, tooLong(part.Text, max(maxQuery, len(in.Question)))...)
		for _, n := range append(slices.Clone(part.Needs), places(in.Question, part.Text)...) {
			if n < 1 || n >= number {
				problems = append(problems, fmt.Sprintf("sub-question %d needs %d, which is not an earlier sub-question", number, n))
			}
		}
	}
	return problems
}

// revised converts the sub-questions of a valid reply.
func revised(in role.RevisionInput, parts []revisedReply) []role.SubQuestion {
	subs := make([]role.SubQuestion, len(parts))
	for i, part := range parts {
		subs[i].Text = line(part.Text)
		for _, n := range append(slices.Clone(part.Needs), places(in.Question, part.Text)...) {
			if !slices.Contains(subs[i].Needs, n-1) {
				subs[i].Needs = append(subs[i].Needs, n-1)
			}
		}
	}
	return subs
}
