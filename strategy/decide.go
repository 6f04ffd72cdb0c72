package strategy

import "github.com/assay-rag/assay"

// evidenceState says what was found for a question.
type evidenceState struct {
	found      foundState
	sufficient bool // for some part of the question, by its grade
	covered    coverage
	conflict   conflictState
}

// foundState says how far what was searched can be answered from.
type foundState int

const (
	foundNothing  foundState = iota // no passage
	foundUngraded                   // passages, and the grader failed
	foundUnfit                      // passages, none of them relevant and above the floor
	foundFit                        // passages that may be answered from
)

// coverage says which parts of the question have a supported claim and evidence that
// suffices.
type coverage int

const (
	coveredNone coverage = iota
	coveredSome
	coveredAll
)

// conflictState says who finds that the documents disagree about the question.
type conflictState int

const (
	noConflict       conflictState = iota
	conflictFound                  // claims that contradict each other
	conflictDeclared               // the writer says so
	conflictVersions               // versions of one document, each answered for itself
)

// verdictState says what became of what was written.
type verdictState struct {
	draft     draftState
	supported bool // at least one claim is supported
	failed    bool // the verifier failed at some claim
	torn      bool // an entry of a list, a table or a conflict was left out
	open      bool // the writer says that something is open
	dropped   bool // statements were refused and have no replacement
	heldBack  bool // a judge or reflector has not accepted the answer
	responds  response
}

// draftState says how a draft came about.
type draftState int

const (
	draftNone      draftState = iota // nothing was to be written, or the run ended before
	draftFailed                      // the writer failed
	draftNoService                   // a managed service failed
	draftEmpty                       // the writer had nothing to say
	draftWritten
	draftSalvaged // quotations, where the run was cut short before anything was written
)

// response says whether what is shown responds to the question, whatever it rests on.
type response int

const (
	respondsUnjudged response = iota // nobody can tell
	respondsFailed                   // whoever can tell failed
	respondsNot                      // below the floor
	respondsPartly
	respondsWell
)

// decide returns the status of an answer and the reason for it. It is the only place that
// decides.
func decide(e evidenceState, v verdictState, stop assay.Stop) (assay.Status, assay.Reason) {
	switch {
	case stop == assay.StopAmbiguous:
		return assay.Incomplete, assay.ReasonAmbiguous
	case v.supported:
		return decideSupported(e, v)
	}
	return decideUnsupported(e, v, stop)
}

// decideSupported decides about an answer with at least one supported claim.
func decideSupported(e evidenceState, v verdictState) (assay.Status, assay.Reason) {
	switch {
	case e.found != foundFit:
		return assay.NotFound, assay.ReasonNoAnswer
	case v.responds == respondsNot:
		return assay.NotFound, assay.ReasonOffTopic
	case v.draft == draftSalvaged:
		return assay.Incomplete, assay.ReasonCutShort
	case e.conflict == conflictVersions && e.covered == coveredAll:
		return assay.Conflicting, assay.ReasonVersions
	case e.conflict == conflictFound && e.covered != coveredNone:
		return assay.Conflicting, assay.ReasonDisagree
	case e.conflict == conflictDeclared && e.covered != coveredNone:
		return assay.Conflicting, assay.ReasonDeclared
	case e.covered != coveredAll:
		return assay.Incomplete, assay.ReasonPartsOpen
	case v.torn:
		return assay.Incomplete, assay.ReasonTorn
	case v.failed:
		return assay.Incomplete, assay.ReasonUnverified
	case v.responds == respondsFailed:
		return assay.Incomplete, assay.ReasonUnjudged
	case v.heldBack:
		return assay.Incomplete, assay.ReasonNotAccepted
	case v.gaps():
		return assay.Incomplete, assay.ReasonGaps
	}
	return assay.Answered, assay.ReasonSupported
}

// gaps reports whether something may be missing although each part is covered. A statement
// that was dropped is none if what is shown responds to the question without it.
func (v verdictState) gaps() bool {
	return v.draft != draftWritten || v.open || v.dropped && v.responds != respondsWell
}

// decideUnsupported decides about an answer without a supported claim.
func decideUnsupported(e evidenceState, v verdictState, stop assay.Stop) (assay.Status, assay.Reason) {
	switch {
	case spentBy(stop):
		return assay.Incomplete, assay.ReasonCutShort
	case v.draft == draftNoService:
		return assay.Incomplete, assay.ReasonNoService
	case v.draft == draftFailed:
		return assay.Incomplete, assay.ReasonUnwritten
	case v.failed:
		return assay.Incomplete, assay.ReasonUnverified
	case e.found == foundUngraded:
		return assay.Incomplete, assay.ReasonUngraded
	case e.found == foundNothing:
		return assay.NotFound, assay.ReasonNoHits
	case e.found == foundUnfit || v.draft == draftNone:
		return assay.NotFound, assay.ReasonNoAnswer
	case v.draft == draftEmpty:
		return assay.NotFound, assay.ReasonNoContent
	case e.sufficient: // not having been able to say it is not the same as not having found it
		return assay.Incomplete, assay.ReasonUnsupported
	}
	return assay.NotFound, assay.ReasonUnsupported
}

// spentBy reports whether a run stopped because it ran out of time, calls, tokens or money.
func spentBy(stop assay.Stop) bool {
	switch stop {
	case assay.StopDeadline, assay.StopCallBudget, assay.StopTokenBudget, assay.StopMoneyBudget:
		return true
	}
	return false
}
