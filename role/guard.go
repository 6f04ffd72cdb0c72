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
	"github.com/assay-rag/assay/internal/surface"
)

// Guarded combines a verifier that asks a language model or a service with a local guard.
// A claim is Supported where v supports it, the guard is not sure that it is Contradicted
// and no hard check of the guard refuses it. A guard that fails leaves the claim Unsupported.
//
// The guard reads one language. A claim in a plainly different language than everything
// that it cites is compared by its numbers alone.
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
			const reason = "hardly a word of it is in what it cites"
			out[i] = ground.Judgement{Verdict: assay.Unsupported, Reason: reason, Refused: reason}
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

// allowed returns a judgement of Supported as far as the guard allows it.
func allowed(j, guard ground.Judgement) ground.Judgement {
	switch {
	case guard.Failed:
		return ground.Judgement{Verdict: assay.Unsupported, Reason: guard.Reason, Failed: true}
	case !(guard.Score >= 0 && guard.Score <= 1):
		return ground.Judgement{Verdict: assay.Unsupported, Reason: "the guard's score is no probability", Failed: true}
	case guard.Refused != "":
		return ground.Judgement{Verdict: assay.Unsupported, Score: min(j.Score, guard.Score), Reason: guard.Refused, Refused: guard.Refused, Spans: j.Spans}
	case denies(guard):
		reason := cmp.Or(guard.Reason, "what it cites says otherwise")
		return ground.Judgement{Verdict: assay.Contradicted, Score: min(j.Score, guard.Score), Reason: reason, Spans: guard.Spans}
	case guard.Verdict != assay.Supported && guard.Verdict != assay.Contradicted && guard.Verdict != assay.Unsupported:
		return ground.Judgement{Verdict: assay.Unsupported, Reason: "the guard gave no verdict", Failed: true}
	}
	return j
}

// sureContradiction is the probability of a contradiction from which on the guard overrules
// a verifier that supports a claim. Of 1,114 training claims 0.6 % of the supported ones and
// 17 % of the contradicted ones reach it, and of the fair statements of
// eval/testdata/statements.jsonl 3 %. At 0.6 it is 1.3 % and 30 % of the training claims.
// Measure again when the reader changes.
const sureContradiction = 0.75

// denies reports whether the guard is sure that a claim is contradicted. A guard that gives
// no probability is.
func denies(guard ground.Judgement) bool {
	return guard.Verdict == assay.Contradicted && (guard.Contradiction == 0 || guard.Contradiction >= sureContradiction)
}

// translated reports whether a claim is plainly in another language than each of the
// passages that it cites.
func translated(claim Claim) bool {
	of := language.Guess(claim.Alone())
	return len(claim.Cited) > 0 && !slices.ContainsFunc(claim.Cited, func(p ground.Passage) bool {
		return !language.Differ(cmp.Or(language.Guess(p.Quote), language.Guess(p.Context)), of)
	})
}

// leastShared is the share of a claim's content words that the cited passages have at
// least. A model that a document has talked into its verdict quotes any words of it; this
// check needs words of the claim. Of the supported claims of WiCE (development) and
// SummEdits none falls below, of SciFact's (training) 2.7%.
const leastShared = 0.3

// stemmed are the languages in which two texts that say the same share stems. Others have
// many endings or no blanks between words.
var stemmed = map[string]bool{"en": true, "de": true, "fr": true, "es": true, "it": true, "pt": true, "nl": true, "sv": true, "da": true, "no": true, "nb": true}

// unrelated reports whether a claim shares hardly a content word with what it cites.
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
		return surface.Content(text)
	}
	var stems []string
	for _, t := range analysis.Tokens(text, language) {
		if !t.Part {
			stems = append(stems, t.Term)
		}
	}
	return stems
}

// sameNumbers takes back a judgement of Supported on a translated claim with a number that
// its passages do not have. Numbers written as words are not compared, and separators
// differ between languages.
func sameNumbers(j ground.Judgement, claim Claim) ground.Judgement {
	held := map[string]bool{}
	for _, p := range claim.Cited {
		text := p.Context + " " + strings.Join(p.Heading, " ")
		for _, n := range slices.Concat(digits(text), surface.Numbers(text)) {
			held[n] = true
		}
	}
	for _, n := range digits(claim.Alone()) {
		if !held[n] {
			reason := "the number " + n + " is not in what it cites"
			return ground.Judgement{Verdict: assay.Unsupported, Reason: reason, Refused: reason}
		}
	}
	return j
}

// digits returns the numbers of a text that are written in digits, without separators.
func digits(text string) []string {
	var out []string
	for _, w := range surface.Words(text) {
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
