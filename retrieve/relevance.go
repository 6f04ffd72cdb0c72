package retrieve

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
)

// relevanceJSON holds the weights of the relevance model, as `assay eval
// calibrate` wrote them, with the sets they were fitted on.
//
//go:embed relevance.json
var relevanceJSON []byte

var relevanceWeights = func() []float64 {
	var m RelevanceModel
	if err := json.Unmarshal(relevanceJSON, &m); err != nil {
		panic("retrieve: relevance.json: " + err.Error())
	}
	if err := m.check(); err != nil {
		panic("retrieve: relevance.json: " + err.Error())
	}
	return m.Weights
}()

// A RelevanceModel is a logistic regression over a hit's features: relevance is
// 1/(1+exp(-weights·features)).
type RelevanceModel struct {
	Features []string  `json:"features"` // FeatureNames of the program that fitted it
	Weights  []float64 `json:"weights"`  // one for each feature
	Sets     []string  `json:"sets"`     // that it was fitted on
	Hits     int       `json:"hits"`     // that it was fitted on
	Fitted   string    `json:"fitted_by"`
	Licences string    `json:"licences"`
}

func (m RelevanceModel) check() error {
	if len(m.Weights) != len(FeatureNames) || strings.Join(m.Features, " ") != strings.Join(FeatureNames, " ") {
		return fmt.Errorf("has features %v, want %v", m.Features, FeatureNames)
	}
	return nil
}

// FeatureNames are the features of a hit, in the order of Features.
var FeatureNames = []string{
	"bias",
	"coverage",      // share of the query's weight that the hit holds in any field
	"coverage²",     //
	"window",        // largest share within 30 words of the body, headings and title counted in
	"body_window",   // the same without headings and title
	"heading",       // share that headings and title hold
	"focus",         // share of the words of the last heading, or the title, that the query holds
	"pairs",         // share of neighbouring query words that stand within 3 words of one another
	"phrase",        // share of neighbouring query words that stand as in the query, or side by side in its order
	"worst_missing", // weight of the weightiest query word that the hit lacks
	"names_missing", // share of the query's names and numbers that the hit lacks
	"bm25",          // BM25 over the sum of the query's inverse document frequencies
	"matched",       // log(1 + sum of the weights that the hit holds)
	"length",        // log(1 + number of content words in the query)
}

// A rater rates hits for one query.
type rater struct {
	terms   []assay.Term     // content words only
	at      map[string][]int // stem, in any language → the terms that it stands for
	gaps    []int            // by how many words the next term follows each in the query
	weight  float64          // sum of the terms' weights
	idf     float64          // sum of their inverse document frequencies
	names   []string         // and numbers
	weights []float64

	analyzers *analysis.Analyzers
	named     map[string][][]string // language → the stems of each name
}

// windowWords is how many words a window spans; pairWords how far apart two
// neighbours of the query may stand, phraseWords how far where the query has them
// that far apart.
const (
	windowWords = 30
	pairWords   = 3
	phraseWords = 8
)

func newRater(a *analysis.Analyzers, query string, terms []assay.Term, joined []compound, chunks int) *rater {
	r := &rater{at: map[string][]int{}, weights: relevanceWeights, analyzers: a, named: map[string][][]string{}}
	asking := surface.Asking(query)
	for _, t := range terms {
		if word := strings.ToLower(t.Text); surface.Function(word) || asking[word] {
			continue
		}
		r.at[t.Stem] = []int{len(r.terms)}
		for _, form := range t.Forms {
			r.at[form] = r.at[t.Stem]
		}
		r.terms = append(r.terms, t)
		r.weight += t.Weight
		r.idf += math.Log(1 + (float64(chunks-t.Chunks)+0.5)/(float64(t.Chunks)+0.5))
	}
	r.gaps = gaps(query, r.terms)
	for _, c := range joined {
		for _, s := range c.stands {
			for _, i := range r.at[s] {
				if !slices.Contains(r.at[c.stem], i) {
					r.at[c.stem] = append(r.at[c.stem], i)
				}
			}
		}
	}
	r.names = append(surface.Names(query), surface.Numbers(query)...)
	return r
}

