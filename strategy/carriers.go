package strategy

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

// keepCarriers drops of a supported claim's citations those that have nothing to do with
// it: a draft that cites three passages where one says it shows that one. What says the
// claim by itself, by its words, carries it; where nothing does, as when it takes several
// together or the passages are in another language, all that share a word with it stay,
// and where none shares one, all.
func (c *checkedClaim) keepCarriers(ctx context.Context, passages []passage) {
	if c.Verdict != assay.Supported || len(c.cited) < 2 {
		return
	}
	var alone, sharing []assay.Citation
	words := wordsOf(c.Claim, c.row)
	for _, cit := range c.cited {
		p := passages[cit.Number-1]
		if c.saidBy(ctx, passageOf(cit, p)) {
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

// saidBy reports whether the local verifier finds the claim in one passage. That is plain
// computation, which a caller who has gone does not end.
func (c *checkedClaim) saidBy(ctx context.Context, p ground.Passage) bool {
	ctx = context.WithoutCancel(ctx)
	claim := c.Text
	if c.row != nil {
		claim = c.row.Claim()
	}
	j, err := ground.Local{}.Verify(ctx, claim, []ground.Passage{p})
	return err == nil && j.Verdict == assay.Supported
}
