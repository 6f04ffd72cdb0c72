package prompted

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay/role"
)

// goalsReply is the reply requested from the model.
type goalsReply struct {
	Goals []goalReply `json:"goals"`
}

type goalReply struct {
	Goal  string `json:"goal"`
	Needs []int  `json:"needs,omitempty"` // from 1
}

var goalsOutput = outputOf[goalsReply]("goals")

// Plan implements role.Actor. Goals that cannot be used are left out with a note.
func (a Actor) Plan(ctx context.Context, c role.Caller, question string) (role.Plan, error) {
	return typed[goalsReply, role.Plan]{
		job: job[goalsReply]{
			Config: a.Config, task: role.ActorPlanTask, out: goalsOutput(), maxTokens: 500,
			write: fitting(0, "", func(int) any { return map[string]any{"Question": question} }),
			check: func(r *goalsReply) []string { return checkGoals(question, r.Goals) },
			salvage: func(r *goalsReply) ([]string, bool) {
				n := len(r.Goals)
				r.Goals = usableGoals(question, r.Goals)
				return []string{fmt.Sprintf("dropped %d of %d goals of the plan: empty, too long, repeated or too many", n-len(r.Goals), n)}, len(r.Goals) > 0
			},
		},
		local: ifAny(a.Local != nil, func() (role.Plan, error) { return a.Local.Plan(ctx, c, question) }),
		cautious: func(o role.Outcome) role.Plan {
			return role.Plan{Shape: role.Single, SubQuestions: []role.SubQuestion{{Text: question}}, Outcome: o}
		},
		finish: func(reply goalsReply, outcome role.Outcome) role.Plan {
			plan := role.Plan{Shape: role.Single, Outcome: outcome}
			for i, g := range reply.Goals {
				sub := role.SubQuestion{Text: line(g.Goal)}
				for _, n := range g.Needs {
					if n >= 1 && n <= i && !slices.Contains(sub.Needs, n-1) {
						sub.Needs = append(sub.Needs, n-1)
					}
				}
				plan.SubQuestions = append(plan.SubQuestions, sub)
				switch {
				case len(sub.Needs) > 0:
					plan.Shape = role.Chain
				case i > 0 && plan.Shape == role.Single:
					plan.Shape = role.Conjunction
				}
			}
			if len(plan.SubQuestions) == 1 {
				plan.SubQuestions[0].Text = question // the user's own wording
			}
			return plan
		},
	}.do(ctx, c)
}

// checkGoals returns the problems of goals.
func checkGoals(question string, goals []goalReply) []string {
	var problems []string
	if len(goals) == 0 {
		problems = append(problems, "there are no goals")
	}
	if len(usableGoals(question, goals)) < len(goals) {
		problems = append(problems, fmt.Sprintf("a goal is empty, too long or repeated, or there are more than %d", maxParts))
	}
	for i, g := range goals {
		for _, n := range g.Needs {
			if n < 1 || n > i {
				problems = append(problems, fmt.Sprintf("goal %d needs goal %d, which is not an earlier one", i+1, n))
			}
		}
	}
	return problems
}

// usableGoals returns the goals that can be used. If one is left out, the goals lose their needs,
// whose numbers no longer hold.
func usableGoals(question string, goals []goalReply) []goalReply {
	var kept []goalReply
	most := max(maxQuery, len(question))
	for _, g := range goals {
		same := slices.ContainsFunc(kept, func(o goalReply) bool { return strings.EqualFold(line(o.Goal), line(g.Goal)) })
		if query(g.Goal) != "" && len(g.Goal) <= most && !same && len(kept) < maxParts {
			kept = append(kept, g)
		}
	}
	if len(kept) < len(goals) {
		for i := range kept {
			kept[i].Needs = nil
		}
	}
	return kept
}

// selfCritiqueReply is the reply requested from the model.
type selfCritiqueReply struct {
	Missing    []string `json:"missing"`
	Next       []string `json:"next_searches"`
	Covered    []int    `json:"covered,omitempty"` // from 1
	Revised    []string `json:"revised,omitempty"`
	Sufficient bool     `json:"sufficient"`
}

var selfCritiqueOutput = outputOf[selfCritiqueReply]("self_critique")

// maxNext is the number of searches that a self-critique may suggest.
const maxNext = 3