// gaps returns by how many words each of the terms, but the last, is followed by
// the next in the query; 1 where that is more than phraseWords or not known.
func gaps(query string, terms []assay.Term) []int {
	at := map[string]int{}
	for _, t := range analysis.Tokens(query, anyLanguage) {
		if word := query[t.Start:t.End]; at[word] == 0 {
			at[word] = t.Position + 1
		}
	}
	var gaps []int
	for i := 1; i < len(terms); i++ {
		gap := at[terms[i].Text] - at[terms[i-1].Text]
		if gap < 1 || gap > phraseWords || at[terms[i-1].Text] == 0 {
			gap = 1
		}
		gaps = append(gaps, gap)
	}
	return gaps
}

// namesIn returns the stems of each name that the query has, in a language.
func (r *rater) namesIn(language string) [][]string {
	names, ok := r.named[language]
	if ok {
		return names
	}
	for _, name := range r.names {
		var stems []string
		r.analyzers.In(language).Each(name, func(t analysis.Token) {
			if !t.Part {
				stems = append(stems, strings.Clone(t.Term))
			}
		})
		if len(stems) > 0 {
			names = append(names, stems)
		}
	}
	r.named[language] = names
	return names
}

// relevance is the calibrated probability that h helps to answer the query. A
// hit that holds none of its content words has none.
func (r *rater) relevance(h assay.Hit) float64 {
	code, prose := codeSpans(h)
	f := r.features(h, code)
	if f == nil {
		return 0
	}
	sum := 0.0
	for i, x := range f {
		sum += r.weights[i] * x
	}
	if prose == 0 {
		sum -= codePenalty
	}
	if aside(h) {
		sum -= asidePenalty
	}
	return 1 / (1 + math.Exp(-sum))
}

// Features returns the features of a hit of a query whose terms and number of
// searched chunks are those of its results, by FeatureNames; nil when the hit
// holds no content word of the query.
func Features(query string, found assay.Results, h assay.Hit) []float64 {
	code, _ := codeSpans(h)
	return newRater(new(analysis.Analyzers), query, found.Terms, nil, found.Chunks).features(h, code)
}

// features returns the features of h, of whose text code is code.
func (r *rater) features(h assay.Hit, code []sentence.Span) []float64 {
	if r.weight == 0 {
		return nil
	}
	near := make([]bool, len(r.terms)) // in headings or title
	body := make([]bool, len(r.terms))
	stems := map[string]bool{}
	analyzer := r.analyzers.In(h.Language)
	names := r.namesIn(h.Language)
	for _, text := range append([]string{h.Title}, h.Chunk.Headings...) {
		analyzer.Each(text, func(t analysis.Token) {
			stems[t.Term] = true
			for _, i := range r.at[t.Term] {
				near[i] = true
			}
		})
	}
	var matches []match // outside code
	analyzer.Each(h.Text, func(t analysis.Token) {
		for len(code) > 0 && code[0].End <= t.Start {
			code = code[1:]
		}
		if len(names) > 0 {
			stems[t.Term] = true
		}
		for _, i := range r.at[t.Term] {
			body[i] = true
			if len(code) == 0 || t.Start < code[0].Start {
				matches = append(matches, match{term: i, position: t.Position})
			}
		}
	})
	held, heading, worst := 0.0, 0.0, 0.0
	for i, t := range r.terms {
		if near[i] {
			heading += t.Weight
		}
		if body[i] || near[i] {
			held += t.Weight
		} else {
			worst = max(worst, t.Weight)
		}
	}
	if held == 0 {
		return nil
	}
	coverage := held / r.weight
	bm25 := 0.0
	if h.Scores.BM25 != nil && r.idf > 0 {
		bm25 = *h.Scores.BM25 / r.idf
	}
	return []float64{
		1,
		coverage,
		coverage * coverage,
		r.window(matches, near) / r.weight,
		r.window(matches, make([]bool, len(r.terms))) / r.weight,
		heading / r.weight,
		r.focus(h),
		r.pairs(matches),
		r.phrase(matches),
		worst,
		namesMissing(names, stems),
		bm25,
		math.Log1p(held),
		math.Log1p(float64(len(r.terms))),
	}
}

// Penalties on the log-odds for what the fitted sets do not have: source code.
// Code holds a question's words more often than it answers the question, and
// tests and unexported declarations more often than the documentation that users
// read. Chosen on the golden questions about Go's net/http in eval/testdata.
const (
	codePenalty  = 2.5 // a hit that is nothing but code
	asidePenalty = 1.0 // a test, or a declaration that its package keeps to itself
)

