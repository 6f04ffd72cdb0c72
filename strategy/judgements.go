package strategy

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
)

// validJudgements returns the judgements of a verifier with invalid ones replaced. An unknown
// verdict, or a score that is not a probability, counts as a failure, and the claim is not
// supported. Spans outside the cited passages are dropped.
func validJudgements(claims []role.Claim, said []ground.Judgement) []ground.Judgement {
	out := make([]ground.Judgement, len(said))
	for i, j := range said {
		known := j.Verdict == assay.Supported || j.Verdict == assay.Contradicted || j.Verdict == assay.Unsupported
		switch {
		case j.Failed:
			j.Verdict, j.Reason = assay.Unsupported, cmp.Or(j.Reason, "the verifier failed")
		case !known:
			j = ground.Judgement{Verdict: assay.Unsupported, Reason: "the verifier failed: it gave no verdict", Failed: true}
		case math.IsNaN(j.Score) || j.Score < 0 || j.Score > 1:
			j = ground.Judgement{Verdict: assay.Unsupported, Reason: "the verifier failed: its score is not a probability", Failed: true}
		}
		if math.IsNaN(j.Score) || j.Score < 0 || j.Score > 1 {
			j.Score = 0
		}
		j.Reason = strings.ToValidUTF8(j.Reason, "\uFFFD")
		j.Spans = validSpans(j.Spans, claims[i].Cited)
		out[i] = j
	}
	return out
}

// validSpans returns the valid spans in the cited passages, in the order of the passages, with
// surrounding white space removed and adjoining spans merged. It returns nil if there are none.
func validSpans(spans []ground.Span, cited []ground.Passage) []ground.Span {
	var out []ground.Span
	for _, sp := range spans {
		if sp.Passage < 0 || sp.Passage >= len(cited) {
			continue
		}
		text := cited[sp.Passage].Context
		if sp.Start < 0 || sp.End > len(text) || sp.Start >= sp.End || splits(text, sp.Start) || splits(text, sp.End) {
			continue
		}
		words := text[sp.Start:sp.End]
		sp.Start += len(words) - len(strings.TrimLeft(words, blanks))
		sp.End -= len(words) - len(strings.TrimRight(words, blanks))
		if sp.Start < sp.End {
			out = append(out, sp)
		}
	}
	slices.SortFunc(out, func(a, b ground.Span) int {
		return cmp.Or(cmp.Compare(a.Passage, b.Passage), cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	joined := out[:0]
	for _, sp := range out {
		last := len(joined) - 1
		if last >= 0 && joined[last].Passage == sp.Passage && strings.Trim(cited[sp.Passage].Context[min(joined[last].End, sp.Start):sp.Start], blanks) == "" {
			joined[last].End = max(joined[last].End, sp.End)
			continue
		}
		joined = append(joined, sp)
	}
	return slices.Clip(joined)
}

const blanks = " \t\r\n"

// splits reports whether the offset lies inside a character of text.
func splits(text string, at int) bool { return at < len(text) && !utf8.RuneStart(text[at]) }

// citeDeciding makes a supported claim cite exactly the deciding words, if the verifier named them,
// in each passage that contains some. It reports whether it did.
func (c *checkedClaim) citeDeciding(evidence []assay.Evidence, passages []passage) bool {
	if c.Verdict != assay.Supported || len(c.Spans) == 0 {
		return false
	}
	cited := make([]assay.Citation, len(c.Spans))
	for i, sp := range c.Spans {
		n := c.cited[sp.Passage].Number
		cited[i] = citation(evidence[n-1], passages[n-1], sp.Start, sp.End)
	}
	c.cited = cited
	return true
}
