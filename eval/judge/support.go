package judge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/sentence"
)

// A statement is a claim verbatim, in a self-contained form, and with the whole sentence that it
// comes from.
type statement struct{ text, alone, whole string }

// statements returns the claims of a text, in their order.
func statements(question, text string, claims []string) []statement {
	spans := sentence.Spans(text)
	out := make([]statement, len(claims))
	before := ""
	for i, claim := range claims {
		out[i] = statement{claim, ground.Standalone(question, before, claim), claim}
		before = claim
		at := strings.Index(text, claims[i])
		for _, sp := range spans {
			if at >= 0 && sp.Start <= at && at+len(claims[i]) <= sp.End {
				out[i].whole = text[sp.Start:sp.End]
			}
		}
	}
	return out
}

// supporting asks a verifier which passages support a claim.
type supporting struct {
	verifier ground.Verifier
	contexts []ground.Passage
	usage    assay.Usage
}

// says reports whether passages support a claim in its self-contained form, with pronouns resolved
// by the answer rather than by the passages. If the passages have all content words that the
// resolution added, support for the verbatim claim or for its whole sentence suffices. A verifier
// failure is returned as an error, and no measure is computed from it.
func (s *supporting) says(ctx context.Context, claim statement, passages ...ground.Passage) (bool, error) {
	tried := []string{}
	for _, text := range []string{claim.alone, claim.text, claim.whole} {
		if slices.Contains(tried, text) || len(tried) > 0 && !claim.addsOnly(passages) {
			continue
		}
		tried = append(tried, text)
		if v, err := s.verdict(ctx, text, passages...); err != nil || v == assay.Supported {
			return err == nil, err
		}
	}
	return false, nil
}

// addsOnly reports whether the passages and their headings have all content words that were added
// to make a claim self-contained.
func (st statement) addsOnly(passages []ground.Passage) bool {
	had := map[string]bool{}
	for _, w := range lexical.Content(st.text) {
		had[w] = true
	}
	for _, p := range passages {
		for _, w := range lexical.Content(strings.Join(p.Heading, "\n") + "\n" + p.Context) {
			had[w] = true
		}
	}
	return !slices.ContainsFunc(lexical.Content(st.alone), func(w string) bool { return !had[w] })
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

// claim returns the support of a claim by the contexts and by its citations.
func (s *supporting) claim(ctx context.Context, c Claim, st statement) (metric.Claim, error) {
	var out metric.Claim
	alone := make([]bool, len(s.contexts))
	var err error
	for i, p := range s.contexts {
		if alone[i], err = s.says(ctx, st, p); err != nil {
			return out, err
		}
		if alone[i] {
			out.By = append(out.By, i)
		}
	}
	out.Held = len(out.By) > 0
	if !out.Held && len(s.contexts) > 1 {
		if out.Held, err = s.says(ctx, st, s.contexts...); err != nil {
			return out, err
		}
	}
	// A passage that supports a claim alone supports it together with others.
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
		return s.says(ctx, st, passages...)
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

// others returns the contexts, of n, that a claim cites besides the one at index at.
func others(cited []int, at, n int) []int {
	var out []int
	for j, i := range cited {
		if j != at && i >= 0 && i < n {
			out = append(out, i)
		}
	}
	return out
}
