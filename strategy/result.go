package strategy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// A Result is an answer with the state from which its status is decided.
type Result struct {
	assay.Answer

	evidence evidenceState
	verdicts verdictState
	spent    assay.Stop // why the search for some part was cut short; empty: not cut short
	details  details
	closest  []assay.Closest // shown if the answer has no claims
	dropped  []assay.Gap     // refused statements, missing unless the answer is complete without them
	parts    []string        // the sub-questions it answers; empty: the question itself
	sections []string        // sections with a claim
	passages []passage       // of the evidence, by number from 1
	judged   bool            // relevance to the question was judged
	lacks    []string        // missing points by the answer grader
}

// details holds the facts for a justification.
type details struct {
	hits          int
	top           float64 // relevance of the best hits
	answerability string  // why the hits do not hold the answer, by the reader; empty: unknown
	shortfall     string  // the budget error's numbers
	failure       string  // of the role that failed
	service       string  // the managed service
	supported     int     // claims
	refused       int     // unsupported claims
	failed        int     // claims on which the verifier failed
	open, of      int     // parts not fully answered, and all parts
	pair          [2]int  // claims that contradict each other
	newest        string  // newest of the versions that disagree
	quotedAfter   assay.Stop
	ambiguous     string
	remarks       []string // reasons for holding the answer back
}

// settle decides the status. It must be called after each change of the state that the status
// depends on. An answer that is not found, or asks back, shows no claims.
func (r *Result) updateStatus() {
	r.Status, r.Reason = decide(r.evidence, r.verdicts, cmp.Or(r.spent, r.Stop))
	r.Missing = without(r.Missing, r.dropped)
	if r.Status != assay.Answered {
		r.Missing = withGaps(r.Missing, r.dropped...)
	}
	if r.Status == assay.NotFound {
		r.Claims, r.Citations, r.Readings = []assay.Claim{}, []assay.Citation{}, nil
	}
	if r.Status == assay.NotFound || r.Reason == assay.ReasonAmbiguous {
		r.Review = withoutClaims(r.Review)
	}
	if len(r.Claims) == 0 {
		r.Text, r.Closest = r.emptyText(), r.closest
	}
	r.Justification = r.justify()
}

// withoutClaims returns a review whose sub-answers have no claims.
func withoutClaims(review *assay.Review) *assay.Review {
	if review == nil || len(review.SubAnswers) == 0 {
		return review
	}
	out := *review
	out.SubAnswers = slices.Clone(review.SubAnswers)
	for i, sub := range out.SubAnswers {
		out.SubAnswers[i] = assay.SubAnswer{Question: sub.Question, Claims: []assay.Claim{}, Citations: []assay.Citation{}}
	}
	return &out
}

// empty returns the text of an answer without claims.
func (r *Result) emptyText() string {
	switch r.Reason {
	case assay.ReasonAmbiguous:
		return r.AskBack
	case assay.ReasonCutShort:
		if r.evidence.found == foundFit {
			return "Passages were found, but the run ended before an answer was written and verified."
		}
		return "Not answered: the run ended before the search was complete."
	case assay.ReasonUngraded:
		return "Not answered: the passages could not be graded."
	case assay.ReasonMalformed:
		return "Not answered: the search ended early in an error."
	case assay.ReasonNoService:
		return "Not answered: the managed service did not answer."
	case assay.ReasonUnwritten:
		return "Passages were found, but no answer could be written from them."
	case assay.ReasonUnverified:
		return "Passages were found, but what was written from them could not be verified."
	case assay.ReasonUnsupported:
		if r.Status == assay.Incomplete {
			return "Passages were found, but nothing that was written from them could be verified."
		}
	}
	return "Not found in these documents."
}

