package local

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// heldHits is how many of the best hits are read, encodedHits of how many the tokens are
// compared with those of the question.
const (
	heldHits    = 5
	encodedHits = 3
)

// HeldFeatureNames are the features of a question and its hits, in the order of
// HeldFeatures.
func HeldFeatureNames(vectors bool) []string {
	names := []string{
		"relevance",        // log odds of that of the best hit
		"relevance gap",    // to the second
		"bm25",             // of the best by it, over the sum of the question's inverse document frequencies
		"bm25 first",       // of the most relevant hit
		"bm25 gap",         // to the second best by it
		"bm25 background",  // to the fifth
		"idf",              // sum of the question's inverse document frequencies
		"terms",            // log(1 + number of the question's content words)
		"unknown",          // share of the question's weight that no document holds
		"passage",          // share that the passage that holds most holds, with its title and headings
		"particular",       // the same, where words count less the more of the hits hold them
		"worst",            // weight of the weightiest word that it lacks
		"sentence",         // largest share that a sentence of it holds
		"sentence with",    // the same with its title and headings
		"around",           // the same of three sentences
		"worst around",     // least of the weights of the weightiest words that such three lack
		"pairs",            // largest share of neighbouring words that a sentence has near one another
		"kin",              // share of the passage, where words that begin alike count as one
		"kin sentence",     // of a sentence with title and headings
		"names",            // names and numbers that it lacks
		"passage gap",      // by how much "passage" is above that of the hit that holds second most
		"particular gap",   //
		"worst around gap", //
		"names gap",        //
		"offers",           // the best sentence has what the question asks for, and the question does not
		"lacks",            // it has not
		"offers near",      // but one beside it has
		"fits",             // it has the form that the question word asks for
		"defines",          // it says what the question's subject is
		"fresh",            // log(1 + number of its terms that the question does not have)
		"agree",            // the passage that holds most is the most relevant hit
	}
	for k := kindOther + 1; k < kinds; k++ {
		names = append(names, kindNames[k])
	}
	if vectors {
		names = append(names, vectorFeatureNames...)
	}
	return names
}

var kindNames = [kinds]string{"", "who", "when", "where", "number", "why", "how", "name", "define", "what", "yes or no"}

// HeldFeatures returns the features of a question and its hits, the most relevant first;
// with those of vectors where there is an encoder. They are rounded, so that machines whose
// last bits differ decide alike. The error is the encoder's.
func HeldFeatures(ctx context.Context, encoder ground.Encoder, in role.GradeInput) ([]float64, error) {
	h := newHolding(in)
	features := append(h.scores(), h.words()...)
	if encoder != nil {
		more, err := h.vectors(ctx, encoder)
		if err != nil {
			return nil, err
		}
		features = append(features, more...)
	}
	for i, x := range features {
		features[i] = math.Round(x*1e4) / 1e4
	}
	return features, nil
}

// A holding is a question and what may hold its answer.
type holding struct {
	in       role.GradeInput
	q        question
	asked    map[string]bool // stems of the question
	weight   float64         // of its terms, above 0
	idf      float64         // sum of its terms' inverse document frequencies, above 0
	passages []*heldPassage
	best     *heldPassage // that holds most
}

// A heldPassage is a hit as it is read for a question.
type heldPassage struct {
	hit       assay.Hit
	all       map[string]bool // terms of its text, title and headings
	near      map[string]bool // of title and headings
	sentences []heldSentence
	facts     heldFacts
}

type heldSentence struct {
	start, end int
	text       string
	held       map[string]bool
}

// heldFacts are a passage's features.
type heldFacts struct {
	passage, particular, worst, sentence, with, around, worstAround, pairs, kin, kinSentence, names float64

	line int // the sentence that fits best
}

