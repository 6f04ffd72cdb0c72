package strategy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// stops lists all reasons to stop.
var stops = []assay.Stop{
	"", assay.StopSufficient, assay.StopIterationLimit, assay.StopDeadline, assay.StopTokenBudget, assay.StopCallBudget,
	assay.StopMoneyBudget, assay.StopNoProgress, assay.StopCircular, assay.StopMalformed, assay.StopAmbiguous,
}

var bools = []bool{false, true}

// everyEvidence calls f with every evidenceState.
func everyEvidence(f func(evidenceState)) {
	for found := foundNothing; found <= foundFit; found++ {
		for covered := coveredNone; covered <= coveredAll; covered++ {
			for conflict := noConflict; conflict <= conflictVersions; conflict++ {
				for _, sufficient := range bools {
					f(evidenceState{found, sufficient, covered, conflict})
				}
			}
		}
	}
}

// everyVerdict calls f with every verdictState.
func everyVerdict(f func(verdictState)) {
	for draft := draftNone; draft <= draftQuoted; draft++ {
		for responds := respondsUnjudged; responds <= respondsWell; responds++ {
			for bits := range 1 << 6 {
				is := func(k int) bool { return bits&(1<<k) != 0 }
				f(verdictState{draft, is(0), is(1), is(2), is(3), is(4), is(5), responds})
			}
		}
	}
}

// TestDecideEverything checks for every input of decide that the status keeps its promise.
func TestDecideEverything(t *testing.T) {
	n := 0
	counts := map[assay.Status]int{}
	everyEvidence(func(e evidenceState) {
		everyVerdict(func(v verdictState) {
			for _, stop := range stops {
				n++
				status, reason := decide(e, v, stop)
				counts[status]++
				if reason == "" {
					t.Fatalf("%+v %+v %s: %s without a reason", e, v, stop, status)
				}
				if broken := promise(status, e, v, stop); broken != "" {
					t.Fatalf("%+v %+v %q: %s (%s), but %s", e, v, stop, status, reason, broken)
				}
			}
		})
	})
	for _, s := range []assay.Status{assay.Answered, assay.Incomplete, assay.Conflicting, assay.NotFound} {
		if counts[s] == 0 {
			t.Errorf("nothing is %s", s)
		}
	}
	t.Logf("%d inputs: %v", n, counts)
}

// promise returns the promise of a status that does not hold, or "".
func promise(status assay.Status, e evidenceState, v verdictState, stop assay.Stop) string {
	whole := v.supported && e.found == foundFit && e.covered == coveredAll && v.draft == draftWritten &&
		!v.failed && !v.leavesOutMember && !v.open && !v.heldBack && stop != assay.StopAmbiguous && stop != assay.StopMalformed &&
		v.responds != respondsNot && v.responds != respondsFailed && (!v.dropped || v.responds == respondsWell)
	cut := spentBy(stop) || stop == assay.StopMalformed
	shown := v.supported && e.found == foundFit && v.responds != respondsNot && stop != assay.StopAmbiguous
	switch status {
	case assay.Answered:
		if !whole || e.conflict != noConflict {
			return "the answer is not whole"
		}
	case assay.Conflicting:
		if !shown || e.conflict == noConflict || e.covered == coveredNone {
			return "no two sides of the question are shown"
		}
	case assay.NotFound:
		if shown {
			return "something of the question is answered"
		}
		if stop == assay.StopAmbiguous || !v.supported && cut {
			return "the search did not come to its end"
		}
	case assay.Incomplete:
		if whole {
			return "the answer is whole"
		}
		nothing := !v.supported && (v.draft == draftNone || v.draft == draftEmpty) && !v.failed && e.found != foundUngraded
		if nothing && !cut && stop != assay.StopAmbiguous {
			return "nothing was found"
		}
	default:
		return "there is no such status"
	}
	return ""
}

