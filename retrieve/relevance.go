package retrieve

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/surface"
)

// relevanceJSON holds the weights of the relevance model, as `assay eval
// calibrate` wrote them, with the sets they were fitted on.
//
//go:embed relevance.json
var relevanceJSON []byte

var defaultRelevance = func() *RelevanceModel {
	var m RelevanceModel
	if err := json.Unmarshal(relevanceJSON, &m); err != nil {
		panic("retrieve: relevance.json: " + err.Error())
	}
	if err := m.check(); err != nil {
		panic("retrieve: relevance.json: " + err.Error())
	}
	return &m
}()

// A RelevanceModel is a logistic regression over a hit's features: relevance is
// 1/(1+exp(-weights·features)). It looks at one hit alone, so a relevance means the
// same in every result.
type RelevanceModel struct {
	Features []string        `json:"features"` // FeatureNames of the program that fitted it
	Weights  []float64       `json:"weights"`  // one for each feature: by words alone
	Vectors  []VectorWeights `json:"vectors"`  // by words and similarity
	Sets     []string        `json:"sets"`     // that it was fitted on
	Hits     int             `json:"hits"`     // that it was fitted on
	Fitted   string          `json:"fitted_by"`
	Licences string          `json:"licences"`
}

// VectorWeights rate hits whose similarity to the query is known. What a
// similarity means differs from encoder to encoder: with one that no weights were
// fitted for, relevance goes by words alone.
type VectorWeights struct {
	Encoder  string    `json:"encoder"`  // EncoderFamily of its vectors' names
	Features []string  `json:"features"` // FeatureNames and then VectorFeatureNames
	Weights  []float64 `json:"weights"`  // one for each
	Hits     int       `json:"hits"`     // that they were fitted on
}

func (m *RelevanceModel) check() error {
	if len(m.Weights) != len(FeatureNames) || !slices.Equal(m.Features, FeatureNames) {
		return fmt.Errorf("has features %v, want %v", m.Features, FeatureNames)
	}
	want := slices.Concat(FeatureNames, VectorFeatureNames)
	for _, v := range m.Vectors {
		if v.Encoder == "" || len(v.Weights) != len(want) || !slices.Equal(v.Features, want) {
			return fmt.Errorf("has features %v for %q, want %v", v.Features, v.Encoder, want)
		}
	}
	return nil
}

// vectorWeights are those for an encoder's vectors; nil when there are none.
func (m *RelevanceModel) vectorWeights(encoder string) []float64 {
	for _, v := range m.Vectors {
		if v.Encoder == EncoderFamily(encoder) {
			return v.Weights
		}
	}
	return nil
}

