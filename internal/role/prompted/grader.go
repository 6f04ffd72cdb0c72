package prompted

import (
	"context"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
)

// Grader judges evidence by reading it. It reads all the hits whatever their relevance, because a
// text may answer the question without its words. Its cautious output is Insufficient.
type Grader struct {
	Config

	// Local grades if the provider fails, if no reply is usable and if there are no hits. It also
	// estimates the probability that the hits contain the answer, since the model's verdict alone
	// is not enough to answer, and reads answers if the model gives none. nil means the cautious output and no probability.
	Local role.Grader
}

// gradeReply is the reply requested from the model.
type gradeReply struct {
	Reason   string             `json:"reason,omitempty"`
	Relevant []int              `json:"relevant_chunks"`
	Missing  []string           `json:"missing,omitempty"`
	Verdict  assay.GradeVerdict `json:"verdict"`
	Answers  []answerReply      `json:"answers,omitempty"`
	Query    string             `json:"reformulated_query,omitempty"`
}

type answerReply struct {
	Text    string `json:"text"`
	Passage int    `json:"passage"`
}

var gradeOutput = outputOf[gradeReply]("grade")

// Grade implements role.Grader.
func (g Grader) Grade(ctx context.Context, c role.Caller, in role.GradeInput) (role.Grade, error) {
	if len(in.Hits) == 0 {
		return g.nothing(ctx, c, in)
	}
	var given []int
	j := job[gradeReply]{
		Config: g.Config, task: role.GraderRole, out: gradeOutput(), maxTokens: 600,
		write: reading(numbered(in.Hits), func(shown []passage) any {
			given = numbersOf(shown)
			return map[string]any{"Question": in.Question, "Tried": strings.Join(in.Tried, "\n"), "Passages": shown}
		}),
		check: func(r *gradeReply) []string {
			problems := unknown("passage", r.Relevant, given)
			if r.Verdict != assay.Insufficient && len(r.Relevant) == 0 {
				problems = append(problems, `the verdict is "`+string(r.Verdict)+`", but no passage is listed as relevant`)
			}
			return append(problems, tooLong(r.Query, maxQuery)...)
		},
		salvage: func(r *gradeReply) ([]string, bool) {
			r.Relevant, r.Verdict, r.Query = known(r.Relevant, given), assay.Partly, ""
			return []string{"the model named unknown passages or gave a too long query; they were dropped, and its verdict was downgraded to partly"}, len(r.Relevant) > 0
		},
	}
	grade, err := typed[gradeReply, role.Grade]{
		job:             j,
		local:           ifAny(g.Local != nil, func() (role.Grade, error) { return g.Local.Grade(ctx, c, in) }),
		localIfUnusable: true,
		cautious: func(o role.Outcome) role.Grade {
			reason := "the grader failed: " + o.Failure
			return role.Grade{Verdict: assay.Insufficient, Relevant: []string{}, Missing: []string{in.Question}, Reason: reason, Outcome: o}
		},
		finish: func(r gradeReply, o role.Outcome) role.Grade { return gradeOf(r, o, in) },
	}.do(ctx, c)
	if err != nil {
		return role.Grade{}, err
	}
	if g.Local != nil && !grade.StoodIn {
		held, err := g.Local.Grade(ctx, c, in)
		if role.Ends(ctx, err) {
			return role.Grade{}, err
		}
		if err == nil {
			if grade.Answerability = held.Answerability; len(grade.Answers) == 0 {
				grade.Answers = held.Answers
			}
		}
	}
	return grade, nil
}

// nothing grades an empty search result, without a model.
func (g Grader) nothing(ctx context.Context, c role.Caller, in role.GradeInput) (role.Grade, error) {
	if g.Local != nil {
		return g.Local.Grade(ctx, c, in)
	}
	return role.Grade{Verdict: assay.Insufficient, Relevant: []string{}, Missing: []string{in.Question}, Reason: "nothing was found"}, nil
}

// maxAnswers is the number of answers of a grade.
const maxAnswers = 3

// answersIn returns the answers whose words are in the passages that they name, the likeliest first.
// The others are dropped.
func answersIn(replies []answerReply, hits []assay.Hit) []role.Extract {
	var answers []role.Extract
	for _, r := range replies {
		if r.Passage < 1 || r.Passage > len(hits) || len(answers) == maxAnswers {
			continue
		}
		h := hits[r.Passage-1]
		start, end, ok := ground.Find(h.Text, r.Text)
		if !ok || start == end {
			continue
		}
		answers = append(answers, role.Extract{Text: line(h.Text[start:end]), Chunk: h.Chunk.ID, Score: 1 / float64(len(answers)+1)})
	}
	return answers
}

// gradeOf converts a reply to the grade. If the verdict is sufficient and something is missing, the
// grade is Partly.
func gradeOf(r gradeReply, outcome role.Outcome, in role.GradeInput) role.Grade {
	g := role.Grade{
		Verdict: r.Verdict, Relevant: []string{}, Missing: phrases(r.Missing), Reason: shorten(line(r.Reason), 500), Outcome: outcome,
	}
	for _, n := range r.Relevant {
		if id := in.Hits[n-1].Chunk.ID; !slices.Contains(g.Relevant, id) {
			g.Relevant = append(g.Relevant, id)
		}
	}
	g.Answers = answersIn(r.Answers, in.Hits)
	if g.Verdict == assay.Sufficient && len(g.Missing) > 0 {
		g.Verdict = assay.Partly
	}
	if g.Verdict != assay.Sufficient {
		g.Query = query(r.Query)
		if len(g.Missing) == 0 {
			g.Missing = []string{in.Question}
		}
	}
	repeats := func(tried string) bool { return strings.EqualFold(line(tried), g.Query) }
	if slices.ContainsFunc(in.Tried, repeats) {
		g.Query = ""
	}
	return g
}
