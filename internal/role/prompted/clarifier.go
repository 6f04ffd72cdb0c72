package prompted

import (
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay/role"
)

// clarityReply is the reply requested from the model.
type clarityReply struct {
	Reason    string `json:"reason,omitempty"`
	Ambiguous bool   `json:"ambiguous"`
	Meanings  []int  `json:"meanings"`
}

var clarityOutput = outputOf[clarityReply]("clarity")

// shownMeanings is the number of meanings that a model is shown. shownTurns is the number of the
// last conversation turns that it is shown.
const (
	shownMeanings = 8
	shownTurns    = 2
)

// Clarify implements role.Clarifier. It decides whether a question is ambiguous by reading the
// search results. The model chooses by number among the meanings that it is shown. With fewer
// than two meanings the local role decides.
func (x Rewriter) Clarify(ctx context.Context, c role.Caller, in role.ClarifyInput) (role.Clarity, error) {
	if len(in.Means) < 2 && x.Local != nil {
		return x.Local.Clarify(ctx, c, in)
	}
	var given []int
	return typed[clarityReply, role.Clarity]{
		job: job[clarityReply]{
			Config: x.Config, task: role.ClarifierTask, out: clarityOutput(), maxTokens: 250,
			write: writeClarifying(in, &given),
			check: func(r *clarityReply) []string {
				problems := unknown("meaning", r.Meanings, given)
				if n := len(known(r.Meanings, given)); r.Ambiguous && n < 2 {
					problems = append(problems, fmt.Sprintf("it is marked ambiguous with %d meanings; at least 2 are needed", n))
				}
				return problems
			},
			salvage: func(r *clarityReply) ([]string, bool) {
				r.Meanings = known(r.Meanings, given)
				return []string{"the model named meanings that do not exist"}, !r.Ambiguous || len(r.Meanings) > 1
			},
		},
		local:    ifAny(x.Local != nil, func() (role.Clarity, error) { return x.Local.Clarify(ctx, c, in) }),
		cautious: func(o role.Outcome) role.Clarity { return role.Clarity{Readings: []int{}, Outcome: o} },
		finish: func(reply clarityReply, outcome role.Outcome) role.Clarity {
			out := role.Clarity{Ambiguous: reply.Ambiguous, Readings: []int{}, Outcome: outcome}
			if out.Ambiguous {
				for _, n := range known(reply.Meanings, given) {
					out.Readings = append(out.Readings, n-1)
				}
				slices.Sort(out.Readings)
			}
			return out
		},
	}.do(ctx, c)
}

// writeClarifying shows the best passage of each meaning under the meaning's name and number, and
// stores the shown numbers in given.
func writeClarifying(in role.ClarifyInput, given *[]int) func(prompt, int) (string, []string, bool) {
	var meanings []passage
	for i, m := range in.Means[:min(len(in.Means), shownMeanings)] {
		if len(m.Hits) == 0 || m.Hits[0] < 0 || m.Hits[0] >= len(in.Hits) {
			continue
		}
		meanings = append(meanings, passage{number: i + 1, head: m.Name, text: in.Hits[m.Hits[0]].Text})
	}
	var turns []string
	for _, t := range in.History[max(0, len(in.History)-shownTurns):] {
		turns = append(turns, "Question: "+shorten(line(t.Question), shownAnswer)+"\nAnswer: "+shorten(line(t.Answer), shownAnswer))
	}
	return reading(meanings, func(shown []passage) any {
		*given = numbersOf(shown)
		return map[string]any{"Question": in.Question, "Open": in.Open, "Passages": shown, "History": turns}
	})
}
