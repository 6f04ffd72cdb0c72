package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/internal/analysis"
)

// A shelf is a search service with passages, each of which the named group may see. All of them
// match every query, in their order.
type shelf struct {
	group    string
	texts    []string
	hostile  []string // passages of another group that it returns nevertheless, first
	refuses  bool     // filters
	fails    error
	searches atomic.Int64
}

func (s *shelf) Model() string      { return "shelf" }
func (s *shelf) Collection() string { return "wiki" }

func (s *shelf) Visible(access assay.Access) bool {
	return access.Allows("", assay.ACL{Restricted: true, Allow: []string{"group:" + s.group}})
}

func (s *shelf) Check(f assay.Filter) error {
	if s.refuses && !f.IsZero() {
		return fmt.Errorf("shelves have no filters: %w", assay.ErrInvalid)
	}
	return f.Check(nil)
}

func (s *shelf) id(text string) string { return assay.DocumentID("wiki", "wiki:"+text) }

func (s *shelf) Search(_ context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	s.searches.Add(1)
	if s.fails != nil {
		return assay.Results{}, s.fails
	}
	if err := s.Check(q.Filter); err != nil {
		return assay.Results{}, err
	}
	r := assay.Results{}
	for i, text := range slices.Concat(s.hostile, s.texts) {
		id, score := s.id(text), 1/float64(i+1)
		version := assay.DocumentVersion(text, nil, "shelf/1")
		r.Hits = append(r.Hits, assay.Hit{
			Chunk: assay.Chunk{ID: assay.ChunkID(id, version, 0), Document: id, Version: version, Kind: assay.ChunkProse, End: len(text), Headings: []string{}, Tokens: len(text) / 4},
			Text:  text, URI: "wiki:" + text[:6], Title: "Wiki", Scores: assay.Scores{Managed: &score},
		})
	}
	r.Chunks, r.Total = len(r.Hits), len(r.Hits)
	for _, t := range analysis.QueryTerms(q.Text, nil) {
		r.Terms = append(r.Terms, assay.Term{Text: t.Text, Stem: t.Forms[0], Forms: t.Forms[1:], Chunks: 1, Weight: 1})
	}
	return r, nil
}

func (s *shelf) ACL(_ context.Context, id string) (assay.ACL, error) {
	for _, text := range s.texts {
		if s.id(text) == id {
			return assay.ACL{Restricted: true, Allow: []string{"group:" + s.group}}, nil
		}
	}
	for _, text := range s.hostile {
		if s.id(text) == id {
			return assay.ACL{Restricted: true, Allow: []string{"group:board"}}, nil
		}
	}
	return assay.ACL{}, assay.ErrNotFound
}

const parking = "Parking at the station is paid for by the travel office, up to 12 euros a day."

var stranger = assay.Principal{User: "eve"}

func newShelf() *shelf { return &shelf{group: "staff", texts: []string{parking}} }

// withShelf returns an engine with the handbook and a service.
func withShelf(t *testing.T, s *shelf) *Engine {
	t.Helper()
	e := openConfigured(t, Config{Dir: t.TempDir(), Services: []SearchService{s}})
	ingestPaths(t, e, "testdata/handbook")
	return e
}

