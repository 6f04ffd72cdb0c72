package strategy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// relevance has it judged how far an answer answers its question. One that is beside it
// is incomplete, whatever it rests on; nothing is ever made better. Where nobody could
// judge it, the answer has no relevance.
func (e Env) relevance(ctx context.Context, s run.Scope, a assay.Answer, said *notes) (assay.Answer, error) {
	if !e.Proof || e.Roles.AnswerGrader == nil || len(a.Claims) == 0 || a.AskBack != "" || a.Cached != nil {
		return a, nil
	}
	in := role.AnswerInput{Question: a.Question, Quoted: e.Writer == "" && a.Strategy != "managed"}
	for i, c := range a.Claims {
		st := role.ShownStatement{Text: a.Text[c.Start:c.End]}
		for _, cit := range a.Citations {
			if under := append([]string{cit.Title}, cit.Heading...); cit.Claim == i {
				st.Under = more(st.Under, slices.DeleteFunc(under, func(h string) bool { return h == "" })...)
			}
		}
		in.Statements = append(in.Statements, st)
	}
	out, err := hand(ctx, s, e, job[role.AnswerInput, role.AnswerGrade]{
		role:    role.AnswerGraderRole,
		do:      e.Roles.AnswerGrader.GradeAnswer,
		outcome: func(g *role.AnswerGrade) *role.Outcome { return &g.Outcome },
	}, in, said)
	if stop := stopOf(err); stop != "" {
		said.say(fmt.Sprintf("answer grader: the run had no room to judge whether the question is answered (%s)", stop))
		return stoppedBy(a, stop), nil
	}
	if err != nil || out.Failure != "" || out.Relevance == nil || !(*out.Relevance >= 0 && *out.Relevance <= 1) {
		return a, err
	}
	a.Relevance = out.Relevance
	if a.Status != assay.Answered || !out.Beside {
		return a, nil
	}
	lacks := asked(a.Question).lines(out.Lacks)
	why := fmt.Sprintf("what is said hardly answers the question (relevance %.2f)", *out.Relevance)
	if len(lacks) > 0 {
		why += ": it has nothing of " + strings.Join(lacks, ", ")
	}
	return keptBack(a, nil, why), nil
}

// stoppedBy returns an answer of a run that had no room for something any more, which is
// why it stopped, unless it is whole or had stopped for such a reason before.
func stoppedBy(a assay.Answer, stop assay.Stop) assay.Answer {
	if stop != "" && a.Status != assay.Answered && !spentBy(a.Stop) {
		a.Stop = stop
	}
	return a
}
