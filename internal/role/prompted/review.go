package prompted

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// Judge judges hits, drafts and answers, each task with its own template and output.
type Judge struct {
	Config
	Local role.Judge // used if the provider fails; nil: the cautious output
}

// judgementReply is the reply requested from the model.
type judgementReply struct {
	Reason  string            `json:"reason,omitempty"`
	Revise  []string          `json:"revise,omitempty"`
	Verdict role.JudgeVerdict `json:"verdict"`
}

var judgementOutput = outputOf[judgementReply]("judgement")

// JudgeDraft implements role.DraftJudge. An empty draft, and an ACCEPT with something to revise,
// become REVISE.
func (j Judge) JudgeDraft(ctx context.Context, c role.Caller, in role.DraftInput) (role.Judgement, error) {
	return typed[judgementReply, role.Judgement]{
		job: job[judgementReply]{
			Config: j.Config, task: role.JudgeRole, out: judgementOutput(), maxTokens: 500,
			write: readingDraft(in),
			check: func(r *judgementReply) []string {
				if r.Verdict == role.Revise && len(phrases(r.Revise)) == 0 {
					return []string{`the verdict is "REVISE", but "revise" is empty`}
				}
				return nil
			},
			salvage: func(*judgementReply) ([]string, bool) {
				return []string{"the model wants the draft revised without naming a flaw"}, true
			},
		},
		local: ifAny(j.Local != nil, func() (role.Judgement, error) { return j.Local.JudgeDraft(ctx, c, in) }),
		cautious: func(o role.Outcome) role.Judgement {
			reason := "the judge failed: " + o.Failure
			return role.Judgement{Verdict: role.Revise, Revise: []string{reason}, Reason: reason, Outcome: o}
		},
		finish: func(reply judgementReply, outcome role.Outcome) role.Judgement {
			out := role.Judgement{Verdict: reply.Verdict, Revise: phrases(reply.Revise), Reason: shorten(visible.Line(reply.Reason), 500), Outcome: outcome}
			if len(in.Draft.Statements) == 0 {
				out.Revise = append(out.Revise, "the draft is empty")
			}
			if len(out.Revise) > 0 {
				out.Verdict = role.Revise
			} else if out.Verdict == role.Revise {
				out.Revise = []string{in.Question}
			}
			return out
		},
	}.do(ctx, c)
}

// critiqueReply is the reply requested from the model.
type critiqueReply struct {
	Remarks  []remarkReply `json:"remarks,omitempty"`
	Grounded role.Rating   `json:"grounded"`
	Complete role.Rating   `json:"complete"`
	Relevant role.Rating   `json:"relevant"`
	Clear    role.Rating   `json:"clear"`
}

type remarkReply struct {
	Statement int       `json:"statement"` // from 1; 0 means the draft
	Flaw      role.Flaw `json:"flaw"`
	Advice    string    `json:"advice"`
}

var critiqueOutput = outputOf[critiqueReply]("critique")

// Criticise implements role.Critic. It reviews a draft by fixed criteria.
func (k Judge) Criticise(ctx context.Context, c role.Caller, in role.DraftInput) (role.Critique, error) {
	wrong := func(r remarkReply) bool { return r.Statement < 0 || r.Statement > len(in.Draft.Statements) }
	return typed[critiqueReply, role.Critique]{
		job: job[critiqueReply]{
			Config: k.Config, task: role.CriticTask, out: critiqueOutput(), maxTokens: 800,
			write: readingDraft(in),
			check: func(r *critiqueReply) []string {
				var problems []string
				for _, x := range r.Remarks {
					if wrong(x) {
						problems = append(problems, fmt.Sprintf("statement %d does not exist; there are %d", x.Statement, len(in.Draft.Statements)))
					}
				}
				return problems
			},
			salvage: func(r *critiqueReply) ([]string, bool) {
				n := len(r.Remarks)
				r.Remarks = slices.DeleteFunc(r.Remarks, wrong)
				return []string{fmt.Sprintf("dropped %d remarks of the model about statements that do not exist", n-len(r.Remarks))}, true
			},
		},
		local: ifAny(k.Local != nil, func() (role.Critique, error) { return k.Local.Criticise(ctx, c, in) }),
		cautious: func(o role.Outcome) role.Critique {
			return role.Critique{Grounded: role.Fair, Complete: role.Fair, Relevant: role.Fair, Clear: role.Fair, Remarks: []role.Remark{}, Outcome: o}
		},
		finish: func(reply critiqueReply, outcome role.Outcome) role.Critique {
			out := role.Critique{Grounded: reply.Grounded, Complete: reply.Complete, Relevant: reply.Relevant, Clear: reply.Clear, Remarks: []role.Remark{}, Outcome: outcome}
			for _, x := range reply.Remarks {
				out.Remarks = append(out.Remarks, role.Remark{Statement: x.Statement - 1, Flaw: x.Flaw, Advice: shorten(visible.Line(x.Advice), maxPhrase)})
			}
			return out
		},
	}.do(ctx, c)
}

