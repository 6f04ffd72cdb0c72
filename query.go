package assay

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

// A Query is one search request.
type Query struct {
	Text        string   `json:"text"`
	Collections []string `json:"collections,omitempty"` // empty: all of the tenant
	Filter      Filter   `json:"filter"`                // the zero Filter keeps everything
	Limit       int      `json:"limit"`                 // hits to return, at least 1

	// Search settings; the zero values suit most queries.
	Mode      Mode     `json:"mode,omitempty"`
	Fusion    Fusion   `json:"fusion,omitempty"`
	Rewrites  []string `json:"rewrites,omitempty"`  // other wordings of Text, searched too
	Feedback  bool     `json:"feedback,omitempty"`  // also search for text similar to the passages nearest to Text
	Diversity float64  `json:"diversity,omitempty"` // in [0, 1]: penalty of a hit for similarity to a better one (MMR); 0: none
	Walk      Walk     `json:"walk,omitempty"`      // how far to follow entities of the best passages, if there is an entity graph
	// VectorWeight is the weight of vector similarity against lexical relevance in a weighted
	// fusion, in (0, 1]; 0 selects the default. Unranked keeps the fused order and skips the
	// reranker.
	VectorWeight float64 `json:"vector_weight,omitempty"`
	Unranked     bool    `json:"unranked,omitempty"`
	BM25         BM25    `json:"bm25,omitzero"` // parameters of the score by words

	From []string `json:"from,omitempty"` // IDs of chunks to follow in addition to the best ones; IDs outside the search are dropped
}

// BM25 are the parameters of the score by words. A zero field means its default.
type BM25 struct {
	K1 float64 `json:"k1,omitempty" yaml:"k1"` // how much repeated words count, in (0, 10]; 0.9
	B  float64 `json:"b,omitempty" yaml:"b"`   // how much long passages are penalised, in (0, 1]; 0.4
}

// DefaultBM25 are the parameters that replace zero fields of BM25.
var DefaultBM25 = BM25{K1: 0.9, B: 0.4}

// Over returns p with zero fields taken from below.
func (p BM25) Over(below BM25) BM25 {
	return BM25{K1: cmp.Or(p.K1, below.K1), B: cmp.Or(p.B, below.B)}
}

// MaxK1 is the largest K1.
const MaxK1 = 10

// Check returns an error that wraps ErrInvalid if a parameter is out of range.
func (p BM25) Check() error {
	if !(0 <= p.K1 && p.K1 <= MaxK1) {
		return fmt.Errorf("k1 of BM25 is %v and not in (0, %d]: %w", p.K1, MaxK1, ErrInvalid)
	}
	if !(0 <= p.B && p.B <= 1) {
		return fmt.Errorf("b of BM25 is %v and not in (0, 1]: %w", p.B, ErrInvalid)
	}
	return nil
}

// A Mode selects the scores that find candidates.
type Mode string

// The modes of a search.
const (
	ModeHybrid Mode = ""       // text, and vectors if there are any
	ModeText   Mode = "text"   // words only
	ModeVector Mode = "vector" // vectors only
)

// A Fusion selects how the candidates of several searches are merged into one list.
type Fusion string

// The fusions.
const (
	FusionWeighted Fusion = ""    // normalised scores, weighted
	FusionRRF      Fusion = "rrf" // reciprocal ranks
)

// A Walk is how far a search follows the entities that passages name.
type Walk string

// The walks.
const (
	WalkNear Walk = ""    // for most questions
	WalkFar  Walk = "far" // further, for questions whose answer is behind an intermediate entity
)

// A Hit is a chunk that a search returned, with its text and location.
type Hit struct {
	Chunk      Chunk    `json:"chunk"`
	Text       string   `json:"text"` // the chunk's text
	Collection string   `json:"collection"`
	URI        string   `json:"uri"`
	Title      string   `json:"title"`
	Language   string   `json:"language,omitempty"` // the document's, ISO 639-1; selects its stemmer
	Line       int      `json:"line,omitempty"`     // source line of Chunk.Start, from 1
	Page       int      `json:"page,omitempty"`
	Matched    []string `json:"matched,omitempty"` // the query's terms that the chunk holds, in the query's order
	// Children are the chunks found if the hit is the section that contains them, best first. The
	// scores of the hit are then the best of theirs.
	Children []Chunk `json:"children,omitempty"`
	Origin   Origin  `json:"origin,omitempty"`
	Scores   Scores  `json:"scores"`
}