// TestDecide checks the reasons of the usual cases.
func TestDecide(t *testing.T) {
	fit := evidenceState{found: foundFit, sufficient: true, covered: coveredAll}
	good := verdictState{draft: draftWritten, supported: true, responds: respondsWell}
	tests := []struct {
		name   string
		change func(e *evidenceState, v *verdictState)
		stop   assay.Stop
		status assay.Status
		reason assay.Reason
	}{
		{"whole", func(*evidenceState, *verdictState) {}, assay.StopSufficient, assay.Answered, assay.ReasonSupported},
		{"whole, and judged by nobody", func(_ *evidenceState, v *verdictState) { v.responds = respondsUnjudged }, "", assay.Answered, assay.ReasonSupported},
		{"whole when the time was up", func(*evidenceState, *verdictState) {}, assay.StopDeadline, assay.Answered, assay.ReasonSupported},
		{"below the floor", func(e *evidenceState, _ *verdictState) { e.found = foundUnfit }, "", assay.NotFound, assay.ReasonNoAnswer},
		{"off topic", func(_ *evidenceState, v *verdictState) { v.responds = respondsNot }, "", assay.NotFound, assay.ReasonOffTopic},
		{"nobody could judge it", func(_ *evidenceState, v *verdictState) { v.responds = respondsFailed }, "", assay.Incomplete, assay.ReasonUnjudged},
		{"half", func(e *evidenceState, _ *verdictState) { e.covered = coveredSome }, "", assay.Incomplete, assay.ReasonPartsOpen},
		{"two sides", func(e *evidenceState, _ *verdictState) { e.conflict = conflictFound }, "", assay.Conflicting, assay.ReasonDisagree},
		{"two sides of another question", func(e *evidenceState, _ *verdictState) { e.conflict, e.covered = conflictFound, coveredNone }, "", assay.Incomplete, assay.ReasonPartsOpen},
		{"two sides, declared", func(e *evidenceState, _ *verdictState) { e.conflict = conflictDeclared }, "", assay.Conflicting, assay.ReasonDeclared},
		{"versions", func(e *evidenceState, _ *verdictState) { e.conflict = conflictVersions }, "", assay.Conflicting, assay.ReasonVersions},
		{"the verifier failed at some", func(_ *evidenceState, v *verdictState) { v.failed = true }, "", assay.Incomplete, assay.ReasonUnverified},
		{"a dropped aside", func(_ *evidenceState, v *verdictState) { v.dropped = true }, "", assay.Answered, assay.ReasonSupported},
		{"a dropped statement, and little else", func(_ *evidenceState, v *verdictState) { v.dropped, v.responds = true, respondsPartly }, "", assay.Incomplete, assay.ReasonGaps},
		{"torn", func(_ *evidenceState, v *verdictState) { v.leavesOutMember = true }, "", assay.Incomplete, assay.ReasonTorn},
		{"open", func(_ *evidenceState, v *verdictState) { v.open = true }, "", assay.Incomplete, assay.ReasonGaps},
		{"held back", func(_ *evidenceState, v *verdictState) { v.heldBack = true }, "", assay.Incomplete, assay.ReasonNotAccepted},
		{"salvaged", func(_ *evidenceState, v *verdictState) { v.draft = draftQuoted }, assay.StopDeadline, assay.Incomplete, assay.ReasonCutShort},
		{"quoted for a writer that failed", func(_ *evidenceState, v *verdictState) { v.draft = draftFailed }, "", assay.Incomplete, assay.ReasonGaps},
		{"asked back", func(*evidenceState, *verdictState) {}, assay.StopAmbiguous, assay.Incomplete, assay.ReasonAmbiguous},
		{"nothing supported", func(_ *evidenceState, v *verdictState) { v.supported = false }, "", assay.Incomplete, assay.ReasonUnsupported},
		{"nothing supported, of weak evidence", func(e *evidenceState, v *verdictState) { e.sufficient, v.supported = false, false }, "", assay.NotFound, assay.ReasonUnsupported},
		{"nothing could be verified", func(_ *evidenceState, v *verdictState) { v.supported, v.failed = false, true }, "", assay.Incomplete, assay.ReasonUnverified},
		{"nothing to say", func(_ *evidenceState, v *verdictState) { v.supported, v.draft = false, draftEmpty }, "", assay.NotFound, assay.ReasonNoContent},
		{"nothing written", func(_ *evidenceState, v *verdictState) { v.supported, v.draft = false, draftFailed }, "", assay.Incomplete, assay.ReasonUnwritten},
		{"no hits", func(e *evidenceState, v *verdictState) { *e, *v = evidenceState{}, verdictState{} }, assay.StopNoProgress, assay.NotFound, assay.ReasonNoHits},
		{"nothing fit", func(e *evidenceState, v *verdictState) { *e, *v = evidenceState{found: foundUnfit}, verdictState{} }, "", assay.NotFound, assay.ReasonNoAnswer},
		{"ungraded", func(e *evidenceState, v *verdictState) { *e, *v = evidenceState{found: foundUngraded}, verdictState{} }, "", assay.Incomplete, assay.ReasonUngraded},
		{"cut short", func(e *evidenceState, v *verdictState) { *e, *v = evidenceState{}, verdictState{} }, assay.StopCallBudget, assay.Incomplete, assay.ReasonCutShort},
		{"whole, in the actor's error state", func(*evidenceState, *verdictState) {}, assay.StopMalformed, assay.Incomplete, assay.ReasonMalformed},
		{"half, in the actor's error state", func(e *evidenceState, _ *verdictState) { e.covered = coveredSome }, assay.StopMalformed, assay.Incomplete, assay.ReasonPartsOpen},
		{"off topic, in the actor's error state", func(_ *evidenceState, v *verdictState) { v.responds = respondsNot }, assay.StopMalformed, assay.NotFound, assay.ReasonOffTopic},
		{"no hits, in the actor's error state", func(e *evidenceState, v *verdictState) { *e, *v = evidenceState{}, verdictState{} }, assay.StopMalformed, assay.Incomplete, assay.ReasonMalformed},
		{"no service", func(e *evidenceState, v *verdictState) { *e, *v = evidenceState{}, verdictState{draft: draftNoService} }, "", assay.Incomplete, assay.ReasonNoService},
	}
	for _, tt := range tests {
		e, v := fit, good
		tt.change(&e, &v)
		if status, reason := decide(e, v, tt.stop); status != tt.status || reason != tt.reason {
			t.Errorf("%s: %s (%s), want %s (%s)", tt.name, status, reason, tt.status, tt.reason)
		}
	}
}

