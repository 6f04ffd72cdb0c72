package eval

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay/ground"
)

// JudgeGrounding runs a verifier on claims, one after the other. It stops at the first error of
// the verifier, and at a score outside [0, 1].
func JudgeGrounding(ctx context.Context, v ground.Verifier, cases []GroundingCase, progress func(done, all int)) ([]Judged, error) {
	judged := make([]Judged, len(cases))
	for i, c := range cases {
		j, err := v.Verify(ctx, c.Claim, c.Cited())
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", c.ID, err)
		}
		if !(j.Score >= 0 && j.Score <= 1) {
			return nil, fmt.Errorf("claim %s: the verifier's score %v is not in [0, 1]", c.ID, j.Score)
		}
		judged[i] = Judged{ID: c.ID, Gold: c.Verdict, Verdict: j.Verdict, Score: j.Score, Reason: j.Reason, Refused: j.Refused, Kind: c.Kind, Spans: j.Spans}
		if progress != nil {
			progress(i+1, len(cases))
		}
	}
	return judged, nil
}