// Under returns the title and headings above a hit, the most general first, joined by " > ". A
// heading that repeats the line before it is left out.
func (h Hit) Under() string {
	all := make([]string, 0, 1+len(h.Chunk.Headings))
	for _, line := range append([]string{h.Title}, h.Chunk.Headings...) {
		if line != "" && (len(all) == 0 || line != all[len(all)-1]) {
			all = append(all, line)
		}
	}
	return strings.Join(all, " > ")
}

// An Origin is where a hit and its citations come from.
type Origin string

// The origins.
const (
	FromDocuments Origin = ""        // the user's stored documents
	FromWeb       Origin = "web"     // the open web; cited text is kept only in the run's journal
	FromService   Origin = "service" // a managed service, such as a knowledge base; kept like FromWeb
)

// Scores are a hit's scores. Each has its own meaning and range, and they must not be compared with
// one another. nil means not computed, not zero.
type Scores struct {
	BM25   *float64 `json:"bm25,omitempty"`   // 0 or more; comparable only within one query on one index version
	Vector *float64 `json:"vector,omitempty"` // cosine, in [-1, 1]
	Graph  *float64 `json:"graph,omitempty"`  // share of the walk's mass, in [0, 1]
	Fused  *float64 `json:"fused,omitempty"`  // comparable only within one result
	Rerank *float64 `json:"rerank,omitempty"` // the reranker's own scale

	// Managed is the score of a managed search, such as a knowledge base, on its own scale. It is
	// comparable only within one result.
	Managed *float64 `json:"managed,omitempty"`

	// Confidence is the class of confidence that a managed search gives in place of a number, in its
	// own words: "VERY_HIGH". It is not compared with anything.
	Confidence string `json:"confidence,omitempty"`

	// Score is a scorer's judgement of how much the hit helps with the question, in [0, 1]. It is
	// not calibrated.
	Score *float64 `json:"score,omitempty"`

	// Relevance is the calibrated probability in [0, 1] that the hit helps to answer the query,
	// independent of the other hits. Floors and grades use only this score.
	Relevance float64 `json:"relevance"`
}

// A Term is one word of a query as the index sees it.
type Term struct {
	Text string `json:"text"` // its form in the query
	Stem string `json:"stem"` // its form in the index; of several languages the English one, or that of the first code
	// Forms are its other stems in the languages of the texts searched. They count like Stem.
	Forms  []string `json:"forms,omitempty"`
	Chunks int      `json:"chunks"` // chunks that contain it, among those visible to the caller
	// Weight is its inverse document frequency scaled to (0, 1]. It is 1 if no chunk holds the term
	// and falls as more chunks do; with few chunks it stays near 1. Stop words are not terms.
	Weight float64 `json:"weight"`
}

// Results are the findings of a retriever for one query.
type Results struct {
	Hits  []Hit  `json:"hits"`  // best first
	Terms []Term `json:"terms"` // the query's distinct terms, in its order
	// Chunks is the number of chunks of the index that the caller may see. Total is how many of
	// those that the filter keeps hold at least one of the terms. A Total of MaxTotal means that
	// many or more.
	Chunks int          `json:"chunks"`
	Total  int          `json:"total"`
	Index  IndexVersion `json:"index"`
	// Notes report how the hits were found: that some passages have no vectors yet, or that a part
	// of the search was left out and why.
	Notes []Note `json:"notes,omitempty"`
}

// MaxTotal is how far a search counts its matches. Past it, chunks that cannot be among the best
// are skipped, and their number is unknown.
const MaxTotal = 1000

// An IndexVersion states what of the index a search used. It is the same whether or not there are
// documents that the caller may not see.
type IndexVersion struct {
	Model    string  `json:"model"`    // of its vectors; empty: text search only
	Coverage float64 `json:"coverage"` // share of the visible chunks that have a vector
}

// A Retriever finds chunks. It never returns, scores or counts a chunk that access may not see.
// Text without any term gives no hits and no error. An unknown filter key is ErrInvalid. It is safe
// for concurrent use.
type Retriever interface {
	Retrieve(ctx context.Context, access Access, q Query) (Results, error)
}
