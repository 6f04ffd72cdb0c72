// Package passage turns the passages that a search service finds into hits of assay. It is what the
// adapters for knowledge bases, managed indexes and similar services have in common: who may see a
// passage, how it becomes a document that can be cited, and what is checked of every result.
//
// A service is not trusted to apply the filter that restricts a search to what the caller may see.
// Each passage is checked against its own metadata again, and dropped if that does not let the caller
// see it.
package passage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/resilient"
)

// defaultKeep is the number of documents that a Retriever keeps.
const defaultKeep = 4096

// A Config configures a Retriever. Name, Source, Collection, Pipeline, Search and Check are required.
// Without a Sharing no principal can see anything.
type Config struct {
	Name       string // in errors, notes and budgets, such as "bedrock/knowledge-base/ABCDEFGHIJ"
	Source     string // begins the URI of a passage without one
	Collection string
	Pipeline   string // version of the conversion of results; part of the documents' versions
	Sharing    Sharing
	Filter     assay.Filter // applied to every query
	Keep       int          // number of retrieved documents kept for citations; 0: 4096

	// Recheck drops passages whose metadata the filter of the request does not keep. The metadata must
	// then have all keys of the filter.
	Recheck bool

	Guard *resilient.Guard // makes and retries the searches; nil: each is made once

	// Search asks the service. It applies Request.Filter as a whole or returns assay.ErrInvalid.
	Search func(ctx context.Context, in Request) (Found, error)

	// Check returns assay.ErrInvalid if the service cannot apply a filter.
	Check func(f assay.Filter) error
}

// A Request is one search.
type Request struct {
	Query  assay.Query
	Access assay.Access // not zero
	Filter assay.Filter // of the query, the configuration and the access; replaces Query.Filter
}

// Found is what a service found.
type Found struct {
	Passages []Passage // best first
	Notes    []string
}

// A Passage is a result of a service.
type Passage struct {
	ID       string // of the service, for a passage without a URI; may be empty
	Text     string // empty: the result is skipped with a note
	URI      string
	Title    string // empty: derived from URI
	Language string // ISO 639-1; empty: unknown
	Page     int    // 0: unknown
	Metadata assay.Metadata
	Scores   assay.Scores // without Relevance
}

// A Retriever searches a service. It implements assay.Retriever. It is safe for concurrent use if
// Config.Search is.
//
// Each retrieved passage becomes a document version with the passage's whole text, so that quotes
// are spans of it. The passages of one source are versions of one document. ACL and Version cover
// the documents most recently retrieved by this Retriever, in this process.
//
// A passage that occurs several times, or lies within another of the same source, is part of one
// hit: the larger passage, with the smaller as its child.
type Retriever struct {
	config Config

	mu    sync.Mutex
	acls  map[string]assay.ACL      // by document
	texts map[string]assay.Document // by document and version
	order []string                  // keys of texts, oldest first
}

// New returns a Retriever. An invalid sharing or filter is assay.ErrInvalid.
func New(c Config) (*Retriever, error) {
	if err := c.Sharing.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	if err := c.Check(c.Filter); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	c.Keep = cmp.Or(c.Keep, defaultKeep)
	return &Retriever{config: c, acls: map[string]assay.ACL{}, texts: map[string]assay.Document{}}, nil
}

// Model returns the name of the service in errors and budgets.
func (r *Retriever) Model() string { return r.config.Name }

// Collection returns the name of the service's collection.
func (r *Retriever) Collection() string { return r.config.Collection }

// Visible reports whether access may see any document of the service.
func (r *Retriever) Visible(access assay.Access) bool {
	_, ok := r.config.Sharing.Filter(access)
	return ok
}

// Check returns assay.ErrInvalid if the service cannot apply a filter.
func (r *Retriever) Check(f assay.Filter) error {
	if err := r.config.Check(f); err != nil {
		return fmt.Errorf("%s: %w", r.config.Name, err)
	}
	return nil
}

// Retrieve implements assay.Retriever. It returns no hits, without calling the service, if access
// sees nothing of it or the query is for other collections. Failures of the service are *llm.Error.
//
// The relevance of a hit is the service's own score, clipped to [0, 1], and 0 for a hit without one.
// It is not calibrated, which a note states. Search leaves it out.
func (r *Retriever) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	results, err := r.Search(ctx, access, q)
	if err != nil || len(results.Hits) == 0 {
		return results, err
	}
	for i := range results.Hits {
		s := &results.Hits[i].Scores
		s.Relevance = min(max(own(*s), 0), 1)
	}
	results.Notes = append(results.Notes, searchNotes(r.config.Name+": relevance is the service's own score, which is not calibrated")...)
	return results, nil
}

