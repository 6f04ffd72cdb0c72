package rerank

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
)

// FeatureNames are the features of a hit among others, in the order of Features.
var FeatureNames = []string{
	"fused",     // fused score, from 0 for the least of the hits to 1 for the greatest
	"vector",    // cosine, likewise; 0 where it is not known
	"relevance", // log-odds of relevance, by logOddsScale
	"bm25",      // BM25 over the greatest; 0 for a hit that words did not bring
	"graph",     // root of the share that the walk's mass is of the greatest
	"bridge",    // the fused feature of the best other hit among the first bridges that names what this one is about
	"named",     // 1 if the query names what the hit is about
	"bridged",   // the best fused of the first bridges whose subject this hit names
}

const (
	bridges      = 3 // of the first hits may name others
	logOddsScale = 4 // relevance 0.98 is 1
	maxLogOdds   = 2 // relevance is taken for no nearer to 0 or 1 than this says
)

// Features returns the features of each of found's hits, by FeatureNames, in
// their order.
func Features(q assay.Query, found assay.Results) [][]float64 {
	hits := found.Hits
	fused := normalised(hits, func(h assay.Hit) *float64 { return h.Scores.Fused })
	vector := normalised(hits, func(h assay.Hit) *float64 { return h.Scores.Vector })
	bm25, graph := greatest(hits, bm25Of), greatest(hits, graphOf)
	question := fold(q.Text)
	subjects, top := make([][]string, len(hits)), leaders(hits, fused)
	for i, h := range hits {
		subjects[i] = subjectsOf(h)
	}
	texts := make([]string, len(top))
	for i, t := range top {
		texts[i] = fold(hits[t].Title + "\n" + hits[t].Text)
	}
	features := make([][]float64, len(hits))
	for i, h := range hits {
		bridge, bridged := 0.0, 0.0
		own := ""
		for k, t := range top {
			if t == i || slices.ContainsFunc(subjects[i], func(s string) bool { return slices.Contains(subjects[t], s) }) {
				continue
			}
			if names(texts[k], subjects[i]) {
				bridge = max(bridge, fused[t])
			}
			if own == "" {
				own = fold(h.Text)
			}
			if names(own, subjects[t]) {
				bridged = max(bridged, fused[t])
			}
		}
		named := 0.0
		if names(question, subjects[i]) {
			named = 1
		}
		features[i] = []float64{
			fused[i],
			vector[i],
			logOdds(h.Scores.Relevance),
			share(bm25Of(h), bm25),
			math.Sqrt(share(graphOf(h), graph)),
			bridge,
			named,
			bridged,
		}
	}
	return features
}

// leaders are the first hits by their fused score.
func leaders(hits []assay.Hit, fused []float64) []int {
	order := make([]int, len(hits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(fused[b], fused[a]) })
	return order[:min(len(order), bridges)]
}

// normalised maps the least of the scores to 0 and the greatest to 1; a score
// that is not known is 0.
func normalised(hits []assay.Hit, score func(assay.Hit) *float64) []float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, h := range hits {
		if x := score(h); x != nil {
			low, high = min(low, *x), max(high, *x)
		}
	}
	out := make([]float64, len(hits))
	for i, h := range hits {
		if x := score(h); x != nil && high > low {
			out[i] = (*x - low) / (high - low)
		}
	}
	return out
}

func bm25Of(h assay.Hit) float64  { return orZero(h.Scores.BM25) }
func graphOf(h assay.Hit) float64 { return orZero(h.Scores.Graph) }

func orZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

func greatest(hits []assay.Hit, score func(assay.Hit) float64) float64 {
	most := 0.0
	for _, h := range hits {
		most = max(most, score(h))
	}
	return most
}

func share(x, most float64) float64 {
	if most == 0 {
		return 0
	}
	return max(0, x/most)
}

func logOdds(p float64) float64 {
	return max(-maxLogOdds, min(maxLogOdds, math.Log(p/(1-p))/logOddsScale))
}

// minSubject is how many bytes a subject has at least: what is shorter is named
// everywhere by chance.
const minSubject = 4

// subjectsOf are what a hit is about, folded: its title without what stands in
// parentheses, and its last heading.
func subjectsOf(h assay.Hit) []string {
	var out []string
	texts := []string{h.Title}
	if hs := h.Chunk.Headings; len(hs) > 0 {
		texts = append(texts, hs[len(hs)-1])
	}
	for _, text := range texts {
		if s := fold(withoutParentheses(text)); len(s) >= minSubject+2 && !slices.Contains(out, s) {
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

// names reports whether a folded text has one of the subjects in it.
func names(text string, subjects []string) bool {
	return slices.ContainsFunc(subjects, func(s string) bool { return strings.Contains(text, s) })
}

// fold returns the words of a text in lower case, each between single spaces, so
// that one folded text is within another only as whole words; " " for no words.
func fold(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 2)
	b.WriteByte(' ')
	space := true
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_' {
			b.WriteRune(unicode.ToLower(r))
			space = false
		} else if !space {
			b.WriteByte(' ')
			space = true
		}
	}
	if !space {
		b.WriteByte(' ')
	}
	return b.String()
}
