package strategy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
)

// nearFloor is the share of the odds that the limit sets from which on hits are near it:
// what they hold is shown as the closest passage.
const nearFloor = 0.5

// nearlyHeld reports whether hits are nearly likely enough to hold the answer.
func (e Env) nearlyHeld(f *finding) bool {
	held := f.grade.Held
	return held != nil && *held/(1-*held) >= nearFloor*e.Limits.Held/(1-e.Limits.Held)
}

// aboveFloor reports whether a finding's accepted hits may be answered from, whoever graded
// them: one of them reaches the relevance floor, or the hits are likely enough to hold the
// answer. A value that is missing or no number is below every floor.
func (e Env) aboveFloor(f *finding) bool {
	if held := f.grade.Held; held != nil && *held >= e.Limits.Held {
		return true
	}
	return slices.ContainsFunc(f.accepted(len(f.hits)), func(h assay.Hit) bool { return h.Scores.Relevance >= e.Limits.Floor })
}

// holdToFloor takes back a grade that calls hits below the floor relevant. Hits that are
// near it do not suffice; of others nothing is accepted, and the search goes on as after any
// other grade of insufficient.
func (f *finding) holdToFloor(e Env) {
	f.below = false // of the grade before
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
	best := slices.MaxFunc(f.hits, byBestRelevance)
	f.grade.Reason = fmt.Sprintf("the best relevance is %.2f, under the floor of %.2f", best.Scores.Relevance, e.Limits.Floor)
	f.grade.Verdict = assay.Insufficient
	if len(f.grade.Missing) == 0 {
		f.grade.Missing = []string{asked(e.Question).line(f.spoken())}
	}
}

func byBestRelevance(a, b assay.Hit) int { return cmp.Compare(a.Scores.Relevance, b.Scores.Relevance) }
