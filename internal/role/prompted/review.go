package prompted

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// Judge decides whether a draft can be published. An empty draft, and an ACCEPT with something to
// revise, become REVISE.
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

// Judge implements role.Judge.
func (j Judge) Judge(ctx context.Context, c role.Caller, in role.DraftInput) (role.Judgement, error) {
	reply, outcome, err := ask(ctx, c, job[judgementReply]{
		Config: j.Config, role: role.JudgeRole, out: judgementOutput(), maxTokens: 500,
		write: readingDraft(in),
		check: func(r *judgementReply) []string {
			if r.Verdict == role.Revise && len(phrases(r.Revise)) == 0 {
				return []string{`the verdict is "REVISE", but nothing is said to revise`}
			}
			return nil
		},
		salvage: func(*judgementReply) ([]string, bool) {
			return []string{"the model wants the draft revised and does not say what"}, true
		},
	})
	behind := stander[role.Judgement]{
		role:    role.JudgeRole,
		outcome: func(j *role.Judgement) *role.Outcome { return &j.Outcome },
		cautious: func(o role.Outcome) role.Judgement {
			reason := "the judge failed: " + o.Failure
			return role.Judgement{Verdict: role.Revise, Revise: []string{reason}, Reason: reason, Outcome: o}
		},
	}
	if j.Local != nil {
		behind.local = func() (role.Judgement, error) { return j.Local.Judge(ctx, c, in) }
	}
	if out, err, done := behind.instead(ctx, outcome, err); done {
		return out, err
	}
	out := role.Judgement{Verdict: reply.Verdict, Revise: phrases(reply.Revise), Reason: shorten(visible.Line(reply.Reason), 500), Outcome: outcome}
	if len(in.Draft.Statements) == 0 {
		out.Revise = append(out.Revise, "the draft says nothing")
	}
	if len(out.Revise) > 0 {
		out.Verdict = role.Revise
	} else if out.Verdict == role.Revise {
		out.Revise = []string{in.Question}
	}
	return out, nil
}

// Critic reviews a draft by fixed criteria.
type Critic struct {
	Config
	Local role.Critic // used if the provider fails; nil: the cautious output
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

// Criticise implements role.Critic.
func (k Critic) Criticise(ctx context.Context, c role.Caller, in role.DraftInput) (role.Critique, error) {
	wrong := func(r remarkReply) bool { return r.Statement < 0 || r.Statement > len(in.Draft.Statements) }
	reply, outcome, err := ask(ctx, c, job[critiqueReply]{
		Config: k.Config, role: role.CriticRole, out: critiqueOutput(), maxTokens: 800,
		write: readingDraft(in),
		check: func(r *critiqueReply) []string {
			var problems []string
			for _, x := range r.Remarks {
				if wrong(x) {
					problems = append(problems, fmt.Sprintf("there is no statement %d; there are %d", x.Statement, len(in.Draft.Statements)))
				}
			}
			return problems
		},
		salvage: func(r *critiqueReply) ([]string, bool) {
			n := len(r.Remarks)
			r.Remarks = slices.DeleteFunc(r.Remarks, wrong)
			return []string{fmt.Sprintf("%d remarks of the model are about statements that do not exist and are left out", n-len(r.Remarks))}, true
		},
	})
	behind := stander[role.Critique]{
		role:    role.CriticRole,
		outcome: func(k *role.Critique) *role.Outcome { return &k.Outcome },
		cautious: func(o role.Outcome) role.Critique {
			return role.Critique{Grounded: role.Fair, Complete: role.Fair, Relevant: role.Fair, Clear: role.Fair, Remarks: []role.Remark{}, Outcome: o}
		},
	}
	if k.Local != nil {
		behind.local = func() (role.Critique, error) { return k.Local.Criticise(ctx, c, in) }
	}
	if out, err, done := behind.instead(ctx, outcome, err); done {
		return out, err
	}
	out := role.Critique{Grounded: reply.Grounded, Complete: reply.Complete, Relevant: reply.Relevant, Clear: reply.Clear, Remarks: []role.Remark{}, Outcome: outcome}
	for _, x := range reply.Remarks {
		out.Remarks = append(out.Remarks, role.Remark{Statement: x.Statement - 1, Flaw: x.Flaw, Advice: shorten(visible.Line(x.Advice), maxPhrase)})
	}
	return out, nil
}

// SupportGrader grades the support of a draft's statements. A statement without evidence is not
// supported. A statement whose grade is unreadable is partly supported. SupportGrader ignores the
// domain.
type SupportGrader struct {
	Config                    // Domain is not used
	Local  role.SupportGrader // used if the provider fails; nil: the cautious output
}

type supportsReply struct {
	Grades []supportReply `json:"grades"`
}

type supportReply struct {
	Statement int          `json:"statement"` // from 1
	Grade     role.Support `json:"grade"`
}

var supportsOutput = outputOf[supportsReply]("support_grades")

// GradeSupport implements role.SupportGrader.
func (g SupportGrader) GradeSupport(ctx context.Context, c role.Caller, in role.DraftInput) (role.SupportGrades, error) {
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
	reply, outcome, err := ask(ctx, c, job[supportsReply]{
		Config: g.Config, role: role.SupportGraderRole, out: supportsOutput(), maxTokens: 28*len(all) + 80,
		write: readingDraft(in),
		check: func(r *supportsReply) []string { return eachOnce("statement", mapped(r.Grades, number), all) },
		salvage: func(r *supportsReply) ([]string, bool) {
			r.Grades = onceOnly(r.Grades, number, all)
			return []string{fmt.Sprintf("the model graded %d of %d statements; the others are partly supported", len(r.Grades), len(all))}, len(r.Grades) > 0
		},
	})
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
	behind := stander[role.SupportGrades]{
		role:     role.SupportGraderRole,
		outcome:  func(g *role.SupportGrades) *role.Outcome { return &g.Outcome },
		cautious: func(o role.Outcome) role.SupportGrades { return cited(supportsReply{}, o) },
	}
	if g.Local != nil {
		behind.local = func() (role.SupportGrades, error) { return g.Local.GradeSupport(ctx, c, in) }
	}
	if stood, err, done := behind.instead(ctx, outcome, err); done {
		return stood, err
	}
	return cited(reply, outcome), nil
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
