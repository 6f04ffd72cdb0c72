package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// gradeOrPass grades the hits of a search that another one may follow. If no hit reaches the
// relevance floor, the grade is Insufficient and no grader is asked, neither a model nor a local
// one.
func (f *finding) gradeOrPass(ctx context.Context, s run.Scope, e Env) error {
	if f.reachesFloor(e) {
		return f.regrade(ctx, s, e)
	}
	f.pass(e)
	return nil
}

// reachesFloor reports whether the relevance of a hit reaches the floor. A value that is NaN does
// not.
func (f *finding) reachesFloor(e Env) bool {
	return slices.ContainsFunc(f.hits, func(h assay.Hit) bool { return h.Scores.Relevance >= e.Limits.Floor })
}

// pass sets the grade of hits that are all below the relevance floor.
func (f *finding) pass(e Env) {
	f.grade = role.Grade{
		Verdict: assay.Insufficient, Relevant: []string{}, Missing: []string{asked(e.Question).line(f.spoken())}, Reason: "nothing was found",
	}
	if len(f.hits) > 0 {
		f.grade.Reason = f.belowFloor(e)
	}
	f.below, f.passed, f.graded = true, true, len(f.searched)
}

// gradePassed grades the hits of a finding whose last search was passed, once no other search
// follows: text that answers a question in other words than the question's can be below the
// relevance floor. A run that has no budget for it goes on with the grade before. If the time of the
// sub-question is over, no model grades them.
func (f *finding) gradePassed(ctx context.Context, s run.Scope, e Env) error {
	if !f.passed || len(f.hits) == 0 || f.cutShort() && !f.late {
		return nil
	}
	if f.late {
		e = e.gradingLocally()
	}
	err := f.regrade(ctx, s, e)
	switch stop := stopOf(err); {
	case stop != "":
		f.ends(stop, err)
		return nil
	case err == nil && f.sufficient():
		f.stop = assay.StopSufficient
	}
	return err
}

// belowFloor returns the reason of a grade of hits that are all below the relevance floor.
func (f *finding) belowFloor(e Env) string {
	if len(f.hits) == 0 { // the grader named chunks that no search found
		return "no search found a passage"
	}
	best := slices.MaxFunc(f.hits, byBestRelevance)
	return fmt.Sprintf("the best relevance is %.2f, under the floor of %.2f", best.Scores.Relevance, e.Limits.Floor)
}

// askQuerier has the querier name the next search for hits that were not graded, since a grader
// would have named it. It asks nothing if no further search can follow.
func (f *finding) askQuerier(ctx context.Context, s run.Scope, e Env) error {
	if e.Roles.Rewriter == nil || f.iterations >= e.Limits.Iterations {
		return nil
	}
	var history trail
	for _, made := range f.searched {
		history = append(history, role.Asked{Query: made.Query, Brought: "nothing relevant"})
	}
	query, _, err := e.next(ctx, s, f.question, f, history, f.grade.Missing)
	f.grade.Query = query
	return err
}

// nearFloor is the share of the limit's odds from which hits are near the floor. Their text is
// shown as the closest passage.
const nearFloor = 0.5

// nearlyHeld reports whether the hits are nearly likely enough to hold the answer.
func (e Env) nearlyHeld(f *finding) bool {
	return f.grade.Held != nil && *f.grade.Held >= ofOdds(nearFloor, e.Limits.Held)
}

// modelFloor is the share of the odds of either limit that is enough for hits which a language
// model graded sufficient. Of 60 right answers worded differently from their documents, the full
// limits refused 4 that the model had graded sufficient.
const modelFloor = 0.4

// aboveFloor reports whether a finding's accepted hits can be used to answer, whichever grader
// graded them: one of them reaches the relevance floor, or the hits are likely enough to hold the
// answer. A value that is missing or NaN is below every floor.
func (e Env) aboveFloor(f *finding) bool {
	relevant, held := e.Limits.Floor, e.Limits.Held
	if e.byModel(role.GraderRole) && f.sufficient() {
		relevant, held = ofOdds(modelFloor, relevant), ofOdds(modelFloor, held)
	}
	if p := f.grade.Held; p != nil && *p >= held {
		return true
	}
	return slices.ContainsFunc(f.accepted(len(f.hits)), func(h assay.Hit) bool { return h.Scores.Relevance >= relevant })
}

// ofOdds returns the probability whose odds are the given share of the odds of p.
func ofOdds(share, p float64) float64 { return share * p / (share*p + 1 - p) }

// holdToFloor lowers a grade that calls hits below the floor relevant. If the hits are near the
// floor, they are not sufficient. Otherwise none is accepted, and the search goes on as after any
// other grade of insufficient.
func (f *finding) holdToFloor(e Env) {
	f.below = false // reset the result of the grade before
	if f.grade.Failure != "" || len(f.grade.Relevant) == 0 || e.aboveFloor(f) {
		return
	}
	if e.nearlyHeld(f) {
		if f.sufficient() {
			f.grade.Verdict, f.grade.Missing = assay.Partly, []string{asked(e.Question).line(f.spoken())}
		}
		return
	}
	f.below = true
	f.grade.Reason = f.belowFloor(e)
	f.grade.Verdict = assay.Insufficient
	if len(f.grade.Missing) == 0 {
		f.grade.Missing = []string{asked(e.Question).line(f.spoken())}
	}
}

func byBestRelevance(a, b assay.Hit) int { return cmp.Compare(a.Scores.Relevance, b.Scores.Relevance) }
