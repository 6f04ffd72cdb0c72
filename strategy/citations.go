package strategy

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

// keepSupportingCitations drops citations of a supported claim that are unrelated to it, since a
// draft may cite three passages when only one supports the claim. It keeps the citations that
// support the claim by themselves, judged by their words. If none does, because the claim needs
// several passages or they are in another language, it keeps all that share a word with the claim.
// If none shares a word, it keeps all.
func (c *checkedClaim) keepSupportingCitations(ctx context.Context, passages []passage) {
	if c.Verdict != assay.Supported || len(c.cited) < 2 {
		return
	}
	var alone, sharing []assay.Citation
	words := wordsOf(c.Claim, c.row)
	for _, cit := range c.cited {
		p := passages[cit.Number-1]
		if c.supportedBy(ctx, passageOf(cit, p)) {
			alone = append(alone, cit)
		}
		if start, end := ground.Locate(words, p.Text); start < end {
			sharing = append(sharing, cit)
		}
	}
	switch {
	case len(alone) > 0:
		c.cited = alone
	case len(sharing) > 0:
		c.cited = sharing
	}
}

// supportedBy reports whether the local verifier finds the claim supported by one passage. This is
// plain computation, so it ignores cancellation.
func (c *checkedClaim) supportedBy(ctx context.Context, p ground.Passage) bool {
	ctx = context.WithoutCancel(ctx)
	claim := c.Text
	if c.row != nil {
		claim = c.row.Claim()
	}
	j, err := ground.Local{}.Verify(ctx, claim, []ground.Passage{p})
	return err == nil && j.Verdict == assay.Supported
}