type supportsReply struct {
	Grades []supportReply `json:"grades"`
}

type supportReply struct {
	Statement int          `json:"statement"` // from 1
	Grade     role.Support `json:"grade"`
}

var supportsOutput = outputOf[supportsReply]("support_grades")

// GradeSupport implements role.SupportGrader. It grades the support of a draft's statements. A
// statement without evidence is not supported. A statement whose grade is unreadable is partly
// supported. It ignores the domain.
func (g Judge) GradeSupport(ctx context.Context, c role.Caller, in role.DraftInput) (role.SupportGrades, error) {
	g.Domain = nil
	out := role.SupportGrades{Grades: slices.Repeat([]role.Support{role.PartlySupported}, len(in.Draft.Statements))}
	if len(out.Grades) == 0 {
		return out, nil
	}
	all := make([]int, len(out.Grades))
	for i := range all {
		all[i] = i + 1
	}
	number := func(x supportReply) int { return x.Statement }
	cited := func(reply supportsReply, o role.Outcome) role.SupportGrades {
		out.Outcome = o
		for _, x := range reply.Grades {
			out.Grades[x.Statement-1] = x.Grade
		}
		for i, s := range in.Draft.Statements {
			if len(s.Evidence) == 0 {
				out.Grades[i] = role.NotSupported
			}
		}
		return out
	}
	return typed[supportsReply, role.SupportGrades]{
		job: job[supportsReply]{
			Config: g.Config, task: role.SupportGraderTask, out: supportsOutput(), maxTokens: 28*len(all) + 80,
			write: readingDraft(in),
			check: func(r *supportsReply) []string { return eachOnce("statement", mapped(r.Grades, number), all) },
			salvage: func(r *supportsReply) ([]string, bool) {
				r.Grades = onceOnly(r.Grades, number, all)
				return []string{fmt.Sprintf("the model graded %d of %d statements; the others are partly supported", len(r.Grades), len(all))}, len(r.Grades) > 0
			},
		},
		local:    ifAny(g.Local != nil, func() (role.SupportGrades, error) { return g.Local.GradeSupport(ctx, c, in) }),
		cautious: func(o role.Outcome) role.SupportGrades { return cited(supportsReply{}, o) },
		finish: func(reply supportsReply, outcome role.Outcome) role.SupportGrades {
			return cited(reply, outcome)
		},
	}.do(ctx, c)
}

// readingDraft shows a draft, then the evidence that it cites, then the rest.
func readingDraft(in role.DraftInput) func(prompt, int) (string, []string, bool) {
	cited := map[int]bool{}
	var statements []labelled
	for i, s := range in.Draft.Statements {
		statements = append(statements, labelled{fmt.Sprintf("statement number=\"%d\" passages=\"%s\"", i+1, listed(s.Evidence)), s.Text})
		for _, n := range s.Evidence {
			cited[n] = true
		}
	}
	best, _ := contextOf(role.GenerateInput{Evidence: in.Evidence, Context: in.Context})
	slices.SortStableFunc(best, func(a, b passage) int {
		switch {
		case cited[a.number] == cited[b.number]:
			return 0
		case cited[a.number]:
			return -1
		}
		return 1
	})
	return reading(best, func(shown []passage) any {
		return map[string]any{"Question": in.Question, "Statements": statements, "Passages": shown, "Remarks": remarksOf(in.Critique)}
	})
}

// maxRemarks is the number of a critic's remarks that a prompt shows.
const maxRemarks = 12

// remarksOf lists a critic's ratings and remarks, one per line. It returns "" for a critic that
// failed.
func remarksOf(k *role.Critique) string {
	if k == nil || k.Failure != "" {
		return ""
	}
	lines := []string{fmt.Sprintf("grounded: %s; complete: %s; relevant: %s; clear: %s", k.Grounded, k.Complete, k.Relevant, k.Clear)}
	for _, r := range k.Remarks[:min(len(k.Remarks), maxRemarks)] {
		about := "the draft"
		if r.Statement >= 0 {
			about = fmt.Sprintf("statement %d", r.Statement+1)
		}
		lines = append(lines, fmt.Sprintf("%s: %s: %s", about, r.Flaw, shorten(line(r.Advice), maxPhrase)))
	}
	return strings.Join(lines, "\n")
}
