package assay

import (
	"context"
	"strings"
)

// A Query is what is searched.
type Query struct {
	Text        string   `json:"text"`
	Collections []string `json:"collections,omitempty"` // empty: all of the tenant
	Filter      Filter   `json:"filter"`                // the zero Filter keeps everything
	Limit       int      `json:"limit"`                 // hits to return, at least 1

	// How to search; the zero values are what is best for most.
	Mode      Mode     `json:"mode,omitempty"`
	Fusion    Fusion   `json:"fusion,omitempty"`
	Rewrites  []string `json:"rewrites,omitempty"`  // other wordings of Text, searched beside it
	Feedback  bool     `json:"feedback,omitempty"`  // search as well for what is like the passages nearest to Text
	Diversity float64  `json:"diversity,omitempty"` // in [0, 1]: how much a hit loses for being like a better one (MMR); 0: nothing
	Walk      Walk     `json:"walk,omitempty"`      // how far what the best passages name is followed, where there is an entity graph
	// VectorWeight is what similarity weighs against the relevance of words in a weighted
	// fusion, in (0, 1]; 0: what is best for most. Unranked leaves the fused order: the
	// reranker is not asked.
	VectorWeight float64 `json:"vector_weight,omitempty"`
	Unranked     bool    `json:"unranked,omitempty"`

	From []string `json:"from,omitempty"` // IDs of chunks that are followed as well, as the best are; those that the search may not find are left out
}

// A Mode says which scores find candidates.
type Mode string

// The modes of a search.
const (
	ModeHybrid Mode = ""       // text, and vectors where there are any
	ModeText   Mode = "text"   // words alone
	ModeVector Mode = "vector" // vectors alone
)

// A Fusion says how candidates of several searches become one list.
type Fusion string

// The fusions.
const (
	FusionWeighted Fusion = ""    // normalised scores, weighted
	FusionRRF      Fusion = "rrf" // reciprocal ranks
)

// A Walk says how far a search follows what passages name to others.
type Walk string

// The walks.
const (
	WalkNear Walk = ""    // for most questions
	WalkFar  Walk = "far" // further, for questions whose answer lies behind what they name
)

// A Hit is a chunk that a search returned, with its text and where it stands.
type Hit struct {
	Chunk      Chunk    `json:"chunk"`
	Text       string   `json:"text"` // the chunk's text
	Collection string   `json:"collection"`
	URI        string   `json:"uri"`
	Title      string   `json:"title"`
	Language   string   `json:"language,omitempty"` // the document's, ISO 639-1; its terms are stemmed by it
	Line       int      `json:"line,omitempty"`     // source line of Chunk.Start, from 1
	Page       int      `json:"page,omitempty"`
	Matched    []string `json:"matched,omitempty"` // the query's terms that the chunk holds, in the query's order
	// Children are the chunks that were found where the hit is the section that holds
	// them, best first. Its scores are then the best of theirs.
	Children []Chunk `json:"children,omitempty"`
	Origin   Origin  `json:"origin,omitempty"`
	Scores   Scores  `json:"scores"`
}

// Under is the title and the headings that a hit stands under, the most general first,
// joined by " > "; each once.
func (h Hit) Under() string {
	all := make([]string, 0, 1+len(h.Chunk.Headings))
	for _, line := range append([]string{h.Title}, h.Chunk.Headings...) {
		if line != "" && (len(all) == 0 || line != all[len(all)-1]) {
			all = append(all, line)
		}
	}
	return strings.Join(all, " > ")
}

// An Origin says where a hit and what is cited of it are from.
type Origin string

// The origins.
const (
	FromDocuments Origin = ""        // the user's documents, as they are stored
	FromWeb       Origin = "web"     // the open web; what is cited is kept in the run's journal alone
	FromService   Origin = "service" // a managed service, as a knowledge base; kept as that of the web
)

// Scores are a hit's scores. Each has its own meaning and range and they are
// never compared with one another; nil means it was not computed, not zero.
type Scores struct {
	BM25   *float64 `json:"bm25,omitempty"`   // 0 or more; comparable only within one query on one index version
	Vector *float64 `json:"vector,omitempty"` // cosine, in [-1, 1]
	Graph  *float64 `json:"graph,omitempty"`  // share of the walk's mass, in [0, 1]
	Fused  *float64 `json:"fused,omitempty"`  // comparable only within one result
	Rerank *float64 `json:"rerank,omitempty"` // the reranker's own scale

	// Managed is what a managed search, such as a knowledge base, says of the hit, on a
	// scale of its own; comparable only within one result.
	Managed *float64 `json:"managed,omitempty"`

	// Score is what a scorer says of how much the hit helps with the question, in [0, 1];
	// nobody has calibrated it.
	Score *float64 `json:"score,omitempty"`

	// Relevance is the calibrated probability in [0, 1] that the hit helps to
	// answer the query, independent of the other hits. Floors and grades use it
	// and nothing else.
	Relevance float64 `json:"relevance"`
}

// A Term is one word of a query as the index sees it.
type Term struct {
	Text string `json:"text"` // as it stands in the query
	Stem string `json:"stem"` // as it is indexed; of several languages in English, or in the first by code
	// Forms are the other stems that it has in the languages of the texts searched.
	// They count as it does.
	Forms  []string `json:"forms,omitempty"`
	Chunks int      `json:"chunks"` // how many chunks that the caller may see hold it
	// Weight is its inverse document frequency scaled to (0, 1]: 1 when no chunk
	// holds it, less the more do; where there are few chunks it stays near 1.
	// Stop words are not terms.
	Weight float64 `json:"weight"`
}

// Results are what a retriever found for one query.
type Results struct {
	Hits  []Hit  `json:"hits"`  // best first
	Terms []Term `json:"terms"` // the query's distinct terms, in its order
	// Chunks is how many chunks of the index the caller may see; Total how many
	// of those that the filter keeps hold at least one of the terms. MaxTotal means
	// so many or more.
	Chunks int          `json:"chunks"`
	Total  int          `json:"total"`
	Index  IndexVersion `json:"index"`
	// Notes say what a reader has to know of how the hits were found: that not all
	// passages have vectors yet, that a part of the search was left out and why.
	Notes []Note `json:"notes,omitempty"`
}

// MaxTotal is how far a search counts what it finds: past it chunks that cannot
// be among the best are left out, and nobody knows how many they are.
const MaxTotal = 1000

// An IndexVersion names one state of an index.
type IndexVersion struct {
	Sequence int64   `json:"sequence"` // of the store, up to which it holds all changes
	Model    string  `json:"model"`    // of its vectors; empty: searched by text alone
	Coverage float64 `json:"coverage"` // share of its chunks that have a vector
}

// A Retriever finds chunks. It never returns, scores or counts a chunk that
// access may not see. Text in which no term is left gives no hits and no error;
// an unknown filter key is ErrInvalid. It is safe for concurrent use.
type Retriever interface {
	Retrieve(ctx context.Context, access Access, q Query) (Results, error)
}
