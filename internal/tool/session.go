package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

// Backend executes tool calls on behalf of the principal. It always applies the principal's access,
// filter and collections. An assay.ErrInvalid, ErrNotFound or ErrUnavailable is reported to the
// agent that made the call; any other error ends the run. It is safe for concurrent use.
type Backend interface {
	// Search searches. The filter of q narrows that of the principal.
	Search(ctx context.Context, q assay.Query) (assay.Results, error)

	// Walk returns the passages that a walk over the entity graph reaches from what q.Text names
	// and from the chunks q.From, those with the most mass first, at most q.Limit.
	Walk(ctx context.Context, q assay.Query) (assay.Results, error)

	// Page reads a document, as PageOf does. It returns assay.ErrNotFound for a document that does
	// not exist, is not visible to the principal or does not match the filter.
	Page(ctx context.Context, ref Reference, page int) (Page, error)

	// Summarise, Compare and Extract read evidence. An empty question is that of the run, if there
	// is one.
	Summarise(ctx context.Context, in role.Reading) (role.Summary, error)
	Compare(ctx context.Context, in role.Reading) (role.Contrast, error)
	Extract(ctx context.Context, in role.ExtractInput) (role.Extraction, error)
}

// A Session tracks the tool calls for one question and numbers their results. Parse and Do may run
// concurrently, even for several calls; Show may not.
type Session struct {
	// Results is the most results of a search or a walk; 0 means 8.
	Results int

	results   []assay.Hit // chunk n is at index n-1
	documents []reference // document dn is at index n-1
}

// A reference is a document of the session's results.
type reference struct{ id, version, uri string }

// An Output is the outcome of a call. Its JSON contains all of it.
type Output struct {
	Query      *assay.Query     `json:"query,omitempty"` // the query, before narrowing
	Results    *assay.Results   `json:"results,omitempty"`
	Page       *Page            `json:"page,omitempty"`
	Summary    *role.Summary    `json:"summary,omitempty"`
	Contrast   *role.Contrast   `json:"contrast,omitempty"`
	Extraction *role.Extraction `json:"extraction,omitempty"`

	// Refused is the reason why the call gave no results, for the agent that made it. Invalid
	// reports whether the arguments are the cause.
	Refused string `json:"refused,omitempty"`
	Invalid bool   `json:"invalid,omitempty"`
}

// Parse is like the function Parse, and also refuses chunks and documents that this session does not
// have.
func (s *Session) Parse(name, arguments string) (Call, error) {
	c, err := Parse(name, arguments)
	if err != nil {
		return Call{}, err
	}
	if err := s.known(c); err != nil {
		return Call{}, &Refusal{fmt.Sprintf("%s was not called: %s", name, err)}
	}
	return c, nil
}

// known returns an error for the first name in c that does not exist in the session.
func (s *Session) known(c Call) error {
	for _, n := range c.chunks.Chunks {
		if n > len(s.results) {
			return fmt.Errorf("there is no chunk %d; %s", n, s.chunkNumbers())
		}
	}
	for i, d := range c.compare.IDs {
		at, ok := s.document(d)
		if !ok {
			return fmt.Errorf("no result is of a document %q; %s", brief(d, 64), s.handles())
		}
		for _, o := range c.compare.IDs[:i] {
			if before, _ := s.document(o); before == at {
				return fmt.Errorf("%q and %q are one document", brief(o, 64), brief(d, 64))
			}
		}
	}
	if d := c.document.ID; d != "" {
		if _, ok := s.document(d); !ok && isHandle(d) {
			return fmt.Errorf("no result is of a document %s; %s", d, s.handles())
		}
	}
	return nil
}

func (s *Session) chunkNumbers() string {
	if len(s.results) == 0 {
		return "there are none yet: search first"
	}
	return fmt.Sprintf("there are 1 to %d", len(s.results))
}

func (s *Session) handles() string {
	if len(s.documents) == 0 {
		return "there are no results yet: search first"
	}
	return fmt.Sprintf("there are d1 to d%d", len(s.documents))
}

// isHandle reports whether text has the form of a document handle.
func isHandle(text string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "d"))
	return err == nil && n >= 0 && strings.HasPrefix(text, "d")
}

// document returns the index of the session's document with the given handle or URI.
func (s *Session) document(name string) (at int, ok bool) {
	if isHandle(name) {
		n, _ := strconv.Atoi(name[1:])
		return n - 1, n >= 1 && n <= len(s.documents)
	}
	at = slices.IndexFunc(s.documents, func(r reference) bool { return r.uri == name })
	return at, at >= 0
}

// Do executes a call that the session has parsed. A non-nil error ends the run. A call that merely
// fails returns an Output with Refused set.
func (s *Session) Do(ctx context.Context, backend Backend, c Call) (Output, error) {
	out, err := s.do(ctx, backend, c)
	switch {
	case err == nil:
		return out, nil
	case role.Ends(ctx, err):
		return Output{}, err
	case errors.Is(err, assay.ErrInvalid):
		return Output{Refused: c.Tool + " cannot be done so: " + reason(err), Invalid: true}, nil
	case errors.Is(err, assay.ErrNotFound):
		return Output{Refused: "there is no such document among those that can be read here"}, nil
	case errors.Is(err, assay.ErrUnavailable):
		return Output{Refused: c.Tool + " is not available now"}, nil
	}
	return Output{}, err
}