// justify returns the justification of the status.
func (r *Result) justify() string {
	if text := r.whyShown(); text != "" {
		return strings.Join(append([]string{strings.TrimSuffix(text, ".")}, r.details.remarks...), "; ") + "."
	}
	d := r.details
	switch r.Reason {
	case assay.ReasonAmbiguous:
		return d.ambiguous
	case assay.ReasonCutShort:
		if d.shortfall != "" {
			return fmt.Sprintf("The run was cut short (%s: %s).", cmp.Or(r.spent, r.Stop), d.shortfall)
		}
		return fmt.Sprintf("The run was cut short (%s).", cmp.Or(r.spent, r.Stop))
	case assay.ReasonUngraded:
		return "The grader failed: " + remarkLine(d.failure)
	case assay.ReasonMalformed:
		return "The search ended early because the actor's calls were malformed or its replies unreadable, and nothing that was found until then answers the question."
	case assay.ReasonNoService:
		return remarkLine(d.service + " failed: " + d.failure)
	case assay.ReasonUnwritten:
		return "The generator failed: " + remarkLine(d.failure)
	case assay.ReasonUnverified:
		return fmt.Sprintf("The verifier could not judge %d of the %s drafted, and none is supported by its citations.", d.failed, count(d.refused, "statement", "statements"))
	case assay.ReasonUnsupported:
		return "Passages were found, but " + noneSupported(d.refused) + "."
	case assay.ReasonNoContent:
		return "Passages were found, but no answer could be drafted from them."
	case assay.ReasonNoHits:
		return "No passage contains any of the question's words."
	case assay.ReasonOffTopic:
		return fmt.Sprintf("What the documents say does not answer the question (relevance %.2f).", *r.Relevance)
	}
	if d.answerability != "" {
		return "No passage answers the question: " + d.answerability + "."
	}
	return fmt.Sprintf("No passage answers the question; the closest has relevance %.2f.", d.top)
}

// whyShown returns the justification of an answer that shows claims, or "" if it shows none.
func (r *Result) whyShown() string {
	if len(r.Claims) == 0 {
		return ""
	}
	d := r.details
	text := fmt.Sprintf("%s supported by the cited words", count(d.supported, "statement is", "statements are"))
	if d.refused > 0 {
		text += fmt.Sprintf("; %s not and left out", count(d.refused, "was", "were"))
	}
	if d.failed > 0 {
		text += fmt.Sprintf(" (the verifier failed on %d of them)", d.failed)
	}
	switch r.Reason {
	case assay.ReasonDisagree:
		return fmt.Sprintf("The documents disagree: statements %d and %d contradict each other.", d.pair[0]+1, d.pair[1]+1)
	case assay.ReasonDeclared:
		return fmt.Sprintf("The documents disagree, according to the generator: statements %d and %d, each supported by its citations, cannot both hold.", d.pair[0]+1, d.pair[1]+1)
	case assay.ReasonVersions:
		return fmt.Sprintf("Versions of one document disagree, and the question does not say which it means; the newest comes first: %s.", d.newest)
	case assay.ReasonCutShort:
		return fmt.Sprintf("The run was cut short (%s) before anything was written; the answer quotes passages selected without a model.", d.quotedAfter)
	case assay.ReasonPartsOpen:
		if d.of == 1 {
			return text + "; the question is not fully answered."
		}
		return text + fmt.Sprintf("; %d of %d parts are not fully answered.", d.open, d.of)
	case assay.ReasonTorn:
		return text + "; a list, a table or a conflict is incomplete without the omitted statements."
	case assay.ReasonUnjudged:
		return text + "; whether they answer the question could not be judged."
	case assay.ReasonMalformed:
		return text + "; the search ended early because the actor's calls were malformed or its replies unreadable."
	case assay.ReasonSupported, assay.ReasonNotAccepted:
		return text + "; the evidence was graded sufficient."
	}
	return text + "; the question may not be fully answered."
}

// noneSupported says that none of the n drafted statements is supported.
func noneSupported(n int) string {
	if n == 1 {
		return "the statement drafted from them is not supported by its citations"
	}
	return fmt.Sprintf("none of the %d statements drafted from them is supported by its citations", n)
}

// holdBack records that a judge or reflector has not accepted the answer, and the changes
// requested. If nothing else is missing, the question itself is.
func (r *Result) holdBack(wanted []assay.Gap, why string) {
	if len(wanted) == 0 && len(r.Missing) == 0 {
		wanted = []assay.Gap{{Text: questionSources(r.Question).line(r.Question)}}
	}
	r.Missing = withGaps(r.Missing, wanted...)
	r.details.remarks = append(r.details.remarks, why)
	r.verdicts.heldBack = true
	r.updateStatus()
}

// withSearchesOf returns result r with the searches of now, which were made after r. Own are the
// notes to keep from r.
func withSearchesOf(r, now Result, own []assay.Note) Result {
	r.Stop, r.Searched, r.Iterations, r.Index = now.Stop, now.Searched, now.Iterations, now.Index
	r.Notes = append(slices.Clone(now.Notes), without(own, now.Notes)...)
	r.updateStatus()
	return r
}

// stopped records that the run had no room for a step, unless the answer is complete or the run had
// already stopped for such a reason or in an error state, in which no answer is complete.
func (r *Result) stopped(stop assay.Stop) {
	if stop != "" && r.Status != assay.Answered && !spentBy(r.Stop) && r.Stop != assay.StopMalformed {
		r.Stop = stop
		r.updateStatus()
	}
}