// Critique implements role.Actor. If something is missing, the results are not sufficient. Without
// results the model is not asked.
func (a Actor) Critique(ctx context.Context, c role.Caller, in role.ActInput) (role.SelfCritique, error) {
	if len(in.Found) == 0 {
		return openCritique(in, role.Outcome{}), nil
	}
	plan := in.Current()
	return typed[selfCritiqueReply, role.SelfCritique]{
		job: job[selfCritiqueReply]{
			Config: a.Config, task: role.ActorCritiqueTask, out: selfCritiqueOutput(), maxTokens: 500,
			write: writeCritique(in, plan),
			check: func(r *selfCritiqueReply) []string {
				problems := unknown("goal", r.Covered, upTo(len(plan)))
				if len(r.Next) > maxNext || len(r.Revised) > maxParts {
					problems = append(problems, fmt.Sprintf("there are %d searches and %d goals; the limits are %d and %d", len(r.Next), len(r.Revised), maxNext, maxParts))
				}
				for _, text := range slices.Concat(r.Next, r.Revised) {
					problems = append(problems, tooLong(text, maxQuery)...)
				}
				return problems
			},
			salvage: func(r *selfCritiqueReply) ([]string, bool) {
				long := func(text string) bool { return len(tooLong(text, maxQuery)) > 0 }
				r.Covered, r.Sufficient = known(r.Covered, upTo(len(plan))), false
				r.Next, r.Revised = slices.DeleteFunc(r.Next, long), nil
				return []string{"the model's critique named unknown goals, or had too many or too long searches or goals; they were dropped, and it does not count as sufficient"}, true
			},
		},
		local:    ifAny(a.Local != nil, func() (role.SelfCritique, error) { return a.Local.Critique(ctx, c, in) }),
		cautious: func(o role.Outcome) role.SelfCritique { return openCritique(in, o) },
		finish: func(reply selfCritiqueReply, outcome role.Outcome) role.SelfCritique {
			return critiqueOf(reply, outcome, in)
		},
	}.do(ctx, c)
}

// openCritique is the critique of results that answer nothing, or that could not be judged.
func openCritique(in role.ActInput, o role.Outcome) role.SelfCritique {
	out := role.SelfCritique{Missing: []string{}, NextSearches: []string{}, Covered: []int{}, Outcome: o}
	for _, g := range in.Current() {
		if !g.Done {
			out.Missing = append(out.Missing, g.Text)
		}
	}
	if len(out.Missing) == 0 {
		out.Missing = append(out.Missing, in.Question)
	}
	return out
}

// critiqueOf converts a reply to the critique.
func critiqueOf(r selfCritiqueReply, outcome role.Outcome, in role.ActInput) role.SelfCritique {
	k := role.SelfCritique{Sufficient: r.Sufficient, Missing: phrases(r.Missing), NextSearches: []string{}, Covered: []int{}, Outcome: outcome}
	if len(k.Missing) > 0 {
		k.Sufficient = false
	}
	for _, n := range r.Covered {
		k.Covered = append(k.Covered, n-1)
	}
	if k.Sufficient {
		return k
	}
	for _, text := range r.Next[:min(len(r.Next), maxNext)] {
		if q := query(text); q != "" && !slices.Contains(k.NextSearches, q) {
			k.NextSearches = append(k.NextSearches, q)
		}
	}
	for _, text := range r.Revised {
		if text = query(text); text != "" && !slices.Contains(k.Revised, text) {
			k.Revised = append(k.Revised, text)
		}
	}
	if len(k.Missing) == 0 {
		k.Missing = openCritique(in, role.Outcome{}).Missing
	}
	return k
}

// writeCritique shows the plan, the calls and the results, as many of the best as fit.
func writeCritique(in role.ActInput, plan []role.Goal) func(prompt, int) (string, []string, bool) {
	made := slices.Clone(in.Made)
	for _, s := range in.Steps {
		made = append(made, s.Uses...)
	}
	passages := make([]passage, len(in.Found))
	for i, ev := range in.Found {
		passages[i] = passageOf(ev.Number, ev.Hit, ev.Hit.Text)
	}
	return reading(passages, func(shown []passage) any {
		return map[string]any{"Question": in.Question, "Plan": planText(plan), "Made": usesText(made), "Passages": shown}
	})
}

// planText lists goals, one per line.
func planText(plan []role.Goal) string {
	lines := make([]string, len(plan))
	for i, g := range plan {
		state := "open"
		if g.Done {
			state = "done"
		}
		lines[i] = fmt.Sprintf("%d. [%s] %s", i+1, state, shorten(line(g.Text), maxQuery))
		if len(g.Needs) > 0 && !g.Done {
			needs := make([]int, len(g.Needs))
			for j, n := range g.Needs {
				needs[j] = n + 1
			}
			lines[i] += fmt.Sprintf(" (after %s)", listed(needs))
		}
	}
	return strings.Join(lines, "\n")
}

// critiqueText is a critique in words for the actor's next turn, with the plan after it. It is ""
// if there is none.
func critiqueText(k *role.SelfCritique, plan []role.Goal) string {
	if k == nil {
		return ""
	}
	var lines []string
	add := func(name string, items []string) {
		for _, text := range items {
			lines = append(lines, name+": "+shorten(line(text), maxPhrase))
		}
	}
	if len(plan) > 0 {
		lines = append(lines, "plan:", planText(plan))
	}
	add("missing", k.Missing)
	add("next search", k.NextSearches)
	return strings.Join(lines, "\n")
}

// upTo returns the numbers from 1 to n.
func upTo(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i + 1
	}
	return numbers
}
