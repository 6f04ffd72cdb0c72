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

// minResponse is the relevance from which an answer responds well enough that a dropped
// statement does not count as a gap.
const minResponse = 0.5

// relevance asks the answer grader, once, how well the shown claims respond to the question,
// independent of their evidence. An answer below the threshold (see VerifySettings) is not found. The
// grade never improves a status. If the answer could not be judged, it is incomplete.
func (e Env) relevance(ctx context.Context, s run.Scope, r *Result, notes *noteList) error {
	isNew := !r.judged && r.Cached == nil && r.AskBack == ""
	if len(r.Claims) == 0 || !isNew {
		return nil
	}
	r.judged = true
	in := role.AnswerInput{Question: r.Question, Parts: without(r.parts, []string{r.Question}), Quoted: e.writer() == "" && r.Strategy != "managed"}
	for i, c := range r.Claims {
		st := role.ShownStatement{Text: r.Text[c.Start:c.End]}
		for _, cit := range r.Citations {
			if cit.Claim != i {
				continue
			}
			under := append([]string{cit.Title}, cit.Heading...)
			st.Under = appendNew(st.Under, slices.DeleteFunc(under, func(h string) bool { return h == "" })...)
			st.Quotes = appendNew(st.Quotes, cit.Quote)
			if n := cit.Number - 1; n < len(r.passages) && strings.Contains(r.passages[n].Text, cit.Quote) {
				st.Passages = appendNew(st.Passages, r.passages[n].Text)
			}
		}
		in.Statements = append(in.Statements, st)
	}
	out, err := runRole(ctx, s, e, job[role.AnswerInput, role.AnswerGrade]{
		task: role.AnswerGraderTask,
		do:   e.gradeAnswer,
	}, in, notes)
	if stop := stopOf(err); stop != "" {
		notes.say(assay.NoteLimit, fmt.Sprintf("answer grader: the run had no budget left to judge whether the question is answered (%s)", stop))
		r.verdicts.responds = respondsFailed
		r.updateStatus()
		r.stopped(stop)
		return nil
	}
	if err != nil {
		return err
	}
	r.verdicts.responds = responseOf(out, e.Settings.Verify.Relevance)
	if r.verdicts.responds != respondsFailed {
		r.Relevance, r.lacks = out.Relevance, out.Lacks
	}
	r.updateStatus()
	return nil
}

// gradeAnswer asks the answer grader. It reports a relevance that is not a probability as a
// failure.
func (e Env) gradeAnswer(ctx context.Context, c role.Caller, in role.AnswerInput) (role.AnswerGrade, error) {
	if e.Roles.Relevance == nil {
		return role.AnswerGrade{Outcome: role.Outcome{Failure: "there is no grader of answers"}}, nil
	}
	g, err := e.Roles.Relevance.GradeAnswer(ctx, c, in)
	if p := g.Relevance; err == nil && p != nil && !(*p >= 0 && *p <= 1) {
		g = role.AnswerGrade{Outcome: role.Outcome{Failure: fmt.Sprintf("the relevance %v is not a probability", *p), Notes: g.Notes}}
	}
	return g, err
}

// responseOf returns the response by an answer grader's grade and the threshold.
func responseOf(g role.AnswerGrade, threshold float64) response {
	switch {
	case g.Failure != "" || g.Relevance == nil:
		return respondsFailed
	case g.OffTopic || *g.Relevance < threshold:
		return respondsNot
	case *g.Relevance >= minResponse:
		return respondsWell
	}
	return respondsPartly
}
