package ground

import (
	"math"
	"slices"

	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/llm"
)

// A reading is a part of a claim with the reader's entailments for each window of its sources.
type reading struct {
	part    string
	windows []window
	read    []llm.Entailment // same indexes as windows
}

// readerFeatures and plainFeatures name the inputs of the model, in order.
var (
	readerFeatures = []string{
		"supported_1", "supported_2", "supported_4", "supported_max", "supported_mean", "beside_contradicted", "contradicted_max",
		"least_part", "least_part_beside_contradicted", "parts",
	}
	plainFeatures = []string{
		"coverage_1", "coverage_4", "numbers", "names", "order", "source_length", "matched", "same_negation",
		"coverage_all", "length", "negated",
	}
)

// FeatureNames returns the names of the features of [Local.Features], in order.
func FeatureNames() []string { return slices.Concat(readerFeatures, plainFeatures) }

// featuresOf returns the features of a claim that was read as a whole and in parts. The words of
// each part are compared separately, and the worst comparison counts.
func featuresOf(claim string, whole reading, parts []reading, sources []source) []float64 {
	f := readerFeaturesOf(whole)
	least, leastBeside := math.Inf(1), math.Inf(1)
	var plain []float64
	for i, p := range parts {
		b := p.best()
		least = min(least, logOdds(p.read[b].Supported))
		leastBeside = min(leastBeside, ratio(p.read[b].Supported, p.read[b].Contradicted))
		of := plainFeaturesOf(p, sources)
		if i == 0 {
			plain = of
		}
		for k := range of {
			plain[k] = min(plain[k], of[k])
		}
	}
	f = append(append(f, least, leastBeside, math.Log(float64(len(parts)))), plain...)
	words := wordsOf(claim)
	return append(f,
		coverage(stemsOf(contentOf(words)), everyStem(sources)),
		math.Log1p(float64(len(words))),
		indicator(lexical.Negations(claim) > 0),
	)
}

// best returns the index of the window that supports the part most.
func (r reading) best() int {
	best := 0
	for i, e := range r.read {
		if e.Supported > r.read[best].Supported {
			best = i
		}
	}
	return best
}

// readerFeaturesOf returns the features of a part that come from the reader.
func readerFeaturesOf(r reading) []float64 {
	var f []float64
	sum := 0.0
	for _, size := range windowSizes {
		most := math.Inf(-1)
		for i, w := range r.windows {
			if w.size == size {
				most = max(most, logOdds(r.read[i].Supported))
			}
		}
		f, sum = append(f, most), sum+most
	}
	contradicted := math.Inf(-1)
	for _, e := range r.read {
		contradicted = max(contradicted, logOdds(e.Contradicted))
	}
	best := r.read[r.best()]
	return append(f, logOdds(best.Supported), sum/float64(len(windowSizes)), ratio(best.Supported, best.Contradicted), contradicted)
}

// leastProbability bounds the logarithms of probabilities, which the reader rounds.
const leastProbability = 1e-3

func ratio(a, b float64) float64 { return math.Log((a + leastProbability) / (b + leastProbability)) }

func logOdds(p float64) float64 { return ratio(p, 1-p) }

// plainFeaturesOf compares the words of a part with its windows. Higher is better.
func plainFeaturesOf(r reading, sources []source) []float64 {
	words := wordsOf(r.part)
	content := contentOf(words)
	want := stemsOf(content)
	one, four := map[string]int{}, map[string]int{}
	var nearest []word
	nearestText := ""
	for i := len(r.windows) - 1; i >= 0; i-- { // the first window of each size is the best
		w := r.windows[i]
		s := sources[w.passage]
		sp := w.span()
		text := s.Context[sp.Start:sp.End]
		switch w.size {
		case 1:
			nearest, nearestText = wordsOf(text), text
			one = stemsOf(nearest)
		case 4:
			four = stemsOf(wordsOf(w.prefix + text))
		}
	}
	return []float64{
		coverage(want, one), coverage(want, four),
		coverage(stemsOf(numbersIn(r.part)), four), coverage(stemsOf(namesIn(r.part)), four),
		share(commonInOrder(content, contentOf(nearest)), len(content)), ratioOfLengths(len(nearest), len(words)),
		-math.Log1p(float64(len(want) - commonStems(want, four))),
		-indicator(negationDiffers(r.part, nearestText)),
	}
}

// coverage returns the share of the stems of want that a text has, or 1 if want is empty.
func coverage(want, have map[string]int) float64 {
	if len(want) == 0 {
		return 1
	}
	return share(commonStems(want, have), len(want))
}

func share(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

func ratioOfLengths(a, b int) float64 { return math.Log(float64(a+1) / float64(b+1)) }

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// commonInOrder returns the length of the longest common subsequence of two texts.
func commonInOrder(a, b []word) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x.stem == y.stem {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}
