package ui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// An answerState is what a page says about an answer beside its text: why, and what to do next.
type answerState struct {
	Title string
	Why   string // a sentence
	Stop  string // a sentence, if the search was cut short

	More     bool // asking again with more effort may help
	Again    bool // asking again may help
	Rephrase bool // other words or other documents may help
	AskBack  bool // the user chooses a meaning
}

// stateTitles are the headings of the answers that are not complete.
var stateTitles = map[assay.Status]string{
	assay.Incomplete:    "This is not the whole answer",
	assay.Conflicting:   "The documents disagree",
	assay.NotFound:      "Not found in these documents",
	assay.PendingReview: "A person reads this answer first",
	assay.Rejected:      "This answer is not shown",
}

// reasons are the words for why an answer has its status.
var reasons = map[assay.Reason]string{
	assay.ReasonDisagree:          "Sources contradict each other. Both sides are shown, and neither is chosen for you.",
	assay.ReasonDeclared:          "The sources contradict each other according to the model that wrote the answer.",
	assay.ReasonVersions:          "Versions of one document contradict each other. Check which one is in force.",
	assay.ReasonAmbiguous:         "The question can be read in several ways.",
	assay.ReasonCutShort:          "A limit was reached before more could be verified.",
	assay.ReasonNoService:         "A service that this strategy needs did not answer.",
	assay.ReasonUngraded:          "The passages that were found could not be graded.",
	assay.ReasonUnwritten:         "Passages were found, but no answer could be written from them.",
	assay.ReasonUnverified:        "The statements could not be verified, so they are not shown.",
	assay.ReasonUnsupported:       "None of the statements that were written is supported by the documents, so none is shown.",
	assay.ReasonNotAccepted:       "A judge did not accept the answer.",
	assay.ReasonTorn:              "A list, a table or one side of a conflict lacks an entry that could not be verified.",
	assay.ReasonPartsOpen:         "Parts of the question are not answered.",
	assay.ReasonMalformed:         "The model's calls could not be read, and the search ended.",
	assay.ReasonGaps:              "A point stays open, or a statement was dropped because it could not be verified.",
	assay.ReasonUnjudged:          "It could not be judged whether the text answers the question.",
	assay.ReasonNoHits:            "No passage has to do with the question.",
	assay.ReasonNoAnswer:          "Passages were found, and none of them answers the question.",
	assay.ReasonNoContent:         "The passages that were found have no content to answer from.",
	assay.ReasonOffTopic:          "What the documents support does not answer the question.",
	assay.ReasonReview:            "The answer is written and waits for a reviewer's decision.",
	assay.ReasonReviewer:          "A reviewer rejected it.",
	assay.ReasonExpired:           "No reviewer decided before the deadline.",
	assay.ReasonReviewerStatement: "A reviewer added a statement that the documents do not support.",
	assay.ReasonWithheld:          "It holds text that must not leave its document. An administrator was told.",
}

// stops are the words for why a run stopped searching before it was done.
var stops = map[assay.Stop]string{
	assay.StopIterationLimit: "Each part of the question has used its rounds of searching.",
	assay.StopDeadline:       "The time for this question was spent.",
	assay.StopTokenBudget:    "The tokens for this question were spent.",
	assay.StopCallBudget:     "The model calls for this question were spent.",
	assay.StopMoneyBudget:    "The money for this question was spent.",
	assay.StopQuota:          "A limit of your account, your API key or your tenant was reached. An administrator can raise it.",
	assay.StopStopped:        "An administrator stopped all work. Ask again when it has been started.",
	assay.StopCancelled:      "It was cancelled. What had been verified by then is shown.",
	assay.StopNoProgress:     "The last searches found nothing new.",
	assay.StopCircular:       "The next step would have repeated an earlier one.",
	assay.StopMalformed:      "The model's calls could not be read.",
}

// spent are the stops after which more effort may help.
var spent = []assay.Stop{
	assay.StopIterationLimit, assay.StopDeadline, assay.StopTokenBudget, assay.StopCallBudget, assay.StopMoneyBudget, assay.StopNoProgress,
}

// stateOf returns the state of an answer.
func stateOf(a assay.Answer) answerState {
	s := answerState{Title: stateTitles[a.Status], Why: cmp.Or(reasons[a.Reason], a.Justification)}
	if a.AskBack != "" {
		s.Title, s.AskBack = "Which one do you mean?", true
		return s
	}
	switch a.Status {
	case assay.Incomplete:
		s.Stop = stops[a.Stop]
		s.More, s.Again = slices.Contains(spent, a.Stop) || a.Stop == assay.StopSufficient, a.Stop != assay.StopQuota
	case assay.NotFound:
		s.Stop = stops[a.Stop]
		s.More, s.Rephrase = true, true
	case assay.Conflicting:
		s.More = true
	case assay.Rejected:
		s.Again = a.Reason == assay.ReasonExpired
		s.Rephrase = a.Reason == assay.ReasonReviewer
	}
	return s
}

// A side is one side of a conflict: the claims of an answer that rest on one version of one document.
type side struct {
	Title, Place, Version, Link string
	Claims                      []sideClaim
}

// A sideClaim is a claim with the words that it rests on.
type sideClaim struct {
	Text   string
	Claim  shownClaim
	Number int // of the source
	Quote  string
}

// sidesOf groups the claims of a conflicting answer by the document version that they cite first.
func sidesOf(p runPage) []side {
	a := p.Run.Answer
	var sides []side
	var keys []string
	for i, claim := range a.Claims {
		at := slices.IndexFunc(a.Citations, func(c assay.Citation) bool { return c.Claim == i })
		if at < 0 || !isTextSpan(a.Text, claim.Start, claim.End) {
			continue
		}
		c := a.Citations[at]
		key := c.Document + "/" + c.Version
		n := slices.Index(keys, key)
		if n < 0 {
			n, keys = len(keys), append(keys, key)
			one := side{Title: titleOf(c.Title, c.URI), Place: placeOf(c.Page, c.Line), Version: cut(c.Version, 8)}
			if s := slices.IndexFunc(p.Sources, func(s shownSource) bool { return s.Number == c.Number }); s >= 0 {
				one.Link = p.Sources[s].Document
			}
			sides = append(sides, one)
		}
		text := strings.TrimSpace(a.Text[claim.Start:claim.End])
		sides[n].Claims = append(sides[n].Claims, sideClaim{text, p.Text.Claims[i], c.Number, c.Quote})
	}
	if len(sides) < 2 { // one document contradicts itself: the text shows it
		return nil
	}
	return sides
}

// Deadline returns the time by which a decision is expected; zero: none is known.
func (p runPage) Deadline() time.Time {
	if o := p.Run.Answer.Oversight; o != nil {
		return o.Deadline
	}
	return time.Time{}
}