// EncoderFamily is what the names of an encoder's vectors have in common in
// whatever form its weights are kept: "gte-small" of "gte-small-int8@50b99043/384".
func EncoderFamily(model string) string {
	name, _, _ := strings.Cut(model, "@")
	name, _, _ = strings.Cut(name, "/")
	return strings.TrimSuffix(name, "-int8")
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

// VectorFeatureNames are what a hit whose similarity is known has beside its other
// features, in the order of VectorFeatures.
var VectorFeatureNames = []string{
	"similarity", // ten times what the cosine is above 0.8, in the range of the others
}

// A rater rates hits for one query.
type rater struct {
	terms  []assay.Term     // content words only
	at     map[string][]int // stem, in any language → the terms that it stands for
	gaps   []int            // by how many words the next term follows each in the query
	weight float64          // sum of the terms' weights
	idf    float64          // sum of their inverse document frequencies
	names  []string         // and numbers
	model  *RelevanceModel

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
	r := &rater{at: map[string][]int{}, model: defaultRelevance, analyzers: a, named: map[string][][]string{}}
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

// A reading is what a rater sees in a hit.
type reading struct {
	features []float64 // by FeatureNames; nil when the query has no content word
	wordless bool      // the hit holds no content word of the query
	code     bool      // the hit is code for the most part
	aside    bool      // it is seldom where a thing is explained; see aside
}

// read reads a hit for relevance.
func (r *rater) read(h assay.Hit) reading {
	f, wordless := r.features(h)
	return reading{
		features: f,
		wordless: wordless,
		code:     h.Chunk.Kind != assay.ChunkTable && surface.MostlyCode(h.Text),
		aside:    aside(h),
	}
}

// relevance is the calibrated probability that a hit helps to answer the query, by
// its words alone. A hit that holds none of its content words has none.
func (r *rater) relevance(h reading) float64 {
	if h.features == nil || h.wordless {
		return 0
	}
	return h.relevance(r.model.Weights, h.features)
}

// relevanceOf is the same by words and by the similarity that an encoder finds; by
// words alone where the model knows nothing of the encoder.
//
// The walk does not count: its mass is the more the better a hit was found, so
// that where what answers a question is missing the next best would pass for it.
func (r *rater) relevanceOf(h reading, encoder string, similarity float64) float64 {
	weights := r.model.vectorWeights(encoder)
	if h.features == nil || weights == nil {
		return r.relevance(h)
	}
	return h.relevance(weights, h.with(similarity))
}

func (h reading) relevance(weights, features []float64) float64 {
	sum := 0.0
	if h.code {
		sum -= codePenalty
	}
	if h.aside {
		sum -= asidePenalty
	}
	for i, x := range features {
		sum += weights[i] * x
	}
	return 1 / (1 + math.Exp(-sum))
}

// The weights of how near the query's words stand to one another, and of what is aside, in
// the score of a hit among code. nDCG@10 by words of two sets
// of functions of Go's source and one of Python's: BM25 0.583, 0.608, 0.529; with nearWeight
// 0.1 0.593, 0.624, 0.541; with 0.2 0.606, 0.626, 0.544; with 0.3 0.608, 0.629, 0.543;
// relevance without its penalty on code 0.564, 0.606, 0.524.
const (
	nearWeight  = 0.25
	asideWeight = 0.2
)

// inCode is the score of a hit by its words among others that are code for the most part;
// comparable within one result only.
func (h reading) inCode() float64 {
	if h.features == nil || h.wordless {
		return 0
	}
	sum := 0.0
	if h.aside {
		sum -= asideWeight
	}
	for i, name := range FeatureNames {
		switch name {
		case "bm25":
			sum += h.features[i]
		case "window", "pairs", "phrase":
			sum += nearWeight * h.features[i]
		}
	}
	return sum
}

// with returns the features with that of a similarity.
func (h reading) with(similarity float64) []float64 {
	return append(slices.Clone(h.features), 10*(similarity-0.8))
}

// Features returns the features of each hit of a query's results, by FeatureNames;
// nil for one that holds no content word of the query.
func Features(query string, found assay.Results) [][]float64 {
	r := newRater(new(analysis.Analyzers), query, found.Terms, nil, found.Chunks)
	out := make([][]float64, len(found.Hits))
	for i, h := range found.Hits {
		if read := r.read(h); !read.wordless {
			out[i] = read.features
		}
	}
	return out
}

// VectorFeatures returns the features of each hit, by FeatureNames and then
// VectorFeatureNames; nil for one whose similarity is not known, and for all when
// the query has no content word.
func VectorFeatures(query string, found assay.Results) [][]float64 {
	r := newRater(new(analysis.Analyzers), query, found.Terms, nil, found.Chunks)
	out := make([][]float64, len(found.Hits))
	for i, h := range found.Hits {
		if read := r.read(h); read.features != nil && h.Scores.Vector != nil {
			out[i] = read.with(*h.Scores.Vector)
		}
	}
	return out
}

// Penalties on the log-odds for what the fitted sets do not have: source code and release
// notes. Code holds a question's words more often than it answers the question, and
// tests, unexported declarations and release notes more often than the documentation that
// users read. Those on code and tests were chosen on the golden questions about Go's
// net/http in eval/testdata. On 40 questions about three projects' documentation, nDCG@10
// by relevance rises from 0.708 to 0.722 by the one on release notes, which are first for 2
// questions, not 6.
const (
	codePenalty  = 2.5 // a hit that is code for the most part
	asidePenalty = 1.0 // a test, a declaration that its package keeps to itself, release notes
)

var (
	// testFile matches the name of a file of tests. Folders do not count: where the
	// documents lie as a whole says nothing of one of them.
	testFile   = lazyregexp.New(`(?i:(_test|\.test|\.spec)\.[a-z]+$)|[a-z]Test\.[a-z]+$`)
	unexported = lazyregexp.New(`^(func|type|var|const) (\([^)]*\) )?[a-z_]`)

	// notesFile and notesTitle match the names of documents of release notes, version a
	// heading that is nothing but a version, with its date at most.
	notesFile  = lazyregexp.New(`(?i)(^|/)(changelog|changes|release[-_]?notes)(\.[a-z]+)?$`)
	notesTitle = lazyregexp.New(`(?i)^(change ?log|release notes)\b`)
	version    = lazyregexp.New(`(?i)^(version )?\[?(v\d+(\.\d+)+|\d+(\.\d+){2,})\S*( *[-–(:]* *(unreleased|\d{4}-\d\d-\d\d)\)?)?$`)
)

// aside reports whether a hit is a test, an unexported Go declaration or of release notes.
func aside(h assay.Hit) bool {
	hs := h.Chunk.Headings
	switch {
	case testFile.MatchString(h.URI), notesFile.MatchString(h.URI), notesTitle.MatchString(h.Title), slices.ContainsFunc(hs, version.MatchString):
		return true
	}
	return strings.HasSuffix(h.URI, ".go") && len(hs) > 0 && unexported.MatchString(hs[len(hs)-1])
}
