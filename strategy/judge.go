package strategy

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// judgeSpec describes Judge.
var judgeSpec = Spec{
	Name:     "judge",
	Summary:  "a judge accepts each draft or sends it back with what to do better",
	Source:   "assay's own, after Shinn et al., \"Reflexion: Language Agents with Verbal Reinforcement Learning\", 2023",
	Func:     Judge,
	Defaults: "3 rounds (judge.rounds)",
	UsualCost: "a critique and a judgement more than static; each further round costs a query, a search, a grade, a " +
		"draft and its verification, a critique and a judgement",
}

// Judge has three nodes. The executor searches, writes and has the draft verified. A judge, given a
// critique, accepts the draft or requests changes. A router searches for missing points, or has the
// draft rewritten with the judge's advice. Settings.Judge limits the number of rounds.
//
// The judge sees only supported statements, because only these are shown. An accepted draft is an
// answer only if the evidence was graded sufficient as well. While something is missing, the loop
// continues after an accepted draft, which is returned unless a better one follows. If no draft was
// accepted after the last round, the answer is incomplete and is shown with the changes that the
// judge requested. A judge that fails has accepted nothing. The answer's Review has the verdict and
// the justification.
func Judge(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	d := judgeLoop{found: []subQuestion{{question: env.Question, stop: assay.StopIterationLimit}}, query: env.Question}
	rounds := 0
	loop := env
	loop.inLoop = true
	for round := range env.Settings.Judge.Rounds {
		rounds++
		goOn, err := d.round(ctx, s.Sub("round", round), loop)
		if stop := stopOf(err); stop != "" {
			d.found[0].endSearch(stop, err)
			break
		}
		if err != nil {
			return Result{}, err
		}
		if !goOn {
			break
		}
	}
	if d.found[0].gradeSkipped {
		if _, err := d.execute(ctx, s, env); err != nil && stopOf(err) == "" {
			return Result{}, err
		}
	}
	r := d.answer(env)
	if r.Review != nil {
		r.Review.Iterations = rounds
	}
	return r, nil
}

// judgeLoop is the state of the loop of executor and judge.
type judgeLoop struct {
	found   []subQuestion // always one
	history searchHistory
	query   string   // next query; empty: write again without a search
	advice  []string // for the next draft
	best    draft    // shown unless a better one follows
}

// A draft is an answer with its critique and judgement.
type draft struct {
	Result
	remarks  []assay.Note // notes on the draft, without those on searches
	critique role.Critique
	accepted bool
	wanted   []assay.Gap // changes requested by the judge; nil: none, or it was not asked
}

// round searches, writes, has the draft judged and decides the next step. It reports whether there
// is one.
func (d *judgeLoop) round(ctx context.Context, s run.Scope, env Env) (goOn bool, err error) {
	sq := &d.found[0]
	if d.query != "" {
		err := sq.inTime(ctx, s, env, func(s run.Scope) error { return sq.lookOn(ctx, s, env, d.query, &d.history) })
		if err != nil {
			return false, err
		}
	}
	now, err := d.execute(ctx, s, env)
	if err != nil {
		return false, err
	}
	switch {
	case sq.cutShort():
		return false, nil
	case now.accepted && sq.sufficient():
		sq.stop = assay.StopSufficient
		return false, nil
	case sq.noProgress.stalled():
		sq.stop = assay.StopNoProgress
		return false, nil
	}
	return d.route(ctx, s, env, now.critique)
}

// execute writes and verifies a draft, and asks the critic and the judge about it. It keeps the
// draft unless an earlier one is better.
func (d *judgeLoop) execute(ctx context.Context, s run.Scope, env Env) (now draft, err error) {
	env.advice = d.advice
	if now.Result, _, err = env.finish(ctx, s.Sub("finish", 0), "judge", d.found); err != nil {
		return now, err
	}
	now.remarks = without(now.Notes, env.base("judge", d.found).Notes)
	if f := &d.found[0]; len(now.Claims) > 0 && (f.late || !f.cutShort()) {
		err = env.review(ctx, s, d.found, &now)
	}
	if now.rank() >= d.best.rank() { // even if the critic and the judge could not be asked
		d.best = now
	}
	d.advice = nil
	for _, g := range now.wanted {
		d.advice = append(d.advice, g.Text)
	}
	return now, err
}

