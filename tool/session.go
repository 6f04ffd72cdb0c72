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

// A Reach is what the tools can reach, on behalf of whoever asks: it works with their
// access and within their filter and collections, whatever is asked of it. Errors that
// are assay.ErrInvalid, ErrNotFound or ErrUnavailable are told to whoever made the
// call; others end it. It is safe for concurrent use.
type Reach interface {
	// Search searches. The query's filter and collections narrow those of whoever asks.
	Search(ctx context.Context, q assay.Query) (assay.Results, error)

	// Page reads a part of a document, as PageOf. A document that does not exist, may
	// not be seen or is not within the filter is assay.ErrNotFound.
	Page(ctx context.Context, ref Reference, offset, limit int) (Page, error)

	Summarise(ctx context.Context, in role.Reading) (role.Summary, error)
	Compare(ctx context.Context, in role.Reading) (role.Contrast, error)
	Extract(ctx context.Context, in role.Reading) (role.Extraction, error)
}

// A Session is the calls that are made for one question: it numbers what they bring.
// Parse and Do may run side by side, also for several calls; Show may not.
type Session struct {
	// Collections are those that a call may name; none: any.
	Collections []string

	results   []assay.Hit // number n at n-1
	documents []reference // dn at n-1
}

// A reference is a document that results are of.
type reference struct{ id, version, uri string }

// An Output is what a call brought. Its JSON holds all of it.
type Output struct {
	Query      *assay.Query     `json:"query,omitempty"` // that was searched, before it was narrowed
	Results    *assay.Results   `json:"results,omitempty"`
	Page       *Page            `json:"page,omitempty"`
	Summary    *role.Summary    `json:"summary,omitempty"`
	Contrast   *role.Contrast   `json:"contrast,omitempty"`
	Extraction *role.Extraction `json:"extraction,omitempty"`

	// Refused says why nothing came of the call, in words for whoever made it; Invalid,
	// that its arguments are to blame.
	Refused string `json:"refused,omitempty"`
	Invalid bool   `json:"invalid,omitempty"`
}

// Parse is the function Parse, and refuses results, documents and collections that do
// not exist here.
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

// known says what of that which a call names does not exist.
func (s *Session) known(c Call) error {
	named := c.search.Collections
	if c.document.Collection != "" {
		named = []string{c.document.Collection}
	}
	for _, name := range named {
		if len(s.Collections) > 0 && !slices.Contains(s.Collections, name) {
			return fmt.Errorf("there is no collection %q; there are %s", brief(name, 64), quoted(s.Collections))
		}
	}
	for _, n := range c.results.Results {
		if n > len(s.results) {
			return fmt.Errorf("there is no result %d; %s", n, s.resultNumbers())
		}
	}
	for i, d := range c.compare.Documents {
		at, ok := s.document(d)
		if !ok {
			return fmt.Errorf("no result is of a document %q; %s", brief(d, 64), s.handles())
		}
		for _, o := range c.compare.Documents[:i] {
			if before, _ := s.document(o); before == at {
				return fmt.Errorf("%q and %q are one document", brief(o, 64), brief(d, 64))
			}
		}
	}
	if d := c.document.Document; d != "" {
		if _, ok := s.document(d); !ok && isHandle(d) {
			return fmt.Errorf("no result is of a document %s; %s", d, s.handles())
		}
	}
	return nil
}

func quoted(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, strconv.Quote(brief(n, 64)))
	}
	return strings.Join(out, ", ")
}

func (s *Session) resultNumbers() string {
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

// isHandle reports whether a text has the form of a document's handle.
func isHandle(text string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "d"))
	return err == nil && n >= 0 && strings.HasPrefix(text, "d")
}

// document returns which of the session's documents is named, by handle or URI.
func (s *Session) document(name string) (at int, ok bool) {
	if isHandle(name) {
		n, _ := strconv.Atoi(name[1:])
		return n - 1, n >= 1 && n <= len(s.documents)
	}
	at = slices.IndexFunc(s.documents, func(r reference) bool { return r.uri == name })
	return at, at >= 0
}

// Do makes a call that the session has parsed. The error is one that ends whatever the
// call is made for; that a call brought nothing is an Output.
func (s *Session) Do(ctx context.Context, reach Reach, c Call) (Output, error) {
	out, err := s.do(ctx, reach, c)
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

// reason is an error's text without the step that it is of and the kind that it has.
func reason(err error) string {
	text := strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error())
	if rest, ok := strings.CutPrefix(text, "step "); ok {
		if _, said, ok := strings.Cut(rest, ": "); ok {
			text = said
		}
	}
	return brief(text, 300)
}

func (s *Session) do(ctx context.Context, reach Reach, c Call) (out Output, err error) {
	switch c.Tool {
	case Search:
		q := assay.Query{Text: c.search.Query, Collections: c.search.Collections, Filter: c.search.filter, Limit: c.search.Limit}
		found, err := reach.Search(ctx, q)
		return Output{Query: &q, Results: &found}, err
	case GetDocument:
		page, err := reach.Page(ctx, s.refer(c.document), c.document.Offset, c.document.Limit)
		return Output{Page: &page}, err
	case Summarise:
		summary, err := reach.Summarise(ctx, role.Reading{Question: c.results.Question, Evidence: s.evidence(c.results.Results)})
		return Output{Summary: &summary}, err
	case Compare:
		contrast, err := reach.Compare(ctx, role.Reading{Question: c.compare.Question, Evidence: s.ofDocuments(c.compare.Documents)})
		return Output{Contrast: &contrast}, err
	case Extract:
		extraction, err := reach.Extract(ctx, role.Reading{Question: c.results.Question, Evidence: s.evidence(c.results.Results)})
		return Output{Extraction: &extraction}, err
	}
	return Output{}, fmt.Errorf("there is no tool %q: %w", c.Tool, assay.ErrInvalid)
}

// refer returns which document is to be read.
func (s *Session) refer(a documentArguments) Reference {
	if at, ok := s.document(a.Document); ok {
		r := s.documents[at]
		return Reference{Document: r.id, Version: r.version, URI: r.uri}
	}
	return Reference{URI: a.Document, Collection: a.Collection}
}

func (s *Session) evidence(numbers []int) []assay.Evidence {
	var out []assay.Evidence
	for _, n := range numbers {
		out = append(out, assay.Evidence{Number: n, Hit: s.results[n-1]})
	}
	return out
}

// ofDocuments returns the best results of each document.
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

// Evidence returns all that calls have brought and that was shown, by its number.
func (s *Session) Evidence() []assay.Evidence {
	out := make([]assay.Evidence, len(s.results))
	for i, h := range s.results {
		out[i] = assay.Evidence{Number: i + 1, Hit: h}
	}
	return out
}

// number returns the number of a result, a new one where it was not there before.
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

// handle returns the handle of a result's document, a new one where it had none. The
// version is that of the result that was shown first.
func (s *Session) handle(h assay.Hit) string {
	i := slices.IndexFunc(s.documents, func(r reference) bool { return r.id == h.Chunk.Document })
	if i < 0 {
		i = len(s.documents)
		s.documents = append(s.documents, reference{h.Chunk.Document, h.Chunk.Version, h.URI})
	}
	return fmt.Sprintf("d%d", i+1)
}

// relevanceOf returns the relevance that a page has as evidence: that of the best
// result that lies in it, for what holds a passage helps as much as the passage. Of one
// that holds none nothing is known, and it is 0.
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
