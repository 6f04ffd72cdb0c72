package answers

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
)

// stages are the stages of gold, in order.
var stages = []Stage{Mislabelled, NotIngested, NotRetrieved, RankedTooLow, GradedAway, NotCited}

// lost returns the stage at which a case whose outcome is not right was lost. It follows the gold
// through the journal. If any of the gold is enough, the place that came furthest counts, otherwise
// the one that was lost first.
//
// A passage was ranked too low if no grader was shown it, or if a grader accepted it but there was
// no room for it in the evidence. It was graded away if a grader was shown it and rejected it, or
// if it was accepted but no answer was written.
func (o *Outcome) lost(places []goldPlace, t trail) Stage {
	switch {
	case o.Error != "":
		return Broke
	case o.Unanswerable:
		return AnsweredWrongly
	case len(places) == 0:
		return o.afterwards(nil, t)
	}
	reached := make([]int, len(places)) // index of the stage that ended it; len(stages): it was cited
	for i, p := range places {
		reached[i] = o.reached(p, t)
	}
	at := slices.Max(reached)
	if o.AllGold {
		at = slices.Min(reached)
	}
	if at < len(stages)-1 {
		return stages[at]
	}
	return o.afterwards(places, t)
}

// reached returns the index of the stage at which a place of gold was lost, or len(stages) if it
// was cited.
func (o *Outcome) reached(p goldPlace, t trail) int {
	stage := func(s Stage) int { return slices.Index(stages, s) }
	switch {
	case slices.ContainsFunc(o.Answer.Citations, p.holdsCitation):
		return len(stages)
	case slices.ContainsFunc(t.evidence(), func(ev assay.Evidence) bool { return p.holdsHit(ev.Hit) }):
		return stage(NotCited)
	case len(p.spots) == 0 && p.mistake != "":
		return stage(Mislabelled)
	case len(p.spots) == 0:
		return stage(NotIngested)
	}
	at := stage(NotRetrieved)
	for _, h := range t.ranked() {
		if !p.holdsHit(h) {
			continue
		}
		switch id := h.Chunk.ID; {
		case t.taken(id) && !t.wrote: // accepted, but the run gave up without a draft
			return stage(GradedAway)
		case t.shown(id) && !t.taken(id):
			at = max(at, stage(GradedAway))
		default:
			at = max(at, stage(RankedTooLow))
		}
	}
	return at
}

// afterwards returns the stage for a case that was lost after the generator was given the gold, or
// that has no known gold. The verifier is at fault if it rejected a right statement of a draft, or
// accepted one that a judging model finds unsupported by the passages.
func (o *Outcome) afterwards(places []goldPlace, t trail) Stage {
	cited := len(places) == 0 && len(o.Answer.Claims) > 0 || slices.ContainsFunc(o.Answer.Citations, func(c assay.Citation) bool {
		return slices.ContainsFunc(places, func(p goldPlace) bool { return p.holdsCitation(c) })
	})
	for _, c := range t.checked {
		if c.judgement.Verdict != assay.Supported && o.says(c.claim.Text) && (len(o.Answers) > 0 || o.citesGold(c, places, t)) {
			return VerifierWrong
		}
	}
	switch {
	case !cited && o.Answer.Status == assay.NotFound && (!t.wrote || !t.refused()):
		return GradedAway
	case !cited:
		return NotCited
	case o.unfaithful():
		return VerifierWrong
	}
	return GeneratedWrong
}

// refused reports whether the verifier supported none of the claims.
func (t trail) refused() bool {
	return !slices.ContainsFunc(t.checked, func(c checked) bool { return c.judgement.Verdict == assay.Supported })
}

// unfaithful reports whether a judging model found a shown claim that the passages do not support.
// The local judge does not count, because it is itself a verifier.
func (o *Outcome) unfaithful() bool {
	share, judged := o.Metrics["faithfulness"]
	return judged && share < 1 && !strings.HasPrefix(o.Judges["faithfulness"], "local")
}

// says reports whether a statement contains a reference answer, or the case has none.
func (o *Outcome) says(text string) bool {
	return len(o.Answers) == 0 || metric.SaysAny(text, o.Answers)
}

// citesGold reports whether a claim of a draft quotes gold.
func (o *Outcome) citesGold(c checked, places []goldPlace, t trail) bool {
	for _, ev := range t.evidence() {
		if !slices.ContainsFunc(places, func(p goldPlace) bool { return p.holdsHit(ev.Hit) }) {
			continue
		}
		for _, passage := range c.claim.Cited {
			if passage.Quote != "" && strings.Contains(ev.Hit.Text, passage.Quote) {
				return true
			}
		}
	}
	return false
}

// remedies are the usual remedies for each loss, in the order to try them.
var remedies = map[Stage]string{
	Mislabelled:     "mislabelled: the gold quotes words that are not in its document: correct the set or update the document; no setting helps",
	NotIngested:     "not ingested: check what assay ingest skipped, and that the gold names an existing document",
	NotRetrieved:    "not retrieved: check how the documents are split into passages, and their headings; then try --strategy fusion or advanced, another encoder, or synonyms (the domain file of the configuration)",
	RankedTooLow:    "ranked too low: try more candidates and evidence (strategies.corrective.candidates and keep), a reranker, or assay tune",
	GradedAway:      "graded away: try a lower relevance floor (strategies.corrective.floor), a model as the grader, or --strategy corrective",
	NotCited:        "not cited: try a model as the generator, or shorter passages, which contain less besides the answer",
	VerifierWrong:   "verifier wrong: see what it rejected and why with assay show RUN; try another verifier, or run assay eval ground on such claims",
	GeneratedWrong:  "generated wrongly: the passage was cited but the answer differs: try a larger model as the generator, or --strategy corrective",
	AnsweredWrongly: "answered wrongly: the documents have no answer: try a higher relevance floor or answerability threshold (strategies.corrective.floor and held); see assay tune",
	Broke:           "ended in an error: see the question or the outcomes",
}

// chunkingRecall is the recall below which the chunking of the documents should be checked before
// anything else.
const chunkingRecall = 0.80