// rank orders drafts: without claims, with claims, accepted, and accepted without being incomplete.
func (d draft) rank() int {
	switch {
	case d.accepted && d.Status != assay.Incomplete:
		return 3
	case d.accepted:
		return 2
	case len(d.Claims) > 0:
		return 1
	}
	return 0
}

// review asks the critic and then the judge about the supported statements of a draft.
func (e Env) review(ctx context.Context, s run.Scope, found []subQuestion, now *draft) (err error) {
	evidence, parts := e.numberEvidence(found)
	in := role.DraftInput{
		Reading: role.Reading{Question: e.Question, Evidence: evidence, Context: e.assemble(evidence, parts)},
		Draft:   role.Draft{Statements: found[0].lastDraft.shown(), Open: found[0].lastDraft.draft.Open},
	}
	notes := &found[0].notes
	now.critique, err = runRole(ctx, s, e, job[role.DraftInput, role.Critique]{
		task:     role.CriticTask,
		do:       e.Roles.Judge.Criticise,
		cautious: role.Critique{Grounded: role.Fair, Complete: role.Fair, Relevant: role.Fair, Clear: role.Fair, Remarks: []role.Remark{}},
	}, in, notes)
	if err != nil {
		return err
	}
	in.Critique = &now.critique
	judgement, err := runRole(ctx, s, e, job[role.DraftInput, role.Judgement]{
		task:     role.JudgeRole,
		do:       e.Roles.Judge.JudgeDraft,
		cautious: role.Judgement{Verdict: role.Revise},
	}, in, notes)
	if err != nil {
		return err
	}
	byModel := e.byModel(role.JudgeRole) && !judgement.StoodIn
	now.wanted = e.roleGaps(e.Question, judgement.Revise, byModel)
	now.Review = &assay.Review{Verdict: string(judgement.Verdict), Justification: questionSources(e.Question).line(judgement.Reason), ByModel: byModel}
	now.accepted = judgement.Verdict == role.Accept && judgement.Failure == "" && len(judgement.Revise) == 0
	if !now.accepted {
		now.Review.Verdict = string(role.Revise)
	}
	if !now.accepted && len(now.wanted) == 0 {
		now.wanted = e.questionGap(e.Question)
	}
	return nil
}

// shown returns the supported statements of a draft in the form in which they are shown.
func (w checkedDraft) shown() []role.Statement {
	var out []role.Statement
	for _, c := range w.supported() {
		out = append(out, role.Statement{Text: c.Text, Evidence: c.Evidence, Item: c.Item, Section: c.section})
	}
	return out
}

// route decides the next round. It searches for the missing points. If there are none, or no better
// query is known, the draft is written again; only a model would write a different draft from the
// same evidence.
func (d *judgeLoop) route(ctx context.Context, s run.Scope, env Env, critique role.Critique) (goOn bool, err error) {
	sq := &d.found[0]
	missing := slices.ContainsFunc(critique.Remarks, func(r role.Remark) bool { return r.Flaw == role.FlawMissing })
	rewrite := env.writer() != "" && len(d.advice) > 0
	if rewrite && sq.sufficient() && !missing && critique.Failure == "" {
		d.query = ""
		return true, nil
	}
	gaps := slices.Concat(sq.grade.Missing, without(d.advice, sq.grade.Missing))
	query, stop, err := env.nextQuery(ctx, s, env.Question, sq, d.history, gaps)
	if err != nil {
		return false, err
	}
	d.query = query
	if stop != "" && !rewrite {
		sq.stop = stop
		return false, nil
	}
	return true, nil
}

// answer returns the best draft, with all searches made since. An answer that the judge has not
// accepted is held back.
func (d *judgeLoop) answer(env Env) Result {
	r := d.best.Result
	if r.Status == "" { // the run ended before a draft was written
		return env.notFound("judge", d.found)
	}
	r = withSearchesOf(r, env.base("judge", d.found), d.best.remarks)
	if !d.best.accepted && len(r.Claims) > 0 {
		r.holdBack(d.best.wanted, "the judge has not accepted it")
	}
	return r
}
