package judge

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/ground"
)

// supporting asks a verifier who says what, and remembers it.
type supporting struct {
	verifier ground.Verifier
	contexts []ground.Passage
	usage    assay.Usage
}

// says reports whether passages say a claim. A verifier that failed is an error: no
// measure is made of what nobody knows.
func (s *supporting) says(ctx context.Context, claim string, passages ...ground.Passage) (bool, error) {
	v, err := s.verdict(ctx, claim, passages...)
	return v == assay.Supported, err
}

func (s *supporting) verdict(ctx context.Context, claim string, passages ...ground.Passage) (assay.Verdict, error) {
	if len(passages) == 0 {
		return assay.Unsupported, nil
	}
	if err := ctx.Err(); err != nil {
		return assay.Unsupported, err
	}
	j, err := s.verifier.Verify(ctx, claim, passages)
	s.usage = s.usage.Add(j.Usage)
	if err != nil {
		return assay.Unsupported, fmt.Errorf("the verifier failed: %w", err)
	}
	if j.Failed {
		return assay.Unsupported, fmt.Errorf("the verifier failed: %s", j.Reason)
	}
	return j.Verdict, nil
}

// claim says what the contexts and the citations say of a claim.
func (s *supporting) claim(ctx context.Context, c Claim) (metric.Claim, error) {
	var out metric.Claim
	alone := make([]bool, len(s.contexts))
	var err error
	for i, p := range s.contexts {
		if alone[i], err = s.says(ctx, c.Text, p); err != nil {
			return out, err
		}
		if alone[i] {
			out.By = append(out.By, i)
		}
	}
	out.Held = len(out.By) > 0
	if !out.Held && len(s.contexts) > 1 {
		if out.Held, err = s.says(ctx, c.Text, s.contexts...); err != nil {
			return out, err
		}
	}
	// What says a claim by itself says it together with others.
	together := func(which []int) (bool, error) {
		var passages []ground.Passage
		for _, i := range which {
			if alone[i] {
				return true, nil
			}
			passages = append(passages, s.contexts[i])
		}
		if len(passages) < 2 {
			return false, nil
		}
		return s.says(ctx, c.Text, passages...)
	}
	var known []int
	for _, i := range c.Cited {
		if i >= 0 && i < len(s.contexts) {
			known = append(known, i)
		}
	}
	if out.Cited, err = together(known); err != nil {
		return out, err
	}
	for at, i := range c.Cited {
		cite := metric.Cite{Rest: out.Cited}
		if i >= 0 && i < len(s.contexts) {
			cite.Alone = alone[i]
			if cite.Rest, err = together(others(c.Cited, at, len(s.contexts))); err != nil {
				return out, err
			}
		}
		out.Cites = append(out.Cites, cite)
	}
	return out, nil
}

// others are the contexts, of n, that a claim cites besides the one at a place.
func others(cited []int, at, n int) []int {
	var out []int
	for j, i := range cited {
		if j != at && i >= 0 && i < n {
			out = append(out, i)
		}
	}
	return out
}
