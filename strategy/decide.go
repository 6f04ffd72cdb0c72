package strategy

import "github.com/assay-rag/assay"

// evidenceState describes the evidence found for a question.
type evidenceState struct {
	found      foundState
	sufficient bool // for some part of the question, by its grade
	covered    coverage
	conflict   conflictState
}

// foundState describes whether the hits can be used to answer.
type foundState int

const (
	foundNothing  foundState = iota // no passage
	foundUngraded                   // passages, but the grader failed
	foundUnfit                      // passages, none of them relevant and above the floor
	foundFit                        // passages that can be used to answer
)

// coverage is the extent to which the parts of the question have a supported claim and sufficient
// evidence.
type coverage int

const (
	coveredNone coverage = iota
	coveredSome
	coveredAll
)

// conflictState is the kind of disagreement of the documents about the question.
type conflictState int

const (
	noConflict       conflictState = iota
	conflictFound                  // claims contradict each other
	conflictDeclared               // the writer declared it
	conflictVersions               // versions of one document answer differently
)

// verdictState describes the draft and the verdicts on it.
type verdictState struct {
	draft           draftState
	supported       bool // at least one claim is supported
	failed          bool // the verifier failed at some claim
	leavesOutMember bool // an entry of a list, a table or a conflict was left out
	open            bool // the writer reports an open point
	dropped         bool // statements were refused and have no replacement
	heldBack        bool // a judge or reflector has not accepted the answer
	responds        response
}

// draftState describes how a draft came about.
type draftState int

const (
	draftNone      draftState = iota // no draft was needed, or the run ended before
	draftFailed                      // the writer failed
	draftNoService                   // a managed service failed
	draftEmpty                       // the writer returned no statement
	draftWritten
	draftQuoted // quotations, because the run was cut short before a draft
)

// response is how well the shown answer responds to the question, independent of its evidence.
type response int

const (
	respondsUnjudged response = iota // there is no role that judges it
	respondsFailed                   // it could not be judged
	respondsNot                      // below the threshold
	respondsPartly
	respondsWell
)

// decide returns the status of an answer and the reason for it. No other function decides the
// status.
func decide(e evidenceState, v verdictState, stop assay.Stop) (assay.Status, assay.Reason) {
	switch {
	case stop == assay.StopAmbiguous:
		return assay.Incomplete, assay.ReasonAmbiguous
	case v.supported:
		status, reason := decideSupported(e, v)
		switch {
		case status != assay.Answered:
		case stop == assay.StopMalformed:
			return assay.Incomplete, assay.ReasonMalformed
		case stop == assay.StopStopped, stop == assay.StopCancelled:
			return assay.Incomplete, assay.ReasonGaps
		}
		return status, reason
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
	case v.draft == draftQuoted:
		return assay.Incomplete, assay.ReasonCutShort
	case e.conflict == conflictVersions && e.covered == coveredAll:
		return assay.Conflicting, assay.ReasonVersions
	case e.conflict == conflictFound && e.covered != coveredNone:
		return assay.Conflicting, assay.ReasonDisagree
	case e.conflict == conflictDeclared && e.covered != coveredNone:
		return assay.Conflicting, assay.ReasonDeclared
	case e.covered != coveredAll:
		return assay.Incomplete, assay.ReasonPartsOpen
	case v.leavesOutMember:
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

// gaps reports whether something may be missing although each part is covered. A dropped statement
// does not count if the shown answer responds well without it.
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
	case stop == assay.StopMalformed:
		return assay.Incomplete, assay.ReasonMalformed
	case e.found == foundNothing:
		return assay.NotFound, assay.ReasonNoHits
	case e.found == foundUnfit || v.draft == draftNone:
		return assay.NotFound, assay.ReasonNoAnswer
	case v.draft == draftEmpty:
		return assay.NotFound, assay.ReasonNoContent
	case e.sufficient: // the evidence was found, only the wording failed
		return assay.Incomplete, assay.ReasonUnsupported
	}
	return assay.NotFound, assay.ReasonUnsupported
}

// spentBy reports whether a run stopped because it ran out of time, calls, tokens or money, reached a
// limit that it shares, or was stopped.
func spentBy(stop assay.Stop) bool {
	switch stop {
	case assay.StopDeadline, assay.StopCallBudget, assay.StopTokenBudget, assay.StopMoneyBudget, assay.StopQuota, assay.StopStopped, assay.StopCancelled:
		return true
	}
	return false
}