// TestServiceAnswers checks that a passage of a service is cited, replayed and proven from the journal
// of the run.
func TestServiceAnswers(t *testing.T) {
	t.Parallel()
	s := newShelf()
	e := withShelf(t, s)
	a, err := e.Answer(t.Context(), staff, Request{Question: "Who pays for parking at the station?"})
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != assay.Answered || len(a.Citations) == 0 {
		t.Fatalf("%s (%s): %q, notes %v", a.Status, a.Reason, a.Text, a.Notes)
	}
	c := a.Citations[0]
	if c.Origin != assay.FromService || !strings.Contains(parking, c.Quote) || c.Quote == "" || parking[c.Start:c.End] != c.Quote {
		t.Errorf("citation %+v", c)
	}
	asked := s.searches.Load()
	again, err := e.Replay(t.Context(), staff, a.Run)
	if err != nil || again.Text != a.Text || s.searches.Load() != asked {
		t.Errorf("the replay is %q, %v, after %d more searches", again.Text, err, s.searches.Load()-asked)
	}
	key, err := audit.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	authority := audit.Authority{Audit: e.tenant.Audit(), Registry: e.tenant.Registry(), Actor: assay.Local(), Key: key}
	signed, err := authority.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, err := audit.NewVerifier(signed.Keys...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Prove(t.Context(), staff, a.Run, signed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := p.Bytes()
	if err == nil {
		_, err = audit.CheckProof(data, v)
	}
	if err != nil {
		t.Errorf("proof: %v", err)
	}
	if own, err := e.Answer(t.Context(), staff, Request{Question: someQuestion}); err != nil || own.Status != assay.Answered || own.Citations[0].Origin != assay.FromDocuments {
		t.Errorf("of the handbook: %+v, %v", own, err)
	}
}

func origins(r assay.Results) (own, foreign int) {
	for _, h := range r.Hits {
		if h.Origin == assay.FromService {
			foreign++
		} else {
			own++
		}
	}
	return own, foreign
}

// TestServiceSearch checks which of the documents and the service a search covers, and for whom.
func TestServiceSearch(t *testing.T) {
	t.Parallel()
	narrowed := staff
	narrowed.Collections = []string{"default"}
	for name, test := range map[string]struct {
		who          assay.Principal
		collections  []string
		own, foreign bool
		want         error
	}{
		"all":                          {who: staff, own: true, foreign: true},
		"the service's":                {who: staff, collections: []string{"wiki"}, foreign: true},
		"the documents'":               {who: staff, collections: []string{"default"}, own: true},
		"both":                         {who: staff, collections: []string{"default", "wiki"}, own: true, foreign: true},
		"a stranger":                   {who: stranger, own: true},
		"a stranger, the service's":    {who: stranger, collections: []string{"wiki"}, want: assay.ErrInvalid},
		"nobody":                       {who: assay.Principal{}},
		"narrowed":                     {who: narrowed, own: true},
		"narrowed, the service's":      {who: narrowed, collections: []string{"wiki"}, want: assay.ErrInvalid},
		"a collection that is unknown": {who: staff, collections: []string{"moon"}, want: assay.ErrInvalid},
	} {
		s := newShelf()
		e := withShelf(t, s)
		r, err := e.Search(t.Context(), test.who, assay.Query{Text: "travel to a customer", Collections: test.collections, Limit: 10})
		if own, foreign := origins(r); !errors.Is(err, test.want) || own > 0 != test.own || foreign > 0 != test.foreign || s.searches.Load() > 0 != test.foreign {
			t.Errorf("%s: %d of the documents and %d of the service, which was searched %d times, %v", name, own, foreign, s.searches.Load(), err)
		}
	}
}

// TestServiceIsNotTrusted checks that passages which a service must not return are dropped, also by a
// retriever of the caller.
func TestServiceIsNotTrusted(t *testing.T) {
	t.Parallel()
	const secret = "The board travels to a customer by helicopter, at 9,000 euros an hour."
	pass := func(r assay.Retriever) assay.Retriever { return r }
	for _, own := range []func(assay.Retriever) assay.Retriever{nil, pass} {
		s := newShelf()
		s.hostile = []string{secret}
		e := openConfigured(t, Config{Dir: t.TempDir(), Services: []SearchService{s}, Retriever: own})
		ingestPaths(t, e, "testdata/handbook")
		r, err := e.Search(t.Context(), staff, assay.Query{Text: "travel to a customer", Limit: 10})
		if _, foreign := origins(r); err != nil || foreign != 1 {
			t.Errorf("%d hits of the service, %v", foreign, err)
		}
		for _, h := range r.Hits {
			if h.Text == secret || h.Scores.Relevance < 0 || h.Scores.Relevance > 1 {
				t.Errorf("hit %+v", h)
			}
		}
		a, err := e.Answer(t.Context(), staff, Request{Question: "How does the board travel to a customer?"})
		if err != nil || strings.Contains(fmt.Sprintf("%+v", a), "helicopter") {
			t.Errorf("%+v, %v", a, err)
		}
	}
}

// TestServiceFails checks what a search returns if the service or its filter fails.
func TestServiceFails(t *testing.T) {
	t.Parallel()
	down := fmt.Errorf("the shelf is down: %w", assay.ErrUnavailable)
	search := func(s *shelf, q assay.Query) (assay.Results, error) {
		q.Text, q.Limit = "travel to a customer", 10
		return withShelf(t, s).Search(t.Context(), staff, q)
	}
	s := newShelf()
	s.fails = down
	r, err := search(s, assay.Query{})
	noted := slices.ContainsFunc(r.Notes, func(n assay.Note) bool { return strings.Contains(n.Text, "shelf") && n.Kind == assay.NoteSearch })
	if own, _ := origins(r); err != nil || own == 0 || !noted {
		t.Errorf("a service that is down: %d own hits, notes %v, %v", own, r.Notes, err)
	}
	if _, err := search(s, assay.Query{Collections: []string{"wiki"}}); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("its collection alone: %v", err)
	}
	team := assay.Filter{Op: assay.OpEquals, Key: "team", Value: assay.StringValue("finance")}
	other := assay.Filter{Op: assay.OpEquals, Key: "shelf", Value: assay.StringValue("A")}
	if r, err := search(newShelf(), assay.Query{Filter: other}); err != nil || len(r.Hits) != 1 {
		t.Errorf("a key of the service: %d hits, %v", len(r.Hits), err)
	}
	s = newShelf()
	s.refuses = true
	r, err = search(s, assay.Query{Filter: team})
	if own, foreign := origins(r); err != nil || own == 0 || foreign > 0 {
		t.Errorf("a filter that the service cannot apply: %d own hits and %d others, %v", own, foreign, err)
	}
	if _, err := search(s, assay.Query{Filter: other}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a filter that nothing can apply: %v", err)
	}
	for name, c := range map[string]Config{
		"two of a name": {Services: []SearchService{newShelf(), newShelf()}},
	} {
		c.Dir = t.TempDir()
		if _, err := Open(t.Context(), c); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServiceFilterOfRequest checks that a question may be filtered by keys of the service, and that a
// question to be answered locally does not reach it.
func TestServiceFilterOfRequest(t *testing.T) {
	t.Parallel()
	s := newShelf()
	e := withShelf(t, s)
	other := assay.Filter{Op: assay.OpEquals, Key: "shelf", Value: assay.StringValue("A")}
	if a, err := e.Answer(t.Context(), staff, Request{Question: "Who pays for parking at the station?", Filter: other}); err != nil || a.Status != assay.Answered {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := e.Answer(t.Context(), stranger, Request{Question: "Who pays for parking?", Filter: other}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a stranger: %v", err)
	}
	before := s.searches.Load()
	if _, err := e.Answer(t.Context(), staff, Request{Question: "Who pays for parking at the station?", Local: true}); err != nil || s.searches.Load() != before {
		t.Errorf("locally: %v, %d searches of the service", err, s.searches.Load()-before)
	}
}
