package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/judged"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/run"
)

// Limits of a repair: the claims of a draft, and for each claim the passages that share the most
// words with it.
const (
	maxRepairs  = 8
	maxPassages = 3
)

// minBearing is the least share of a claim's content words in a passage that may support it.
const minBearing = 0.3

// repair verifies claims that their citations neither support nor contradict against the rest of
// the evidence, in one step. A claim that this supports gets the new citations and is marked.
// Evidence that contradicts it, including the originally cited source, is then added. If the run
// has no room for this, the claims stay refused.
func (e Env) repair(ctx context.Context, s run.Scope, w *checkedDraft, claims []checkedClaim, evidence []assay.Evidence, passages []passage, notes *noteList) ([]checkedClaim, error) {
	var which []int
	var open []checkedClaim
	for i, c := range claims {
		if c.statement < 0 || c.Failed || c.Verdict != assay.Unsupported || len(open) == maxRepairs {
			continue
		}
		if other := c.citeElsewhere(evidence, passages); len(other.cited) > 0 {
			which, open = append(which, i), append(open, other)
		}
	}
	if len(open) == 0 {
		return claims, nil
	}
	err := e.judge(ctx, s.Sub(judged.Elsewhere, 0), open, evidence, passages, notes)
	if stop := stopOf(err); stop != "" {
		notes.say(assay.NoteLimit, fmt.Sprintf("verifier: the run had no budget left to check other sources for %s (%s)", count(len(open), "unsupported claim", "unsupported claims"), stop))
		w.ended = stop
		return claims, nil
	}
	if err != nil {
		return claims, err
	}
	var repaired []checkedClaim
	for k, i := range which {
		if open[k].repairs() {
			open[k].repaired = true
			claims[i] = open[k]
			repaired = append(repaired, open[k])
		}
	}
	others := slices.DeleteFunc(w.opposing(repaired, evidence, passages, e.ReaderModel != ""), func(o checkedClaim) bool {
		return slices.ContainsFunc(claims, func(c checkedClaim) bool { return c.Text == o.Text })
	})
	if len(others) == 0 {
		return claims, nil
	}
	err = e.judge(ctx, s.Sub(judged.Opposed, 0), others, evidence, passages, notes)
	if stop := stopOf(err); stop != "" { // an unjudged side does not count, but the claim that it opposes is uncertain
		w.ended = stop
		for k, i := range which {
			if open[k].repaired {
				claims[i].Judgement = ground.Judgement{Verdict: assay.Unsupported, Reason: fmt.Sprintf("the run had no budget left to judge what another source says (%s)", stop)}
				claims[i].repaired = false
			}
		}
		return claims, nil
	}
	return append(claims, others...), err
}

// repairs reports whether c, with its citations of other evidence, may replace a refused claim.
func (c checkedClaim) repairs() bool {
	return c.Verdict == assay.Supported && c.Score >= judged.RepairScore
}

// citeElsewhere returns c with new citations: uncited evidence that shares the most words with it,
// followed by its original evidence, which may contradict the new. The result has no citations if
// no other evidence is near.
func (c checkedClaim) citeElsewhere(evidence []assay.Evidence, passages []passage) checkedClaim {
	words := cmp.Or(c.standalone, wordsOf(c.Claim, c.row))
	type bearing struct {
		number int
		share  float64
	}
	var best []bearing
	for n := 1; n <= len(evidence); n++ {
		if passages[n-1].Text == "" || slices.ContainsFunc(c.cited, func(cit assay.Citation) bool { return cit.Number == n }) {
			continue
		}
		if share := sharedWords(words, passages[n-1].Text); share >= minBearing {
			best = append(best, bearing{n, share})
		}
	}
	slices.SortStableFunc(best, func(a, b bearing) int { return cmp.Compare(b.share, a.share) })
	named := c.Evidence
	c.Evidence = nil
	for _, b := range best[:min(len(best), maxPassages)] {
		c.Evidence = append(c.Evidence, b.number)
	}
	if len(c.Evidence) > 0 {
		c.Evidence = append(c.Evidence, named...)
	}
	c.Judgement, c.cited = ground.Judgement{}, cite(c.Claim, words, evidence, passages).cited
	return c
}

// sharedWords returns the share of a text's content words, by stem, that other contains.
func sharedWords(text, other string) float64 {
	words, held := lexical.Content(text), lexical.Content(other)
	if len(words) == 0 {
		return 0
	}
	n := 0
	for _, w := range words {
		if slices.Contains(held, w) {
			n++
		}
	}
	return float64(n) / float64(len(words))
}