func newHolding(in role.GradeInput) *holding {
	h := &holding{in: in, q: read(in.Question, in.Terms)}
	h.asked = stems("", h.q.text)
	h.weight = max(h.q.weight(), 1e-6)
	chunks := chunksOf(in.Terms)
	for _, t := range h.q.terms {
		h.idf += math.Log(1 + (max(chunks-float64(t.Chunks), 0)+0.5)/(float64(t.Chunks)+0.5))
	}
	h.idf = max(h.idf, 1e-6)
	for _, hit := range in.Hits[:min(len(in.Hits), heldHits)] {
		p := &heldPassage{hit: hit, all: stems(hit.Language, around(hit)...), near: stems(hit.Language, append(slices.Clone(hit.Chunk.Headings), hit.Title)...)}
		for _, sp := range sentence.Spans(hit.Text) {
			text := hit.Text[sp.Start:sp.End]
			p.sentences = append(p.sentences, heldSentence{sp.Start, sp.End, text, stems(hit.Language, text)})
		}
		h.passages = append(h.passages, p)
	}
	common := make([]float64, len(h.q.terms)) // share of the passages that hold a term
	for k, t := range h.q.terms {
		for _, p := range h.passages {
			if holdsTerm(p.all, t) {
				common[k] += 1 / float64(len(h.passages))
			}
		}
	}
	for _, p := range h.passages {
		p.facts = h.read(p, common)
	}
	return h
}

// chunksOf estimates how many chunks were searched from what the weights of terms say,
// see assay.Term; where they say nothing it is as of a small collection.
func chunksOf(terms []assay.Term) float64 {
	const (
		background = 100 // see the weights of the index
		small      = 150
		steps      = 60
	)
	for _, t := range terms {
		if t.Chunks < 1 || t.Weight <= 0.02 || t.Weight >= 0.98 {
			continue
		}
		low, high := 0.0, 20.0 // logarithm
		held := float64(t.Chunks + 1)
		for range steps {
			n := math.Exp((low+high)/2) + background
			if math.Log(1+(n-held+0.5)/(held+0.5))/math.Log(1+(n-0.5)/1.5) < t.Weight {
				low = (low + high) / 2
			} else {
				high = (low + high) / 2
			}
		}
		return math.Exp((low + high) / 2)
	}
	return small
}

// cover returns the share of the question's weight that is held, the same where words
// count less that many passages hold, and the weight of the weightiest word that is not.
func (h *holding) cover(common []float64, held ...map[string]bool) (share, particular, worst float64) {
	const least = 0.05 // of the weight of a word that all passages hold
	parts, all := 0.0, 0.0
	for k, t := range h.q.terms {
		own := t.Weight * (1 + least - common[k])
		all += own
		if slices.ContainsFunc(held, func(m map[string]bool) bool { return holdsTerm(m, t) }) {
			share += t.Weight
			parts += own
		} else {
			worst = max(worst, t.Weight)
		}
	}
	return share / h.weight, parts / max(all, 1e-6), worst
}

// kin is the share that is held where words that begin alike count as one.
func (h *holding) kin(text string, held ...map[string]bool) float64 {
	words, sum := surface.Words(text), 0.0
	for _, t := range h.q.terms {
		if slices.ContainsFunc(held, func(m map[string]bool) bool { return holdsTerm(m, t) }) || slices.ContainsFunc(words, func(w string) bool { return kin(w, t.Text) }) {
			sum += t.Weight
		}
	}
	return sum / h.weight
}

func (h *holding) read(p *heldPassage, common []float64) heldFacts {
	f := heldFacts{worstAround: 1, names: float64(len(missingNames(h.q, p.all))), kin: h.kin(p.hit.Text, p.all)}
	f.passage, f.particular, f.worst = h.cover(common, p.all)
	top := -1.0
	for i, s := range p.sentences {
		with, particular, _ := h.cover(common, s.held, p.near)
		three := []map[string]bool{p.near}
		for j := max(0, i-1); j <= min(i+1, len(p.sentences)-1); j++ {
			three = append(three, p.sentences[j].held)
		}
		around, _, worst := h.cover(common, three...)
		near := pairs(h.q, s.text, p.hit.Language)
		f.sentence = max(f.sentence, h.q.coverage(s.held))
		f.with = max(f.with, with)
		f.around = max(f.around, around)
		f.worstAround = min(f.worstAround, worst)
		f.pairs = max(f.pairs, near)
		f.kinSentence = max(f.kinSentence, h.kin(s.text, s.held, p.near))
		if score := with + particular + near/2; score > top {
			top, f.line = score, i
		}
	}
	return f
}

