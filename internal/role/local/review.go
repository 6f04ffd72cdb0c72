package local

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// answered returns the reader's probability that a text answers a question. If there is no
// reader, or with the reader's error, it returns the share of the question's words that the
// text holds.
func answered(ctx context.Context, reader llm.Reader, question, text string) (float64, error) {
	err := ctx.Err()
	if reader != nil && strings.TrimSpace(text) != "" {
		var readings []llm.Reading
		if readings, err = readTexts(ctx, reader, question, []llm.Excerpt{{Text: text}}); err == nil {
			return answerable(readings), nil
		}
	}
	return read(question, nil).coverage(stems("", text)), err
}

// GradeSupport implements role.SupportGrader. It grades each statement by the verifier's
// judgement of it. It returns an error only when ctx has ended.
func (g Judge) GradeSupport(ctx context.Context, _ role.Caller, in role.DraftInput) (role.SupportGrades, error) {
	out := role.SupportGrades{Grades: make([]role.Support, len(in.Draft.Statements))}
	for i, st := range in.Draft.Statements {
		j, err := judgement(ctx, g.Verifier, st, in.Evidence)
		if ctx.Err() != nil {
			return role.SupportGrades{}, ctx.Err()
		}
		switch {
		case err != nil:
			out.Grades[i] = role.PartlySupported
			out.Notes = append(out.Notes, "support grader: "+err.Error())
		case j.Verdict == assay.Supported:
			out.Grades[i] = role.FullySupported
		case j.Verdict == assay.Contradicted || len(st.Evidence) == 0:
			out.Grades[i] = role.NotSupported
		default:
			out.Grades[i] = role.PartlySupported
		}
	}
	return out, nil
}

// judgement returns the verifier's judgement of a statement by all passages that it cites.
func judgement(ctx context.Context, v ground.Verifier, st role.Statement, evidence []assay.Evidence) (ground.Judgement, error) {
	var cited []ground.Passage
	for _, ev := range evidence {
		if slices.Contains(st.Evidence, ev.Number) {
			h := ev.Hit
			cited = append(cited, ground.Passage{Quote: h.Text, Context: h.Text, Heading: append([]string{h.Title}, h.Chunk.Headings...)})
		}
	}
	if v != nil && len(cited) > 0 {
		return role.Ask(ctx, v, st.Text, cited)
	}
	has := func(p ground.Passage) bool { return strings.Contains(oneLine(p.Context), oneLine(st.Text)) }
	if slices.ContainsFunc(cited, has) {
		return ground.Judgement{Verdict: assay.Supported, Score: 1}, ctx.Err()
	}
	return ground.Judgement{Verdict: assay.Unsupported, Reason: "no cited passage contains its words"}, ctx.Err()
}

// A review is the basis of judge and critic.
type review struct {
	share  float64 // of the question that the draft answers; see answered
	flaws  []role.Remark
	failed []string // notes
}

// reviewed verifies the statements of a draft and checks that they answer the question.
func reviewed(ctx context.Context, reader llm.Reader, v ground.Verifier, in role.DraftInput) (review, error) {
	var r review
	var texts []string
	for i, st := range in.Draft.Statements {
		texts = append(texts, st.Text)
		j, err := judgement(ctx, v, st, in.Evidence)
		switch {
		case ctx.Err() != nil:
			return review{}, ctx.Err()
		case err != nil:
			r.failed = append(r.failed, err.Error())
			r.flaws = append(r.flaws, role.Remark{Statement: i, Flaw: role.FlawUnsupported, Advice: "remove it: it could not be verified"})
		case j.Verdict == assay.Contradicted:
			r.flaws = append(r.flaws, role.Remark{Statement: i, Flaw: role.FlawContradicted, Advice: "correct it to match the evidence: " + j.Reason})
		case j.Verdict != assay.Supported:
			r.flaws = append(r.flaws, role.Remark{Statement: i, Flaw: role.FlawUnsupported, Advice: "rephrase it in the evidence's words, or remove it: " + j.Reason})
		}
	}
	share, err := answered(ctx, reader, in.Question, strings.Join(texts, " "))
	if ctx.Err() != nil {
		return review{}, ctx.Err()
	}
	if err != nil {
		r.failed = append(r.failed, err.Error())
	}
	if r.share = share; share < minAnswered {
		r.flaws = append(r.flaws, role.Remark{Statement: -1, Flaw: role.FlawMissing, Advice: "answer the question: " + in.Question})
	}
	return r, nil
}

// minAnswered is the share of the question that a draft must answer to be shown.
const minAnswered = 0.5

