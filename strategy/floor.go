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

// gradeAboveFloor grades the hits of a search that another one may follow. If no hit reaches the
// relevance floor, the grade is Insufficient and no grader is asked, neither a model nor a local
// one.
func (sq *subQuestion) gradeAboveFloor(ctx context.Context, s run.Scope, e Env) error {
	if sq.reachesFloor(e) {
		return sq.gradeAll(ctx, s, e)
	}
	sq.skipGrade(e)
	return nil
}

// reachesFloor reports whether the relevance of a hit reaches the floor. A value that is NaN does
// not.
func (sq *subQuestion) reachesFloor(e Env) bool {
	return slices.ContainsFunc(sq.hits, func(h assay.Hit) bool { return h.Scores.Relevance >= e.Limits.Floor })
}

// skipGrade sets the grade of hits that are all below the relevance floor.
func (sq *subQuestion) skipGrade(e Env) {
	sq.grade = role.Grade{
		Verdict: assay.Insufficient, Relevant: []string{}, Missing: []string{questionSources(e.Question).line(sq.displayText())}, Reason: "nothing was found",
	}
	if len(sq.hits) > 0 {
		sq.grade.Reason = sq.belowFloor(e)
	}
	sq.below, sq.gradeSkipped, sq.graded = true, true, len(sq.searched)
}

// gradeAfterSkip grades the hits of a sub-question whose last search was not graded, once no other search
// follows: text that answers a question in other words than the question's can be below the
// relevance floor. A run that has no budget for it goes on with the grade before. If the time of the
// sub-question is over, no model grades them.
func (sq *subQuestion) gradeAfterSkip(ctx context.Context, s run.Scope, e Env) error {
	if !sq.gradeSkipped || len(sq.hits) == 0 || sq.cutShort() && !sq.late {
		return nil
	}
	if sq.late {
		e = e.withLocalGrader()
	}
	err := sq.gradeAll(ctx, s, e)
	switch stop := stopOf(err); {
	case stop != "":
		sq.endSearch(stop, err)
		return nil
	case err == nil && sq.sufficient():
		sq.stop = assay.StopSufficient
	}
	return err
}

// belowFloor returns the reason of a grade of hits that are all below the relevance floor.
func (sq *subQuestion) belowFloor(e Env) string {
	if len(sq.hits) == 0 { // the grader named chunks that no search found
		return "no search found a passage"
	}
	best := slices.MaxFunc(sq.hits, byBestRelevance)
	return fmt.Sprintf("the best relevance is %.2f, under the floor of %.2f", best.Scores.Relevance, e.Limits.Floor)
}

// askQuerier has the querier name the next search for hits that were not graded, since a grader
// would have named it. It asks nothing if no further search can follow.
func (sq *subQuestion) askQuerier(ctx context.Context, s run.Scope, e Env) error {
	if sq.iterations >= e.Limits.Iterations {
		return nil
	}
	var history searchHistory
	for _, made := range sq.searched {
		history = append(history, role.Asked{Query: made.Query, Brought: "nothing relevant"})
	}
	query, _, err := e.nextQuery(ctx, s, sq.question, sq, history, sq.grade.Missing)
	sq.grade.Query = query
	return err
}

// nearFloor is the share of the limit's odds from which hits are near the floor. Their text is
// shown as the closest passage.
const nearFloor = 0.5

// nearAnswerability reports whether the hits are nearly likely enough to hold the answer.
func (e Env) nearAnswerability(sq *subQuestion) bool {
	return sq.grade.Answerability != nil && *sq.grade.Answerability >= scaleOdds(nearFloor, e.Limits.MinAnswerability)
}

// modelFloor is the share of the odds of either limit that is enough for hits which a language
// model graded sufficient. Of 60 right answers worded differently from their documents, the full
// limits refused 4 that the model had graded sufficient.
const modelFloor = 0.4

// aboveFloor reports whether a sub-question's accepted hits can be used to answer, whichever grader
// graded them: one of them reaches the relevance floor, or the hits are likely enough to hold the
// answer. A value that is missing or NaN is below every floor.
func (e Env) aboveFloor(sq *subQuestion) bool {
	relevant, held := e.Limits.Floor, e.Limits.MinAnswerability
	if e.byModel(role.GraderRole) && sq.sufficient() {
		relevant, held = scaleOdds(modelFloor, relevant), scaleOdds(modelFloor, held)
	}
	if p := sq.grade.Answerability; p != nil && *p >= held {
		return true
	}
	return slices.ContainsFunc(sq.accepted(len(sq.hits)), func(h assay.Hit) bool { return h.Scores.Relevance >= relevant })
}

// scaleOdds returns the probability whose odds are the given share of the odds of p.
func scaleOdds(share, p float64) float64 { return share * p / (share*p + 1 - p) }

// enforceFloor lowers a grade that calls hits below the floor relevant. If the hits are near the
// floor, they are not sufficient. Otherwise none is accepted, and the search goes on as after any
// other grade of insufficient.
func (sq *subQuestion) enforceFloor(e Env) {
	sq.below = false // reset the result of the grade before
	if sq.grade.Failure != "" || len(sq.grade.Relevant) == 0 || e.aboveFloor(sq) {
		return
	}
	if e.nearAnswerability(sq) {
		if sq.sufficient() {
			sq.grade.Verdict, sq.grade.Missing = assay.Partly, []string{questionSources(e.Question).line(sq.displayText())}
		}
		return
	}
	sq.below = true
	sq.grade.Reason = sq.belowFloor(e)
	sq.grade.Verdict = assay.Insufficient
	if len(sq.grade.Missing) == 0 {
		sq.grade.Missing = []string{questionSources(e.Question).line(sq.displayText())}
	}
}

func byBestRelevance(a, b assay.Hit) int { return cmp.Compare(a.Scores.Relevance, b.Scores.Relevance) }
