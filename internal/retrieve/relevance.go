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
	"github.com/assay-rag/assay/internal/lexical"
)

// relevanceJSON holds the weights of the relevance model, as written by `go run ./train/fit calibrate`, and
// the sets they were fitted on.
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

// A RelevanceModel is a logistic regression over the features of a hit. Relevance is
// 1/(1+exp(-weights·features)). It depends on one hit only, so relevances are comparable across
// results.
type RelevanceModel struct {
	Features []string        `json:"features"` // FeatureNames of the program that fitted the model
	Weights  []float64       `json:"weights"`  // one per feature, for relevance by words alone
	Vectors  []VectorWeights `json:"vectors"`  // for relevance by words and similarity
	Sets     []string        `json:"sets"`     // that the model was fitted on
	Hits     int             `json:"hits"`     // number of hits that it was fitted on
	Fitted   string          `json:"fitted_by"`
	Licences string          `json:"licences"`
}

// VectorWeights are the weights for hits whose similarity to the query is known. The scale of
// similarities differs between encoders, so for an encoder without fitted weights relevance is
// computed by words alone.
type VectorWeights struct {
	Encoder  string    `json:"encoder"`  // EncoderFamily of the model that made the vectors
	Features []string  `json:"features"` // FeatureNames followed by VectorFeatureNames
	Weights  []float64 `json:"weights"`  // one per feature
	Hits     int       `json:"hits"`     // number of hits that they were fitted on
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

// vectorWeights returns the weights for an encoder's vectors, or nil if there are none.
func (m *RelevanceModel) vectorWeights(encoder string) []float64 {
	for _, v := range m.Vectors {
		if v.Encoder == EncoderFamily(encoder) {
			return v.Weights
		}
	}
	return nil
}

// EncoderFamily returns the part of a model name that does not depend on the format of its weights:
// "gte-small" for "gte-small-int8@50b99043/384".
func EncoderFamily(model string) string {
	name, _, _ := strings.Cut(model, "@")
	name, _, _ = strings.Cut(name, "/")
	return strings.TrimSuffix(name, "-int8")
}

// FeatureNames are the names of a hit's features, in the order of Features.
var FeatureNames = []string{
	"bias",
	"coverage",      // share of the query's weight that the hit contains in any field
	"coverage²",     //
	"window",        // largest share within 30 words of the body, counting headings and title
	"body_window",   // the same without headings and title
	"heading",       // share of the query's weight that headings and title contain
	"focus",         // share of the words of the last heading, or the title, that the query contains
	"pairs",         // share of neighbouring query words that occur within 3 words of each other
	"phrase",        // share of neighbouring query words that occur as in the query, or side by side in its order
	"worst_missing", // weight of the heaviest query word that the hit lacks
	"names_missing", // share of the query's names and numbers that the hit lacks
	"bm25",          // BM25 over the sum of the query's inverse document frequencies
	"matched",       // log(1 + sum of the weights that the hit contains)
	"length",        // log(1 + number of content words in the query)
}

// VectorFeatureNames are the additional features of a hit whose similarity is known, in the order
// of VectorFeatures.
var VectorFeatureNames = []string{
	"similarity", // 10·(cosine - 0.8), in the range of the other features
}

// A rater computes the relevance of hits to one query.
type rater struct {
	terms  []assay.Term     // content words only
	at     map[string][]int // stem, in any language → indexes of its terms
	gaps   []int            // distance in words from each term to the next one in the query
	weight float64          // sum of the terms' weights
	idf    float64          // sum of their inverse document frequencies
	names  []string         // and numbers
	model  *RelevanceModel

	analyzers *analysis.Analyzers
	named     map[string][][]string // language → the stems of each name
}

// windowWords is the length of a window. pairWords is the greatest distance of a pair, and
// phraseWords that of neighbours which are that far apart in the query.
const (
	windowWords = 30
	pairWords   = 3
	phraseWords = 8
)

func newRater(a *analysis.Analyzers, query string, terms []assay.Term, joined []compound, chunks int) *rater {
	r := &rater{at: map[string][]int{}, model: defaultRelevance, analyzers: a, named: map[string][][]string{}}
	asking := lexical.Asking(query)
	for _, t := range terms {
		if word := strings.ToLower(t.Text); lexical.Function(word) || asking[word] {
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
	r.names = append(lexical.Names(query), lexical.Numbers(query)...)
	return r
}

// gaps returns the distance in words from each of the terms to the next one in the query. It is 1
// if the distance is unknown or exceeds phraseWords.
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

// namesIn returns the stems of each name and number of the query in a language.
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

// A reading is the result of analysing a hit for a rater.
type reading struct {
	features  []float64 // by FeatureNames; nil if the query has no content word
	wordless  bool      // the hit contains no content word of the query
	code      bool      // the hit is mostly code
	secondary bool      // the hit is a test, an unexported declaration or release notes
}

// read analyses a hit.
func (r *rater) read(h assay.Hit) reading {
	f, wordless := r.features(h)
	return reading{
		features:  f,
		wordless:  wordless,
		code:      h.Chunk.Kind != assay.ChunkTable && lexical.MostlyCode(h.Text),
		secondary: isSecondary(h),
	}
}

// relevance returns the calibrated probability that a hit helps to answer the query, by its words
// alone. It is 0 for a hit with none of the query's content words.
func (r *rater) relevance(h reading) float64 {
	if h.features == nil || h.wordless {
		return 0
	}
	return h.relevance(r.model.Weights, h.features)
}

// relevanceOf returns the relevance by words and by the similarity from an encoder. It is by words
// alone if the model has no weights for the encoder.
//
// The walk is not a feature. Its mass grows with the scores of the seeds, so if no passage answers
// a question, the next best ones would look relevant.
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
	if h.secondary {
		sum -= secondaryPenalty
	}
	for i, x := range features {
		sum += weights[i] * x
	}
	return 1 / (1 + math.Exp(-sum))
}

// Weights of the proximity of the query's words, and of the penalty on secondary hits, in the
// score of a hit among code. nDCG@10 by words on two sets of functions of Go's source and one of
// Python's is 0.583, 0.608, 0.529 with BM25; 0.593, 0.624, 0.541 with nearWeight 0.1; 0.606, 0.626,
// 0.544 with 0.2; 0.608, 0.629, 0.543 with 0.3; and 0.564, 0.606, 0.524 with relevance without its
// penalty on code.
const (
	nearWeight      = 0.25
	secondaryWeight = 0.2
)

// inCode returns the score of a hit by its words in a result that is mostly code. It is comparable
// only within that result.
func (h reading) inCode() float64 {
	if h.features == nil || h.wordless {
		return 0
	}
	sum := 0.0
	if h.secondary {
		sum -= secondaryWeight
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

// with returns the features with that of a similarity appended.
func (h reading) with(similarity float64) []float64 {
	return append(slices.Clone(h.features), 10*(similarity-0.8))
}

// Features returns the features of each hit of a query's results, by FeatureNames; nil for a hit
// that contains no content word of the query.
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

// VectorFeatures returns the features of each hit, by FeatureNames followed by VectorFeatureNames.
// They are nil for a hit whose similarity is not known, and for all hits if the query has no
// content word.
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

// Penalties on the log-odds for kinds of text that the fitted sets lack: source code and release
// notes. Code contains a question's words more often than it answers the question. Tests,
// unexported declarations and release notes do so more often than user documentation. The penalties
// on code and tests were chosen on the golden questions about Go's net/http in eval/testdata. On 40
// questions about three projects' documentation the penalty on release notes raises nDCG@10 by
// relevance from 0.708 to 0.722; release notes come first for 2 questions instead of 6.
const (
	codePenalty      = 2.5 // a hit that is mostly code
	secondaryPenalty = 1.0 // a test, an unexported declaration, or release notes
)

var (
	// testFile matches the name of a test file. Folders do not count, because the location of a
	// whole collection says little about one document in it.
	testFile   = lazyregexp.New(`(?i:(_test|\.test|\.spec)\.[a-z]+$)|[a-z]Test\.[a-z]+$`)
	unexported = lazyregexp.New(`^(func|type|var|const) (\([^)]*\) )?[a-z_]`)

	// notesFile and notesTitle match the names and titles of release notes. version matches a
	// heading that consists of a version and optionally its date.
	notesFile  = lazyregexp.New(`(?i)(^|/)(changelog|changes|release[-_]?notes)(\.[a-z]+)?$`)
	notesTitle = lazyregexp.New(`(?i)^(change ?log|release notes)\b`)
	version    = lazyregexp.New(`(?i)^(version )?\[?(v\d+(\.\d+)+|\d+(\.\d+){2,})\S*( *[-–(:]* *(unreleased|\d{4}-\d\d-\d\d)\)?)?$`)
)

// isSecondary reports whether a hit is a test, an unexported Go declaration or from release notes.
func isSecondary(h assay.Hit) bool {
	hs := h.Chunk.Headings
	switch {
	case testFile.MatchString(h.URI), notesFile.MatchString(h.URI), notesTitle.MatchString(h.Title), slices.ContainsFunc(hs, version.MatchString):
		return true
	}
	return strings.HasSuffix(h.URI, ".go") && len(hs) > 0 && unexported.MatchString(hs[len(hs)-1])
}