var (
	// testFile matches the name of a file of tests. Folders do not count: where the
	// documents lie as a whole says nothing of one of them.
	testFile   = regexp.MustCompile(`(?i:(_test|\.test|\.spec)\.[a-z]+$)|[a-z]Test\.[a-z]+$`)
	unexported = regexp.MustCompile(`^(func|type|var|const) (\([^)]*\) )?[a-z_]`)
)

// aside reports whether a hit is a test or an unexported Go declaration.
func aside(h assay.Hit) bool {
	if testFile.MatchString(h.URI) {
		return true
	}
	hs := h.Chunk.Headings
	return strings.HasSuffix(h.URI, ".go") && len(hs) > 0 && unexported.MatchString(hs[len(hs)-1])
}

// codeSpans returns the parts of a hit's text that are code, in order, and how
// many parts are not.
func codeSpans(h assay.Hit) (code []sentence.Span, prose int) {
	spans := sentence.Spans(h.Text)
	if h.Chunk.Kind == assay.ChunkTable {
		return nil, len(spans)
	}
	for _, sp := range spans {
		if surface.Code(h.Text[sp.Start:sp.End]) {
			code = append(code, sp)
		}
	}
	return code, len(spans) - len(code)
}

// A match is a query term at a place of a hit's body.
type match struct{ term, position int }

// window returns the largest weight of distinct terms within windowWords of the
// body; terms that counted already has are in every window.
func (r *rater) window(matches []match, counted []bool) float64 {
	base := 0.0
	for i, t := range r.terms {
		if counted[i] {
			base += t.Weight
		}
	}
	best, sum := base, base
	inside := make([]int, len(r.terms))
	first := 0
	for _, m := range matches {
		if inside[m.term]++; inside[m.term] == 1 && !counted[m.term] {
			sum += r.terms[m.term].Weight
		}
		for matches[first].position <= m.position-windowWords {
			out := matches[first].term
			if inside[out]--; inside[out] == 0 && !counted[out] {
				sum -= r.terms[out].Weight
			}
			first++
		}
		best = max(best, sum)
	}
	return best
}

// focus returns the share of the content words of what h stands under, its last
// heading or else its title, that the query holds: 1 when the section is about
// nothing else than the query.
func (r *rater) focus(h assay.Hit) float64 {
	heading := h.Title
	if hs := h.Chunk.Headings; len(hs) > 0 {
		heading = hs[len(hs)-1]
	}
	return surface.Focus(heading, h.Language, func(stem string) bool { return len(r.at[stem]) > 0 })
}

// pairs returns the share of the query's neighbouring terms that stand within
// pairWords of one another somewhere in the body; 0 for a single term.
func (r *rater) pairs(matches []match) float64 {
	if len(r.terms) < 2 {
		return 0
	}
	close := make([]bool, len(r.terms))
	for i, m := range matches {
		for _, n := range matches[i+1:] {
			if n.position-m.position > pairWords {
				break
			}
			if n.term == m.term+1 || n.term == m.term-1 {
				close[min(m.term, n.term)] = true
			}
		}
	}
	n := 0
	for _, c := range close {
		if c {
			n++
		}
	}
	return float64(n) / float64(len(r.terms)-1)
}

// phrase returns the share of the query's neighbouring terms that stand somewhere
// in the body as they do in the query, with as many words between, or side by
// side in its order; 0 for a single term.
func (r *rater) phrase(matches []match) float64 {
	if len(r.terms) < 2 {
		return 0
	}
	stands := make([]bool, len(r.terms))
	for i, m := range matches {
		for _, n := range matches[i+1:] {
			distance := n.position - m.position
			if distance > phraseWords {
				break
			}
			// A compound stands for two terms at one place.
			if n.term == m.term+1 && (distance <= 1 || distance == r.gaps[m.term]) {
				stands[m.term] = true
			}
		}
	}
	n := 0
	for _, s := range stands {
		if s {
			n++
		}
	}
	return float64(n) / float64(len(r.terms)-1)
}

// namesMissing returns the share of the query's names and numbers, given by their
// stems, of which the hit lacks a word; 0 when it names nothing.
func namesMissing(names [][]string, held map[string]bool) float64 {
	if len(names) == 0 {
		return 0
	}
	n := 0
	for _, name := range names {
		if slices.ContainsFunc(name, func(stem string) bool { return !held[stem] }) {
			n++
		}
	}
	return float64(n) / float64(len(names))
}