// TestOnlyDecideSetsStatus checks that only updateStatus, which calls decide, sets the status of an
// answer.
func TestOnlyDecideSetsStatus(t *testing.T) {
	assigned := regexp.MustCompile(`\.Status\b(?:, [^=]+)? :?= |\bStatus: +assay\.`)
	var found []string
	for _, dir := range []string{".", "../engine", "../internal/tool"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				if assigned.MatchString(line) {
					found = append(found, filepath.ToSlash(file)+": "+strings.TrimSpace(line))
				}
			}
		}
	}
	want := []string{ // by file
		"result.go: r.Status, r.Reason = decide(r.evidence, r.verdicts, cmp.Or(r.spent, r.Stop))",
		"../engine/canary.go: Run: a.Run, Question: a.Question, Strategy: a.Strategy, Status: assay.Rejected, Reason: assay.ReasonWithheld,",
		// The end of a run that describes images, which answers no question.
		"../engine/describe.go: Status: assay.Answered, Stop: assay.StopSufficient, Question: describeQuestion, Strategy: describeStrategy, Run: r.Run, Usage: r.Usage,",
		"../engine/describe.go: a.Status, a.Justification = assay.Incomplete, r.Problem",
		// What a person decided, and what callers see until then.
		"../engine/reviewdraft.go: shown.Status, shown.Reason = assay.PendingReview, assay.ReasonReview",
		"../engine/reviewdraft.go: shown.Status, shown.Reason = assay.Rejected, assay.ReasonReviewer",
		"../engine/reviewruling.go: a.Status, a.Reason = assay.Answered, assay.ReasonSupported",
		"../engine/reviewruling.go: a.Status, a.Reason = assay.Incomplete, assay.ReasonReviewerStatement",
		`../engine/reviewruling.go: kind, detail.Status, with.Answer = "review.decided", after.answer.Status, &after.answer`,
		"../engine/runs.go: s.Status, s.Stop = r.Answer.Status, r.Answer.Stop", // summary of a stored answer
	}
	if !slices.Equal(found, want) {
		t.Errorf("a status is set by %q, want %q", found, want)
	}
}

// TestErrorStateStays checks that a budget which runs out later does not turn the error state of an
// actor into a complete answer.
func TestErrorStateStays(t *testing.T) {
	r := Result{Answer: assay.Answer{Stop: assay.StopMalformed, Claims: make([]assay.Claim, 1)}}
	r.evidence = evidenceState{found: foundFit, sufficient: true, covered: coveredAll}
	r.verdicts = verdictState{draft: draftWritten, supported: true, responds: respondsWell}
	r.updateStatus()
	r.stopped(assay.StopCallBudget)
	if r.Status != assay.Incomplete || r.Stop != assay.StopMalformed {
		t.Errorf("%s (%s), want incomplete, malformed_calls", r.Status, r.Stop)
	}
}
