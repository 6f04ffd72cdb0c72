package role

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/language"
	"github.com/assay-rag/assay/internal/lexical"
)

// Guarded combines a verifier that asks a language model or a service with a local guard.
// A claim is Supported if v supports it, the guard is not sure that it is Contradicted and
// no hard check of the guard refuses it. If the guard fails, the claim is Unsupported.
//
// The guard reads one language. If a claim is clearly in another language than all passages
// that it cites, only its numbers are compared.
func Guarded(v Verifier, guard ground.Verifier) Verifier { return guarded{v, ByClaim(guard)} }

type guarded struct{ verifier, guard Verifier }

// Verify implements [Verifier].
func (g guarded) Verify(ctx context.Context, c Caller, claims []Claim) ([]ground.Judgement, error) {
	out, err := g.verifier.Verify(ctx, c, claims)
	if err != nil || len(out) != len(claims) {
		return out, err
	}
	var which []int
	var open []Claim
	for i, claim := range claims {
		switch {
		case out[i].Verdict != assay.Supported || out[i].Failed:
		case translated(claim):
			out[i] = sameNumbers(out[i], claim)
		case unrelated(claim):
			out[i] = refused("almost none of its words are in the cited passages")
		default:
			which, open = append(which, i), append(open, claim)
		}
	}
	if len(open) == 0 {
		return out, nil
	}
	checked, err := g.guard.Verify(ctx, c, open)
	if err != nil {
		return nil, err
	}
	if len(checked) != len(open) {
		return nil, fmt.Errorf("the guard returned %d judgements for %d claims: %w", len(checked), len(open), assay.ErrDamaged)
	}
	for k, i := range which {
		out[i] = allowed(out[i], checked[k])
	}
	return out, nil
}

// refused returns the judgement of a claim that a check refuses.
func refused(reason string) ground.Judgement {
	return ground.Judgement{Verdict: assay.Unsupported, Reason: reason, Refused: reason}
}

// guardFailed returns the judgement of a claim that the guard could not check.
func guardFailed(reason string) ground.Judgement {
	return ground.Judgement{Verdict: assay.Unsupported, Reason: reason, Failed: true}
}

// verdicts are the verdicts that a guard may return.
var verdicts = []assay.Verdict{assay.Supported, assay.Contradicted, assay.Unsupported}

// allowed returns a judgement of Supported, or the guard's objection to it.
func allowed(j, guard ground.Judgement) ground.Judgement {
	switch {
	case guard.Failed:
		return guardFailed(guard.Reason)
	case !(guard.Score >= 0 && guard.Score <= 1):
		return guardFailed("the guard's score is not a probability")
	case guard.Refused != "":
		return ground.Judgement{Verdict: assay.Unsupported, Score: min(j.Score, guard.Score), Reason: guard.Refused, Refused: guard.Refused, Spans: j.Spans}
	case denies(guard):
		reason := cmp.Or(guard.Reason, "the cited passages contradict it")
		return ground.Judgement{Verdict: assay.Contradicted, Score: min(j.Score, guard.Score), Reason: reason, Spans: guard.Spans}
	case !slices.Contains(verdicts, guard.Verdict):
		return guardFailed("the guard returned no verdict")
	}
	return j
}

// sureContradiction is the least probability of a contradiction with which the guard
// overrules a verifier that supports a claim. On the claims that the verifier was fitted to:
//
//	least probability           0.60   0.70   0.75   0.80
//	supported claims overruled   2.1    1.4    1.0    0.6 %
//	contradicted claims caught  61.1   50.7   44.6   36.6 %
//
// Measure again when the reader changes.
const sureContradiction = 0.8

// denies reports whether the guard is sure that a claim is contradicted. The verdict of a
// guard without probabilities counts as sure.
func denies(guard ground.Judgement) bool {
	return guard.Verdict == assay.Contradicted && (guard.Contradiction == 0 || guard.Contradiction >= sureContradiction)
}

// translated reports whether a claim is clearly in another language than all passages that it
// cites.
func translated(claim Claim) bool {
	of := language.Guess(claim.Alone())
	return len(claim.Cited) > 0 && !slices.ContainsFunc(claim.Cited, func(p ground.Passage) bool {
		return !language.Differ(cmp.Or(language.Guess(p.Quote), language.Guess(p.Context)), of)
	})
}

// leastShared is the least share of a claim's content words that its passages must have. A
// document may talk a model into a verdict and into any quote, but it rarely has the words of
// the claim. No supported claim of WiCE (development) or SummEdits has a lower share, and
// 2.7 % of those of SciFact (training) have.
const leastShared = 0.3

// stemmed are the languages in which paraphrases share stems. Other languages have many
// endings, or no spaces between words.
var stemmed = map[string]bool{"en": true, "de": true, "fr": true, "es": true, "it": true, "pt": true, "nl": true, "sv": true, "da": true, "no": true, "nb": true}

// unrelated reports whether a claim shares hardly any content words with its passages.
func unrelated(claim Claim) bool {
	of := language.Guess(claim.Alone())
	foreign := strings.ContainsFunc(claim.Alone(), func(r rune) bool { return r > unicode.MaxASCII && unicode.IsLetter(r) })
	var source strings.Builder
	for _, p := range claim.Cited {
		source.WriteString(strings.Join(p.Heading, "\n") + "\n" + p.Context + "\n")
		if !foreign { // a short claim is in the language of its source
			of = cmp.Or(of, language.Guess(p.Context))
		}
	}
	words, held := content(claim.Alone(), of), content(source.String(), of)
	if !stemmed[of] || len(words) == 0 {
		return false
	}
	n := 0
	for _, w := range words {
		if slices.Contains(held, w) {
			n++
		}
	}
	return float64(n) < leastShared*float64(len(words))
}

// content returns the stems of the content words of a text.
func content(text, language string) []string {
	if language == "en" {
		return lexical.Content(text)
	}
	var stems []string
	for _, t := range analysis.Tokens(text, language) {
		if !t.Part {
			stems = append(stems, t.Term)
		}
	}
	return stems
}

// sameNumbers refuses a translated claim if its passages lack one of its numbers. Otherwise it
// returns j. Numbers in words are not compared, and separators are ignored, since both
// differ between languages.
func sameNumbers(j ground.Judgement, claim Claim) ground.Judgement {
	held := map[string]bool{}
	for _, p := range claim.Cited {
		text := p.Context + " " + strings.Join(p.Heading, " ")
		for _, n := range slices.Concat(digits(text), lexical.Numbers(text)) {
			held[n] = true
		}
	}
	for _, n := range digits(claim.Alone()) {
		if !held[n] {
			return refused("the number " + n + " is not in the cited passages")
		}
	}
	return j
}

// digits returns the numbers in digits of a text, without separators.
func digits(text string) []string {
	var out []string
	for _, w := range lexical.Words(text) {
		if w[0] < '0' || w[0] > '9' {
			continue
		}
		out = append(out, strings.Map(func(r rune) rune {
			if strings.ContainsRune(".,'’", r) {
				return -1
			}
			return r
		}, w))
	}
	return out
}
