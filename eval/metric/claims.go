package metric

import "slices"

// A Claim is one statement of an answer with a judge's verdicts on it. The judge is a verifier or a
// language model.
type Claim struct {
	Held  bool   // the contexts together entail it
	Cited bool   // its citations together entail it; false without citations
	Cites []Cite // its citations

	// Right reports whether the reference answer entails the claim. It is nil if that was not
	// judged, for instance without a reference or with one too short to be a statement.
	Right *bool

	By []int // contexts that entail it alone; indexes, ascending
}

// A Cite is one citation of a claim.
type Cite struct {
	Alone bool // it entails the claim alone
	Rest  bool // the claim's other citations together entail it without this one
}

// Faithfulness is the share of an answer's claims that the contexts entail; 0 without claims.
// Source: Es et al., "Ragas: Automated Evaluation of Retrieval Augmented Generation", EACL 2024.
func Faithfulness(claims []Claim) float64 {
	return shareOf(claims, func(c Claim) bool { return c.Held })
}

// ClaimPrecision is the share of an answer's claims that the reference answer entails; 0 without
// claims. A claim whose Right is nil counts as not entailed. Source: Ru et al., "RAGChecker: A
// Fine-grained Framework for Diagnosing Retrieval-Augmented Generation", NeurIPS 2024.
func ClaimPrecision(claims []Claim) float64 {
	return shareOf(claims, func(c Claim) bool { return c.Right != nil && *c.Right })
}

// ClaimRecall is the share of the reference answer's claims that the answer entails. Reference
// holds this verdict for each of them. Source: as of ClaimPrecision.
func ClaimRecall(reference []bool) float64 {
	return shareOf(reference, func(said bool) bool { return said })
}

// CitationRecall is the share of an answer's claims that their citations entail; 0 without claims.
// A claim without citations counts as not entailed. Sources: Gao et al., "Enabling Large Language
// Models to Generate Text with Citations" (ALCE), EMNLP 2023; Liu, Zhang and Liang, "Evaluating
// Verifiability in Generative Search Engines", Findings of EMNLP 2023, which has the same measure.
func CitationRecall(claims []Claim) float64 {
	return shareOf(claims, func(c Claim) bool { return len(c.Cites) > 0 && c.Cited })
}

// CitationPrecision is the share of an answer's citations that are relevant; 0 without citations. A
// citation is relevant if the claim's citations together entail the claim, and this one either
// entails it alone or is needed by the others.
//
// Source: as of CitationRecall, ALCE. Liu et al. count citations that entail a claim alone and, for
// a claim that only several entail together, those that entail a part of it. If that part is the
// one that the others lack, the two are the same.
func CitationPrecision(claims []Claim) float64 {
	good, all := 0, 0
	for _, c := range claims {
		all += len(c.Cites)
		for _, cite := range c.Cites {
			if c.Cited && (cite.Alone || !cite.Rest) {
				good++
			}
		}
	}
	return share(float64(good), float64(all))
}

// CitationF1 is the harmonic mean of CitationPrecision and CitationRecall; 0 if both are 0. Source:
// Liu et al., as of CitationRecall.
func CitationF1(claims []Claim) float64 {
	p, r := CitationPrecision(claims), CitationRecall(claims)
	return share(2*p*r, p+r)
}

// NoiseSensitivity is the share of an answer's claims that are wrong and that a relevant context
// entails, so that the answer was misled although the right passages were present. With irrelevant,
// it is the share of those that are wrong and that some irrelevant context entails, but no relevant
// one. Less is better; 0 without claims.
//
// Source: Ragas' NoiseSensitivity, both modes, after Ru et al., as of ClaimPrecision. In Ragas a
// context is relevant if it entails a claim of the reference answer; here, if it holds gold.
func NoiseSensitivity(claims []Claim, contexts []Context, irrelevant bool) float64 {
	return shareOf(claims, func(c Claim) bool {
		if c.Right == nil || *c.Right {
			return false
		}
		says := func(relevant bool) bool {
			return slices.ContainsFunc(c.By, func(i int) bool {
				return i >= 0 && i < len(contexts) && contexts[i].Relevant == relevant
			})
		}
		if irrelevant {
			return says(false) && !says(true)
		}
		return says(true)
	})
}

// A Context is a passage that was given to the generator.
type Context struct {
	Used     bool // a shown claim cites it
	Relevant bool // it holds gold
}

// ContextPrecision is the share of the contexts that the answer used; 0 without contexts. Source:
// "context utilization" of Ragas' documentation and of Ru et al., as of ClaimPrecision, here
// counted by passages and based on the citations.
func ContextPrecision(contexts []Context) float64 {
	return shareOf(contexts, func(c Context) bool { return c.Used })
}

// ContextPrecisionRanked is the mean, over the used contexts, of the share of used ones among those
// up to it. It is 1 if the used contexts come first, and 0 if none was used. Source: Ragas' context
// precision at K, with "used" for "relevant".
func ContextPrecisionRanked(contexts []Context) float64 {
	sum, used := 0.0, 0
	for i, c := range contexts {
		if c.Used {
			used++
			sum += float64(used) / float64(i+1)
		}
	}
	return share(sum, float64(used))
}

// A Source is a place in a document that supports a right answer.
type Source struct {
	Held  bool // some context holds it
	Cited bool // a shown claim cites it
}

// ContextRecall is the share of the expected sources that the contexts hold; 0 if none is expected.
// Source: Ragas' ID-based context recall.
func ContextRecall(expected []Source) float64 {
	return shareOf(expected, func(s Source) bool { return s.Held })
}

// shareOf returns the share of xs for which is holds; 0 for empty xs.
func shareOf[T any](xs []T, is func(T) bool) float64 {
	n := 0
	for _, x := range xs {
		if is(x) {
			n++
		}
	}
	return share(float64(n), float64(len(xs)))
}