// scores are the features of what searches said.
func (h *holding) scores() []float64 {
	relevance := func(i int) float64 {
		if i < len(h.in.Hits) {
			return logOdds(h.in.Hits[i].Scores.Relevance)
		}
		return logOdds(0)
	}
	bm25 := sortedScores(h.in.Hits, func(s assay.Scores) *float64 { return s.BM25 })
	first := 0.0
	if len(h.in.Hits) > 0 && h.in.Hits[0].Scores.BM25 != nil {
		first = *h.in.Hits[0].Scores.BM25
	}
	return []float64{
		relevance(0), relevance(0) - relevance(1),
		bm25[0] / h.idf, first / h.idf, (bm25[0] - bm25[1]) / h.idf, (bm25[0] - bm25[heldHits-1]) / h.idf,
		h.idf, math.Log1p(float64(len(h.q.terms))), unknownShare(h.q),
	}
}

// sortedScores returns a score of all hits, the greatest first, and zeros to have at least
// heldHits of them.
func sortedScores(hits []assay.Hit, of func(assay.Scores) *float64) []float64 {
	scores := make([]float64, 0, len(hits)+heldHits)
	for _, h := range hits {
		if s := of(h.Scores); s != nil {
			scores = append(scores, *s)
		}
	}
	slices.SortFunc(scores, func(a, b float64) int { return cmp.Compare(b, a) })
	return append(scores, make([]float64, heldHits)...)
}

// logOdds are those of a probability, bounded.
func logOdds(p float64) float64 {
	const bound = 0.001
	p = min(max(p, bound), 1-bound)
	return math.Log(p / (1 - p))
}

// words are the features of the words.
func (h *holding) words() []float64 {
	score := func(f heldFacts) float64 { return f.passage + f.particular + f.around + 0.3*f.pairs }
	order := slices.Clone(h.passages)
	slices.SortStableFunc(order, func(a, b *heldPassage) int { return cmp.Compare(score(b.facts), score(a.facts)) })
	var a, b heldFacts
	if len(order) > 0 {
		h.best, a = order[0], order[0].facts
	}
	if len(order) > 1 {
		b = order[1].facts
	}
	out := []float64{
		a.passage, a.particular, a.worst, a.sentence, a.with, a.around, a.worstAround, a.pairs, a.kin, a.kinSentence, a.names,
		a.passage - b.passage, a.particular - b.particular, a.worstAround - b.worstAround, a.names - b.names,
	}
	k := kindOfQuestion(h.q.text)
	out = append(out, h.answering(k)...)
	for i := kindOther + 1; i < kinds; i++ {
		out = append(out, number(i == k))
	}
	return out
}

// answering are the features of the sentence that fits best.
func (h *holding) answering(k kind) []float64 {
	var offers, lacks, near bool
	if h.best == nil || len(h.best.sentences) == 0 {
		return make([]float64, 7)
	}
	at, all := h.best.facts.line, h.best.sentences
	s := all[at]
	if has, known := k.offered(s.text, h.q, h.asked); known {
		offers, lacks = has, !has
		for j := max(0, at-1); j <= min(at+1, len(all)-1) && lacks && !near; j++ {
			near, _ = k.offered(all[j].text, h.q, h.asked)
		}
	}
	fresh := 0
	for stem := range s.held {
		if !h.asked[stem] {
			fresh++
		}
	}
	return []float64{
		number(offers), number(lacks), number(near), number(fits(h.q.text, s.text)), number(defines(h.q, s.text, h.best.hit.Language)),
		math.Log1p(float64(fresh)), number(h.best == h.passages[0]),
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
