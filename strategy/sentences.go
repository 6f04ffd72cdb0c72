package strategy

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/run"
)

// excludedScore is the score up to which a refusal is for good: so much is left of one for
// which a number, unit, name or denial differs (see ground.Learned).
const excludedScore = 0.04

// excluded reports whether the verifier is as good as certain that what c cites does not
// say it.
func (c checkedClaim) excluded() bool {
	return len(c.cited) > 0 && c.Verdict != assay.Supported && c.Score <= excludedScore
}

// inWholeSentences has sentences judged as they stand of which a part was refused, in one
// step: whoever says a sentence says its parts, which may be hard to read one by one. A
// part that is contradicted stays so, and so does one that is as good as excluded: read as a
// whole, a long sentence can hide the number or unit that the part was refused for. Where the run has no room for that, what was refused
// stays refused.
func (e Env) inWholeSentences(ctx context.Context, s run.Scope, w *writing, claims []checkedClaim, evidence []assay.Evidence, passages []passage, said *notes) error {
	var sentences []checkedClaim
	for i, c := range claims {
		parts := 0
		refused, lost := false, false
		for _, o := range claims {
			if o.sameSentence(c) {
				parts++
				refused = refused || o.Verdict == assay.Unsupported && !o.Failed
				lost = lost || o.Failed || o.Verdict == assay.Contradicted || o.excluded()
			}
		}
		if first := i == 0 || !claims[i-1].sameSentence(c); !first || parts < 2 || !refused || lost || c.said == c.sentence {
			continue
		}
		whole := checkedClaim{
			Claim:     ground.Claim{Text: c.sentence, Start: c.From, End: c.To, From: c.From, To: c.To, Evidence: c.Evidence},
			statement: c.statement, section: c.section, sentence: c.sentence,
		}
		whole.cited = cite(whole.Claim, c.sentence, evidence, passages).cited
		sentences = append(sentences, whole)
	}
	if len(sentences) == 0 {
		return nil
	}
	resolve(e.Question, sentences)
	err := e.judge(ctx, s, sentences, evidence, passages, said)
	if stop := stopOf(err); stop != "" {
		w.ended = stop
		return nil
	}
	if err != nil {
		return err
	}
	for i, c := range claims {
		k := slices.IndexFunc(sentences, func(w checkedClaim) bool { return w.sameSentence(c) && w.Verdict == assay.Supported })
		if k >= 0 && c.Verdict != assay.Supported {
			claims[i].Judgement, claims[i].cited = sentences[k].Judgement, slices.Clone(sentences[k].cited)
		}
	}
	return nil
}