// reason returns the text of err without its step prefix and its error kind.
func reason(err error) string {
	text := strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error())
	if rest, ok := strings.CutPrefix(text, "step "); ok {
		if _, said, ok := strings.Cut(rest, ": "); ok {
			text = said
		}
	}
	return brief(text, 300)
}

func (s *Session) do(ctx context.Context, backend Backend, c Call) (out Output, err error) {
	switch c.Tool {
	case Search:
		q := assay.Query{Text: c.search.Query, Filter: c.search.filter, Limit: cmp.Or(s.Results, defaultResults)}
		found, err := backend.Search(ctx, q)
		return Output{Query: &q, Results: &found}, err
	case Graph:
		q := assay.Query{Text: strings.Join(c.graph.Entities, ", "), Walk: assay.WalkFar, From: s.chunksNaming(c.graph.Entities), Limit: cmp.Or(s.Results, defaultResults)}
		found, err := backend.Walk(ctx, q)
		return Output{Query: &q, Results: &found}, err
	case GetDocument:
		page, err := backend.Page(ctx, s.reference(c.document.ID), c.document.Page)
		return Output{Page: &page}, err
	case Summarise:
		summary, err := backend.Summarise(ctx, role.Reading{Evidence: s.evidence(c.chunks.Chunks)})
		return Output{Summary: &summary}, err
	case Compare:
		contrast, err := backend.Compare(ctx, role.Reading{Question: c.compare.Aspect, Evidence: s.ofDocuments(c.compare.IDs)})
		return Output{Contrast: &contrast}, err
	case Extract:
		in := role.ExtractInput{Reading: role.Reading{Evidence: s.evidence(c.chunks.Chunks)}, EntityType: c.chunks.EntityType}
		extraction, err := backend.Extract(ctx, in)
		return Output{Extraction: &extraction}, err
	}
	return Output{}, fmt.Errorf("there is no tool %q: %w", c.Tool, assay.ErrInvalid)
}

// reference returns a Reference to the document to read.
func (s *Session) reference(id string) Reference {
	if at, ok := s.document(id); ok {
		r := s.documents[at]
		return Reference{Document: r.id, Version: r.version, URI: r.uri}
	}
	return Reference{URI: id}
}

// chunksNaming returns the chunk IDs of the best results that have one of the names in their text,
// title or headings.
func (s *Session) chunksNaming(names []string) []string {
	const most = 8
	var found []assay.Hit
	for _, h := range s.results {
		text := folded(strings.Join(append([]string{h.Title, h.Text}, h.Chunk.Headings...), "\n"))
		if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, folded(name)) }) {
			found = append(found, h)
		}
	}
	slices.SortStableFunc(found, func(a, b assay.Hit) int { return cmp.Compare(b.Scores.Relevance, a.Scores.Relevance) })
	var ids []string
	for _, h := range found[:min(most, len(found))] {
		ids = append(ids, h.Chunk.ID)
	}
	return ids
}

func (s *Session) evidence(numbers []int) []assay.Evidence {
	var out []assay.Evidence
	for _, n := range numbers {
		out = append(out, assay.Evidence{Number: n, Hit: s.results[n-1]})
	}
	return out
}

// ofDocuments returns the best results of each document, at most 4 each.
func (s *Session) ofDocuments(names []string) []assay.Evidence {
	const most = 4
	var out []assay.Evidence
	for _, name := range names {
		at, _ := s.document(name)
		var of []assay.Evidence
		for i, h := range s.results {
			if h.Chunk.Document == s.documents[at].id {
				of = append(of, assay.Evidence{Number: i + 1, Hit: h})
			}
		}
		slices.SortStableFunc(of, func(a, b assay.Evidence) int {
			return cmp.Compare(b.Hit.Scores.Relevance, a.Hit.Scores.Relevance)
		})
		out = append(out, of[:min(most, len(of))]...)
	}
	return out
}

// Evidence returns all the results that were shown, by number.
func (s *Session) Evidence() []assay.Evidence {
	out := make([]assay.Evidence, len(s.results))
	for i, h := range s.results {
		out[i] = assay.Evidence{Number: i + 1, Hit: h}
	}
	return out
}

// number returns the number of a result and assigns one to a new result.
func (s *Session) number(h assay.Hit) int {
	i := slices.IndexFunc(s.results, func(o assay.Hit) bool { return o.Chunk.ID == h.Chunk.ID })
	if i < 0 {
		i = len(s.results)
		s.results = append(s.results, h)
	} else if h.Scores.Relevance > s.results[i].Scores.Relevance {
		s.results[i].Scores = h.Scores
	}
	return i + 1
}

// handle returns the handle of a result's document and assigns one to a new document. The version
// is that of the first result shown.
func (s *Session) handle(h assay.Hit) string {
	i := slices.IndexFunc(s.documents, func(r reference) bool { return r.id == h.Chunk.Document })
	if i < 0 {
		i = len(s.documents)
		s.documents = append(s.documents, reference{h.Chunk.Document, h.Chunk.Version, h.URI})
	}
	return fmt.Sprintf("d%d", i+1)
}

// relevanceOf returns the relevance of a page as evidence: the best relevance of the results inside
// it, since a page that contains a passage helps as much as the passage. It is 0 for a page without
// any.
func (s *Session) relevanceOf(p Page) float64 {
	best := 0.0
	for _, h := range s.results {
		c := h.Chunk
		if c.Document == p.Document && c.Version == p.Version && p.Start <= c.Start && c.End <= p.End {
			best = max(best, h.Scores.Relevance)
		}
	}
	return best
}