// Judge judges hits, drafts and answers with the reader and the verifier.
type Judge struct {
	Reader   llm.Reader      // nil: relevance and shared words decide
	Verifier ground.Verifier // nil: a statement is supported if a passage has it verbatim, else partly
}

// JudgeDraft implements role.DraftJudge. It accepts a draft if the verifier supports each
// statement, the statements answer the question, and the critique, if there is one, has no poor
// rating. It returns an error only when ctx has ended.
func (g Judge) JudgeDraft(ctx context.Context, _ role.Caller, in role.DraftInput) (role.Judgement, error) {
	r, err := reviewed(ctx, g.Reader, g.Verifier, in)
	if err != nil {
		return role.Judgement{}, err
	}
	out := role.Judgement{Verdict: role.Revise, Revise: []string{}, Outcome: role.Outcome{Notes: r.failed}}
	for _, f := range r.flaws {
		if f.Statement >= 0 {
			f.Advice = fmt.Sprintf("statement %d: %s", f.Statement+1, f.Advice)
		}
		out.Revise = append(out.Revise, f.Advice)
	}
	if k := in.Critique; k != nil && slices.Contains([]role.Rating{k.Grounded, k.Complete, k.Relevant}, role.Poor) {
		for _, remark := range k.Remarks {
			if remark.Advice != "" && !slices.Contains(out.Revise, remark.Advice) {
				out.Revise = append(out.Revise, remark.Advice)
			}
		}
		if len(out.Revise) == 0 {
			out.Revise = append(out.Revise, "the critic rated it poor without a reason")
		}
	}
	if len(in.Draft.Statements) == 0 {
		out.Revise = []string{"the draft is empty"}
	}
	if len(out.Revise) > 0 {
		out.Reason = out.Revise[0]
		return out, nil
	}
	out.Verdict = role.Accept
	out.Reason = fmt.Sprintf("the evidence supports every statement, and the draft answers the question (%.2f)", r.share)
	return out, nil
}

// Criticise implements role.Critic. It rates a draft by the same review as Judge. It returns an
// error only when ctx has ended.
func (k Judge) Criticise(ctx context.Context, _ role.Caller, in role.DraftInput) (role.Critique, error) {
	r, err := reviewed(ctx, k.Reader, k.Verifier, in)
	if err != nil {
		return role.Critique{}, err
	}
	n, wrong := len(in.Draft.Statements), 0
	for _, f := range r.flaws {
		switch f.Flaw {
		case role.FlawUnsupported:
			wrong++
		case role.FlawContradicted:
			wrong += 2
		}
	}
	out := role.Critique{
		Grounded: rated(float64(n-wrong), float64(n)), Complete: rated(r.share, role.DefaultThreshold), Relevant: rated(r.share, minAnswered),
		Clear: role.Good, Remarks: append([]role.Remark{}, r.flaws...), Outcome: role.Outcome{Notes: r.failed},
	}
	if n == 0 {
		out.Complete, out.Relevant, out.Clear = role.Poor, role.Poor, role.Poor
	}
	return out, nil
}

// rated rates a measure: Good if it reaches the wanted value, Fair if it reaches half of it.
func rated(is, wanted float64) role.Rating {
	switch {
	case wanted > 0 && is >= wanted:
		return role.Good
	case wanted > 0 && 2*is >= wanted:
		return role.Fair
	}
	return role.Poor
}

// Reflect implements role.Reflector. It decides whether known statements together answer a
// question, by the reader's probability, else by the share of the question's words that they
// hold. It returns an error only when ctx has ended.
func (r Judge) Reflect(ctx context.Context, _ role.Caller, in role.ReflectInput) (role.Reflection, error) {
	out := role.Reflection{Status: role.IncompleteStatus, Threshold: in.Threshold}
	if !(out.Threshold > 0 && out.Threshold <= 1) {
		out.Threshold = role.DefaultThreshold
	}
	share, err := answered(ctx, r.Reader, in.Question, strings.Join(in.Known, " "))
	if ctx.Err() != nil {
		return role.Reflection{}, ctx.Err()
	}
	if err != nil {
		out.Notes = append(out.Notes, "reflector: "+err.Error()+"; statements were judged by word overlap only")
	}
	switch out.Coverage = share; {
	case len(in.Known) == 0:
		out.Coverage, out.Justification = 0, "nothing is known yet"
	case share < out.Threshold:
		out.Justification = fmt.Sprintf("the known statements answer the question with %.2f; %.2f is needed", share, out.Threshold)
	default:
		out.Status = role.CompletedStatus
		out.Justification = fmt.Sprintf("the known statements answer the question with %.2f", share)
	}
	return out, nil
}
