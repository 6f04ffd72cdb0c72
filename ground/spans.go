package ground

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
)

const (
	maxDeciding = 5    // spans of a claim
	maxUnits    = 2000 // sentences and rows that are looked at

	// minGain is the share of a claim's weight that a further span has to add. Less is a
	// word that stands in it by chance.
	minGain = 0.15
)

// leastSpans returns the sentences and rows of tables of what a claim cites that decide it
// together, the fewest that do: taken by what each adds to the claim's words, numbers and
// names counting most, and given back where the others do without. Spans are in the order of the passages and of their
// text, and neither overlap nor touch a part of a sentence. There is none where nothing
// shares a content word with the claim.
func leastSpans(claim string, cited []Passage) []Span {
	for i, p := range cited {
		if start, end, ok := contains(p.Context, claim); ok {
			start, end = widened(p.Context, start, end)
			return []Span{{Passage: i, Start: start, End: end}}
		}
	}
	units := unitsOf(cited)
	want := weights(claim, units)
	chosen := give(greedy(units, want), units, want)
	return spansOfUnits(chosen, units)
}

// A bearer is a sentence or row of a passage, with its terms.
type bearer struct {
	Span
	terms map[string]bool
}

func unitsOf(cited []Passage) []bearer {
	var units []bearer
	for i, p := range cited {
		for _, sp := range paragraphsOf(p.Context) {
			if len(units) == maxUnits {
				return units
			}
			terms := termSet(p.Context[sp.Start:sp.End])
			for _, n := range surface.Numbers(p.Context[sp.Start:sp.End]) {
				terms["#"+n] = true
			}
			units = append(units, bearer{Span{Passage: i, Start: sp.Start, End: sp.End}, terms})
		}
	}
	return units
}

// paragraphsOf returns the sentences and rows of a text, code apart from the paragraphs
// around it; all of it where it has none.
func paragraphsOf(text string) []sentence.Span {
	var spans []sentence.Span
	start := 0
	flush := func(end int) {
		for _, sp := range sentencesOf(text[start:end]) {
			spans = append(spans, sentence.Span{Start: start + sp.Start, End: start + sp.End})
		}
		start = end
	}
	for _, at := range blankLine.FindAllStringIndex(text, -1) {
		flush(at[1])
	}
	flush(len(text))
	if len(spans) == 0 && strings.TrimSpace(text) != "" {
		return []sentence.Span{{Start: 0, End: len(text)}}
	}
	return spans
}

var blankLine = regexp.MustCompile(`\n[ \t\r]*\n`)

// weights says what each of a claim's terms is worth: numbers and names more than words,
// and what few of the units have more than what all have.
func weights(claim string, units []bearer) map[string]float64 {
	const word, name = 1, 2
	want := map[string]float64{}
	for t := range termSet(claim) {
		want[t] = word
	}
	for _, n := range surface.Names(claim) {
		for t := range termSet(n) {
			want[t] = name
		}
	}
	for _, n := range surface.Numbers(claim) {
		want["#"+n] = name
	}
	for t := range want {
		have := 0
		for _, u := range units {
			if u.terms[t] {
				have++
			}
		}
		want[t] /= 1 + float64(have)/float64(max(len(units), 1))
	}
	return want
}

// gain is what a sentence adds to what is covered.
func gain(u bearer, want map[string]float64, covered map[string]bool) float64 {
	var all []float64
	for t, w := range want {
		if u.terms[t] && !covered[t] {
			all = append(all, w)
		}
	}
	slices.Sort(all) // the sum of floats depends on their order
	sum := 0.0
	for _, w := range all {
		sum += w
	}
	return sum
}

// greedy takes the sentence that adds most, then the next, until none adds enough.
func greedy(units []bearer, want map[string]float64) []int {
	whole := gain(bearer{terms: keys(want)}, want, nil)
	covered := map[string]bool{}
	var chosen []int
	for len(chosen) < maxDeciding {
		best, most := -1, 0.0
		for i, u := range units {
			if g := gain(u, want, covered); g > most && !slices.Contains(chosen, i) {
				best, most = i, g
			}
		}
		if best < 0 || len(chosen) > 0 && most < minGain*whole {
			break
		}
		chosen = append(chosen, best)
		for t := range units[best].terms {
			covered[t] = true
		}
	}
	return chosen
}

func keys(want map[string]float64) map[string]bool {
	all := map[string]bool{}
	for t := range want {
		all[t] = true
	}
	return all
}

// give gives back the units without which the others cover as much.
func give(chosen []int, units []bearer, want map[string]float64) []int {
	for i := 0; i < len(chosen) && len(chosen) > 1; {
		covered := map[string]bool{}
		for j, c := range chosen {
			if j != i {
				for t := range units[c].terms {
					covered[t] = true
				}
			}
		}
		if gain(units[chosen[i]], want, covered) == 0 {
			chosen = slices.Delete(chosen, i, i+1)
			continue
		}
		i++
	}
	return chosen
}

// spansOfUnits are the spans of some units, in the order of the text.
func spansOfUnits(chosen []int, units []bearer) []Span {
	var spans []Span
	for _, i := range chosen {
		spans = append(spans, units[i].Span)
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Or(cmp.Compare(a.Passage, b.Passage), cmp.Compare(a.Start, b.Start)) })
	return spans
}
