package prompted

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// AnswerGrader has a model grade how far an answer answers its question. It ignores the domain,
// which cannot change what counts as an answer.
type AnswerGrader struct {
	Config                   // Domain is not used
	Local  role.AnswerGrader // used if the provider fails; nil: the cautious output
}

// answerGradeReply is the reply requested from the model.
type answerGradeReply struct {
	Lacks []string `json:"lacks,omitempty"`
	Score float64  `json:"score"` // 0 to maxScore
}

var answerGradeOutput = outputOf[answerGradeReply]("answer_grade")

// offTopicScore is the highest score of an answer that does not respond to its question.
const offTopicScore = 2

// GradeAnswer implements role.AnswerGrader.
func (g AnswerGrader) GradeAnswer(ctx context.Context, c role.Caller, in role.AnswerInput) (role.AnswerGrade, error) {
	g.Domain = nil
	statements := make([]labelled, len(in.Statements))
	for i, st := range in.Statements {
		text := st.Text
		if len(st.Under) > 0 {
			text = "(" + shorten(line(strings.Join(st.Under, " › ")), 200) + ")\n" + text
		}
		statements[i] = labelled{fmt.Sprintf("statement number=\"%d\"", i+1), text}
	}
	reply, outcome, err := ask(ctx, c, job[answerGradeReply]{
		Config: g.Config, role: role.AnswerGraderRole, out: answerGradeOutput(), maxTokens: 300,
		write: func(p prompt, room int) (string, []string, bool) {
			user := func(k int) string {
				return p.render(map[string]any{"Question": in.Question, "Statements": statements[:k]})
			}
			shown := most(len(statements), func(k int) bool { return llm.EstimateTokens(user(k)) <= room })
			var notes []string
			if shown < len(statements) {
				notes = []string{fmt.Sprintf("the model was shown %d of %d statements", shown, len(statements))}
			}
			return user(shown), notes, shown > 0
		},
		check: func(r *answerGradeReply) []string {
			if r.Score < 0 || r.Score > maxScore {
				return []string{fmt.Sprintf("the score is %v, not between 0 and %d", r.Score, maxScore)}
			}
			return nil
		},
	})
	behind := stander[role.AnswerGrade]{
		role:     role.AnswerGraderRole,
		outcome:  func(g *role.AnswerGrade) *role.Outcome { return &g.Outcome },
		cautious: func(o role.Outcome) role.AnswerGrade { return role.AnswerGrade{Lacks: []string{}, Outcome: o} },
	}
	if g.Local != nil {
		behind.local = func() (role.AnswerGrade, error) { return g.Local.GradeAnswer(ctx, c, in) }
	}
	if out, err, done := behind.instead(ctx, outcome, err); done {
		return out, err
	}
	relevance := reply.Score / maxScore
	return role.AnswerGrade{Relevance: &relevance, Lacks: phrases(reply.Lacks), OffTopic: reply.Score <= offTopicScore, Outcome: outcome}, nil
}
