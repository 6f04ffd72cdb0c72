package metric

import "slices"

// A Claim is one statement of an answer, and what a judge says of it. Which passages say
// what is always the judge's word: a verifier's, or a language model's.
type Claim struct {
	Held  bool   // the contexts say it, all of them together
	Cited bool   // what it cites says it, all of that together; false where it cites nothing
	Cites []Cite // each citation of it

	// Right says whether the right answer says it; nil: that was not judged, as where no
	// right answer is known, or one too short to say a whole statement.
	Right *bool

	By []int // contexts that say it, each by itself; indexes, ascending
}

// A Cite is one citation of a claim.
type Cite struct {
	Alone bool // it says the claim by itself
	Rest  bool // the claim's other citations say it together without this one
}

// Faithfulness is the share of an answer's claims that the contexts say; 0 without
// claims. Source: Es et al., "Ragas: Automated Evaluation of Retrieval Augmented
// Generation", EACL 2024.
func Faithfulness(claims []Claim) float64 {
	return shareOf(claims, func(c Claim) bool { return c.Held })
}

// ClaimPrecision is the share of an answer's claims that the right answer says; 0 without
// claims. A claim whose Right is nil is none that it says. Source: Ru et al., "RAGChecker:
// A Fine-grained Framework for Diagnosing Retrieval-Augmented Generation", NeurIPS 2024.
func ClaimPrecision(claims []Claim) float64 {
	return shareOf(claims, func(c Claim) bool { return c.Right != nil && *c.Right })
}

// ClaimRecall is the share of the right answer's claims that the answer says: reference
// has of each whether it does. Source: as of ClaimPrecision.
func ClaimRecall(reference []bool) float64 {
	return shareOf(reference, func(said bool) bool { return said })
}

// CitationRecall is the share of an answer's claims that what they cite says; a claim
// that cites nothing counts as one of which it does not; 0 without claims. Sources: Gao
// et al., "Enabling Large Language Models to Generate Text with Citations" (ALCE), EMNLP
// 2023; Liu, Zhang and Liang, "Evaluating Verifiability in Generative Search Engines",
// Findings of EMNLP 2023, which has the same.
func CitationRecall(claims []Claim) float64 {
	return shareOf(claims, func(c Claim) bool { return len(c.Cites) > 0 && c.Cited })
}

// CitationPrecision is the share of an answer's citations that are not beside the point:
// those of a claim that its citations say together and that either say it by themselves
// or without which the others do not. It is 0 without citations.
//
// Source: as of CitationRecall, ALCE. Liu et al. count those that say a claim by
// themselves, and of a claim that only several say together those that say a part of it;
// where a part is what the others lack, that is the same.
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

// CitationF1 is the harmonic mean of CitationPrecision and CitationRecall, 0 where both
// are. Source: Liu et al., as of CitationRecall.
func CitationF1(claims []Claim) float64 {
	p, r := CitationPrecision(claims), CitationRecall(claims)
	return share(2*p*r, p+r)
}

// NoiseSensitivity is the share of an answer's claims that are wrong and that a relevant
// context says: what the answer was misled by though the right passages were there. With
// irrelevant it is the share of those that are wrong and that some irrelevant context
// says, but no relevant one. Contexts has of each context whether it is relevant. Less is
// better; 0 without claims.
//
// Source: Ragas' NoiseSensitivity, both modes, after Ru et al., as of ClaimPrecision. In
// Ragas a context is relevant if it says a claim of the right answer; here, if it holds
// gold.
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

// A Context is a passage that the generator was handed.
type Context struct {
	Used     bool // a shown claim cites it
	Relevant bool // it holds gold
}

// ContextPrecision is the share of the contexts that the answer used; 0 without
// contexts. Source: "context utilization" of Ragas' documentation and of Ru et al., as of
// ClaimPrecision, counted by passages and told from the citations.
func ContextPrecision(contexts []Context) float64 {
	return shareOf(contexts, func(c Context) bool { return c.Used })
}

// ContextPrecisionRanked is the mean, over the contexts that the answer used, of the
// share of used ones down to it: 1 where those come first, and 0 where none was used.
// Source: Ragas' context precision at K, with "used" for "relevant".
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

// A Source is a place that a right answer rests on.
type Source struct {
	Held  bool // some context holds it
	Cited bool // a shown claim cites it
}

// ContextRecall is the share of the expected sources that the contexts hold; 0 where
// none is expected. Source: Ragas' ID-based context recall.
func ContextRecall(expected []Source) float64 {
	return shareOf(expected, func(s Source) bool { return s.Held })
}

// shareOf is the share of xs for which is holds; 0 where there are none.
func shareOf[T any](xs []T, is func(T) bool) float64 {
	n := 0
	for _, x := range xs {
		if is(x) {
			n++
		}
	}
	return share(float64(n), float64(len(xs)))
}
