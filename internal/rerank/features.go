package rerank

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
)

// FeatureNames are the features of a hit within a result, in the order of Features.
var FeatureNames = []string{
	"fused",  // the fused score
	"bridge", // how strongly the best hits lead to this one; see bridge
}

// Features returns the features of each of found's hits, by FeatureNames, in their order.
//
// The inputs of fusion (words, similarity and the walk) are not features again. With learned
// weights of their own, and those of the relevance features, BM25 and length, the order on unseen
// sets was worse than by the fused score. Several ways of learning them were tried.
func Features(found assay.Results) [][]float64 {
	b := newBridges(found.Hits)
	features := make([][]float64, len(found.Hits))
	for i, h := range found.Hits {
		fused := 0.0
		if h.Scores.Fused != nil {
			fused = *h.Scores.Fused
		}
		features[i] = []float64{fused, b.to(i)}
	}
	return features
}

// leaders is the number of first hits that can lead to others.
const leaders = 3

// bridges finds hits that name the subjects of other hits. A question that takes two steps names
// the first subject, and the passage found for it names the second.
type bridges struct {
	hits     []assay.Hit
	texts    []string   // folded
	subjects [][]string // folded
	low      float64    // least and greatest fused score
	high     float64
}

func newBridges(hits []assay.Hit) *bridges {
	b := &bridges{hits: hits, low: math.Inf(1), high: math.Inf(-1)}
	for _, h := range hits {
		b.texts = append(b.texts, fold(strings.Join(append([]string{h.Title, h.Text}, h.Chunk.Headings...), "\n")))
		b.subjects = append(b.subjects, subjects(h))
		if f := h.Scores.Fused; f != nil {
			b.low, b.high = min(b.low, *f), max(b.high, *f)
		}
	}
	return b
}

// to returns how strongly the leaders lead to a hit, in [0, 1]. It is the greatest fused score,
// scaled from 0 for the least of all to 1, of a leader that names a subject of the hit and does not
// share a subject with it. This is multiplied by the rarity of that name among the hits, from 0 in
// all to 1 in one.
func (b *bridges) to(i int) float64 {
	best := 0.0
	for _, subject := range b.subjects[i] {
		lead := 0.0
		for j := range b.hits[:min(len(b.hits), leaders)] {
			if !b.alike(i, j) && strings.Contains(b.texts[j], subject) {
				lead = max(lead, b.strength(j))
			}
		}
		if lead > best {
			best = max(best, lead*b.rarity(subject))
		}
	}
	return best
}

// alike reports whether two hits share a subject.
func (b *bridges) alike(i, j int) bool {
	return slices.ContainsFunc(b.subjects[i], func(s string) bool { return slices.Contains(b.subjects[j], s) })
}

func (b *bridges) strength(i int) float64 {
	f := b.hits[i].Scores.Fused
	if f == nil || b.high <= b.low {
		return 0
	}
	return (*f - b.low) / (b.high - b.low)
}

func (b *bridges) rarity(subject string) float64 {
	if len(b.texts) < 2 {
		return 0
	}
	n := 0
	for _, t := range b.texts {
		if strings.Contains(t, subject) {
			n++
		}
	}
	return 1 - math.Log(float64(max(n, 1)))/math.Log(float64(len(b.texts)))
}

// minSubject is the least length in bytes of a folded subject, with its surrounding spaces. Shorter
// names occur everywhere by chance.
const minSubject = 6

// subjects returns the subjects of a hit, folded: its title without parentheses, and its last
// heading.
func subjects(h assay.Hit) []string {
	var out []string
	texts := []string{h.Title}
	if hs := h.Chunk.Headings; len(hs) > 0 {
		texts = append(texts, hs[len(hs)-1])
	}
	for _, text := range texts {
		if s := fold(withoutParentheses(text)); len(s) >= minSubject && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func withoutParentheses(text string) string {
	open := strings.IndexByte(text, '(')
	if open <= 0 {
		return text
	}
	end := strings.IndexByte(text[open:], ')')
	if end < 0 {
		return text
	}
	return text[:open] + text[open+end+1:]
}

// fold returns the words of a text, separated and surrounded by single spaces, so that one folded
// text contains another only as whole words. It keeps case, which distinguishes a name from a word:
// "Examples" is a title and "examples" is not.
func fold(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 2)
	b.WriteByte(' ')
	space := true
	for _, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_':
			b.WriteRune(r)
			space = false
		case !space:
			b.WriteByte(' ')
			space = true
		}
	}
	if !space {
		b.WriteByte(' ')
	}
	return b.String()
}
