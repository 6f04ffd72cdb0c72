package ground

import (
	"context"
	"regexp"
	"strings"

	"github.com/assay-rag/assay"
)

// balanced are words by which one half of a sentence may take back what the other says.
var balanced = regexp.MustCompile(`(?i)\b(?:but|while|whereas|however|although|though|except|unless|only|if|when|until|yet|otherwise|instead|rather)\b`)

// halfSays looks for a sentence of which one half says a claim by itself: "The warranty lasts
// two years" of "The warranty lasts two years and does not cover damage by water". The halves
// are those that a sentence is cut into as claims; where a word weighs one against the other
// neither stands alone. ok is false where there is none. The error is the end of ctx.
func halfSays(ctx context.Context, claim string, cited []Passage) (j Judgement, ok bool, err error) {
	for i, p := range cited {
		if err := ctx.Err(); err != nil {
			return j, false, err
		}
		for _, sp := range paragraphsOf(p.Context) {
			text := p.Context[sp.Start:sp.End]
			halves := parts(text)
			if len(halves) < 2 || balanced.MatchString(text) || deniedTogether(text, read(claim).terms) {
				continue
			}
			for _, h := range halves {
				half := strings.TrimRight(strings.TrimSpace(h.lead+" "+text[h.Start:h.End]), ",;. ") + "."
				if j = judge(claim, Passage{Quote: half, Context: half, Heading: p.Heading}); j.Verdict == assay.Supported {
					return Judgement{
						Verdict: assay.Supported, Score: strictScore, Reason: "a part of a sentence of the source says it in the same words",
						Spans: []Span{{Passage: i, Start: sp.Start, End: sp.End}},
					}, true, nil
				}
			}
		}
	}
	return Judgement{}, false, nil
}