// Search is Retrieve without the relevance of the hits.
func (r *Retriever) Search(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	results := assay.Results{Hits: []assay.Hit{}, Terms: []assay.Term{}}
	if q.Limit < 1 {
		return results, fmt.Errorf("query for %d hits: %w", q.Limit, assay.ErrInvalid)
	}
	if len(q.Collections) > 0 && !slices.Contains(q.Collections, r.config.Collection) {
		return results, nil
	}
	terms := analysis.QueryTerms(q.Text, nil)
	if len(terms) == 0 {
		return results, nil
	}
	limits, ok := r.config.Sharing.Filter(access)
	if !ok {
		results.Notes = searchNotes(Hidden(r.config.Name))
		return results, nil
	}
	in := Request{Query: q, Access: access, Filter: assay.And(r.config.Filter, assay.And(q.Filter, limits))}
	found, err := r.ask(ctx, in)
	if err != nil {
		return results, err
	}
	notes := slices.Concat(r.ignored(q), found.Notes)
	results.Hits = r.hits(in, found.Passages, &notes)
	results.Notes = searchNotes(notes...)
	tell(&results, terms)
	return results, nil
}

// ask makes the search, through the guard if there is one.
func (r *Retriever) ask(ctx context.Context, in Request) (Found, error) {
	if r.config.Guard == nil {
		return r.config.Search(ctx, in)
	}
	found, _, err := resilient.Do(ctx, r.config.Guard, resilient.Read{Name: r.config.Name}, func(ctx context.Context) (Found, error) {
		return r.config.Search(ctx, in)
	})
	return found, err
}

// searchNotes returns texts as notes of a search.
func searchNotes(texts ...string) []assay.Note {
	var notes []assay.Note
	for _, t := range texts {
		notes = append(notes, assay.Note{Kind: assay.NoteSearch, Text: t})
	}
	return notes
}

// ignored returns notes on the settings of a query that no service has.
func (r *Retriever) ignored(q assay.Query) []string {
	var notes []string
	for what, asked := range map[string]bool{
		"rewrites": len(q.Rewrites) > 0, "feedback": q.Feedback, "diversity": q.Diversity > 0, "rank fusion": q.Fusion != "",
	} {
		if asked {
			notes = append(notes, fmt.Sprintf("%s: the service does not support %s; it was ignored", r.config.Name, what))
		}
	}
	slices.Sort(notes)
	return notes
}

// hits converts passages to hits in their order, best first, and adds notes on dropped ones.
func (r *Retriever) hits(in Request, found []Passage, notes *[]string) []assay.Hit {
	var hits []assay.Hit
	empty, foreign := 0, false
	for _, p := range found {
		if r.config.Recheck && !in.Filter.Match(p.Metadata) {
			foreign = true
			continue
		}
		h, ok := r.Hit(in.Access, p, in.Query.Text)
		switch {
		case !ok:
			foreign = true
		case h.Text == "":
			empty++
		default:
			hits = append(hits, h)
		}
	}
	hits = nest(hits)
	if empty > 0 {
		*notes = append(*notes, fmt.Sprintf("%s: skipped %d results without text, such as images", r.config.Name, empty))
	}
	if foreign { // not their number, which would tell of documents that the caller may not see
		*notes = append(*notes, r.config.Name+" returned passages that the filter excludes; they were dropped")
	}
	return hits[:min(len(hits), in.Query.Limit)]
}

// Hit converts a passage found for a query to a hit, and keeps its document. ok is false if access
// may not see it. A passage without text becomes a hit without text, which is not kept.
func (r *Retriever) Hit(access assay.Access, p Passage, query string) (h assay.Hit, ok bool) {
	doc := r.document(p)
	if !access.Allows("", doc.ACL) {
		return assay.Hit{}, false
	}
	if doc.Text != "" {
		r.keep(doc)
	}
	h = assay.Hit{
		Chunk: assay.Chunk{
			ID: assay.ChunkID(doc.ID, doc.Version, 0), Document: doc.ID, Version: doc.Version, Kind: assay.ChunkProse,
			End: len(doc.Text), Headings: []string{}, Tokens: llm.EstimateTokens(doc.Text),
		},
		Text: doc.Text, Collection: doc.Collection, URI: doc.URI, Title: doc.Title, Language: p.Language, Page: max(0, p.Page),
		Matched: matched(query, doc.Text), Origin: assay.FromService, Scores: finite(p.Scores),
	}
	return h, true
}

