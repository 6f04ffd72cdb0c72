package prompted

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// answerGradeReply is the reply requested from the model.
type answerGradeReply struct {
	Lacks []string `json:"lacks,omitempty"`
	Score float64  `json:"score"` // 0 to maxScore
}

var answerGradeOutput = outputOf[answerGradeReply]("answer_grade")

// offTopicScore is the highest score of an answer that does not respond to its question.
const offTopicScore = 2

// GradeAnswer implements role.AnswerGrader. It has a model grade how far an answer answers its
// question. It ignores the domain, which cannot change what counts as an answer.
func (g Judge) GradeAnswer(ctx context.Context, c role.Caller, in role.AnswerInput) (role.AnswerGrade, error) {
	g.Domain = nil
	statements := make([]labelled, len(in.Statements))
	for i, st := range in.Statements {
		text := st.Text
		if len(st.Under) > 0 {
			text = "(" + shorten(line(strings.Join(st.Under, " › ")), 200) + ")\n" + text
		}
		statements[i] = labelled{fmt.Sprintf("statement number=\"%d\"", i+1), text}
	}
	return typed[answerGradeReply, role.AnswerGrade]{
		job: job[answerGradeReply]{
			Config: g.Config, task: role.AnswerGraderTask, out: answerGradeOutput(), maxTokens: 300,
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
		},
		local:    ifAny(g.Local != nil, func() (role.AnswerGrade, error) { return g.Local.GradeAnswer(ctx, c, in) }),
		cautious: func(o role.Outcome) role.AnswerGrade { return role.AnswerGrade{Lacks: []string{}, Outcome: o} },
		finish: func(reply answerGradeReply, outcome role.Outcome) role.AnswerGrade {
			relevance := reply.Score / maxScore
			return role.AnswerGrade{Relevance: &relevance, Lacks: phrases(reply.Lacks), OffTopic: reply.Score <= offTopicScore, Outcome: outcome}
		},
	}.do(ctx, c)
}