// finite returns scores without those that are no number, and without a relevance.
func finite(s assay.Scores) assay.Scores {
	s.Relevance = 0
	for _, f := range []**float64{&s.BM25, &s.Vector, &s.Graph, &s.Fused, &s.Rerank, &s.Managed, &s.Score} {
		if *f != nil && (math.IsNaN(**f) || math.IsInf(**f, 0)) {
			*f = nil
		}
	}
	return s
}

// document returns a passage as a document version. The document of a passage without text has no
// text.
func (r *Retriever) document(p Passage) assay.Document {
	c := &r.config
	text := strings.TrimSpace(visible.Text(strings.ReplaceAll(p.Text, "\r\n", "\n")))
	d := assay.Document{
		Collection: c.Collection, URI: p.URI, Title: visible.Text(p.Title), Text: text, Metadata: p.Metadata, ACL: c.Sharing.ACL(p.Metadata),
		Source: assay.SourceInfo{SizeBytes: int64(len(text))},
	}
	if d.URI == "" {
		d.URI = c.Source + "/" + p.ID
		if p.ID == "" { // otherwise two passages would be one document
			d.URI, d.Title = d.URI+hashOf(text), cmp.Or(d.Title, c.Collection)
		}
	}
	d.Title = cmp.Or(d.Title, path.Base(strings.TrimRight(d.URI, "/")))
	if text != "" {
		d.Anchors = []assay.Anchor{{Page: max(0, p.Page)}}
	}
	d.ID = assay.DocumentID(d.Collection, d.URI)
	d.Version = assay.DocumentVersion(d.Text, d.Metadata, c.Pipeline)
	return d
}

// hashOf returns a hash that identifies a text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// nest merges hits that contain one another. Hits keep their order. A hit that contains another
// takes the better position of the two.
func nest(hits []assay.Hit) []assay.Hit {
	type ranked struct {
		assay.Hit
		rank int
	}
	all := make([]ranked, len(hits))
	for i, h := range hits {
		all[i] = ranked{h, i}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(len(b.Text), len(a.Text)) })
	var kept []ranked
next:
	for _, h := range all {
		for i := range kept {
			k := &kept[i]
			if k.Chunk.Document != h.Chunk.Document {
				continue
			}
			at := strings.Index(k.Text, h.Text)
			if at < 0 {
				continue
			}
			k.Scores, k.rank = better(k.Scores, h.Scores), min(k.rank, h.rank)
			if len(h.Text) < len(k.Text) {
				adopt(&k.Hit, h.Hit, at)
			}
			continue next
		}
		kept = append(kept, h)
	}
	slices.SortFunc(kept, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	out := make([]assay.Hit, len(kept))
	for i, k := range kept {
		out[i] = k.Hit
	}
	return out
}

// adopt makes h a child of parent, in whose text it begins at offset at.
func adopt(parent *assay.Hit, h assay.Hit, at int) {
	parent.Chunk.Kind = assay.ChunkSection
	child := h.Chunk
	child.Version, child.Ordinal, child.Parent = parent.Chunk.Version, len(parent.Children)+1, parent.Chunk.ID
	child.ID = assay.ChunkID(child.Document, child.Version, child.Ordinal)
	child.Start, child.End = at, at+len(h.Text)
	parent.Children = append(parent.Children, child)
}

// better returns the scores of which the service's own is higher.
func better(a, b assay.Scores) assay.Scores {
	if own(b) > own(a) {
		return b
	}
	return a
}

// own returns the service's own score that orders a result.
func own(s assay.Scores) float64 {
	for _, score := range []*float64{s.Rerank, s.Managed, s.Vector} {
		if score != nil {
			return *score
		}
	}
	return math.Inf(-1)
}

// matched returns the terms of a query that occur in a text.
func matched(query, text string) []string {
	held := map[string]bool{}
	for _, t := range analysis.Tokens(text, "") {
		held[t.Term] = true
	}
	var out []string
	for _, t := range analysis.QueryTerms(query, nil) {
		if slices.ContainsFunc(t.Forms, func(form string) bool { return held[form] }) {
			out = append(out, t.Text)
		}
	}
	return out
}

// tell fills in statistics on the query's terms. They cover only the hits, since the number of
// matching passages in the knowledge base is unknown.
func tell(r *assay.Results, terms []analysis.QueryTerm) {
	r.Chunks, r.Total = len(r.Hits), len(r.Hits)
	for _, t := range terms {
		term := assay.Term{Text: t.Text, Stem: t.Forms[0], Forms: t.Forms[1:], Weight: 1}
		for _, h := range r.Hits {
			if slices.Contains(h.Matched, t.Text) {
				term.Chunks++
			}
		}
		r.Terms = append(r.Terms, term)
	}
}
