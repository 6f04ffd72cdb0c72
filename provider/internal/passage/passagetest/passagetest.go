// Package passagetest is the contract test of the adapters for search services. It checks what holds
// for each of them, whatever the service does: who sees which passages, that no credential is in an
// error, and that no reply breaks a promise of assay.Retriever.
package passagetest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/llm/resilient"
	"github.com/assay-rag/assay/provider/internal/passage"
)

// A Retriever is what an adapter returns.
type Retriever interface {
	assay.Retriever
	Model() string
	Collection() string
	Visible(access assay.Access) bool
	Check(f assay.Filter) error
	Search(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error)
	ACL(ctx context.Context, id string) (assay.ACL, error)
	Version(ctx context.Context, id, version string) (assay.Document, error)
}

// A Doc is a passage of the service.
type Doc struct {
	Text     string
	Metadata map[string]any // "users", "groups" and "acl" are lists of strings, "tenant" is a string, "year" a number
}

// A Setup is the configuration of an adapter under test. Credentials must be llmtest.Canary.
type Setup struct {
	URL     string
	Sharing passage.Sharing
	Guard   *resilient.Guard
}

// A Subject is an adapter under test.
type Subject struct {
	// Open returns the adapter for a server.
	Open func(t *testing.T, s Setup) Retriever

	// Reply returns the service's reply with these results, as it is documented.
	Reply func(docs []Doc) any

	// Throttled writes the service's documented refusal of too many requests, without a time to wait.
	Throttled func(w http.ResponseWriter)

	// OneKey is set if a Sharing of the adapter cannot have several of UsersKey, GroupsKey and ACLKey.
	OneKey bool

	// Asked checks a request, which restricts the search to what the principals that are named by
	// words see. Each of words is in it.
	Asked func(t *testing.T, r *http.Request, body []byte, words []string)
}

var (
	ann = assay.Principal{User: "ann", Groups: []string{"staff", "board"}}
	eve = assay.Principal{User: "eve", Groups: []string{"guests"}}
)

func docs() []Doc {
	return []Doc{
		{"The board has forty days of leave.", map[string]any{"groups": []string{"board"}, "acl": []string{"group:board"}, "tenant": "acme", "year": 2023}},
		{"Eve has no days of leave.", map[string]any{"users": []string{"eve"}, "acl": []string{"user:eve"}, "tenant": "acme", "year": 2022}},
		{"All staff has thirty days of leave.", map[string]any{"users": []string{"bob"}, "groups": []string{"staff"}, "acl": []string{"group:staff", "user:bob"}, "tenant": "acme", "year": 2024}},
		{"Another tenant has ten days of leave.", map[string]any{"users": []string{"ann"}, "groups": []string{"staff"}, "acl": []string{"*"}, "tenant": "other", "year": 2024}},
		{"No name is given here: days of leave.", map[string]any{}},
	}
}

// Run runs the contract test.
func Run(t *testing.T, s Subject) {
	t.Run("access", func(t *testing.T) { testAccess(t, s) })
	t.Run("hits", func(t *testing.T) { testHits(t, s) })
	t.Run("filter", func(t *testing.T) { testFilter(t, s) })
	t.Run("throttled", func(t *testing.T) { testThrottled(t, s) })
	t.Run("secrets", func(t *testing.T) { testSecrets(t, s) })
	t.Run("hostile", func(t *testing.T) { testHostile(t, s) })
	t.Run("slow", func(t *testing.T) { testSlow(t, s) })
}

// A server replies to every request alike and keeps the requests.
type server struct {
	URL     string
	handler func(w http.ResponseWriter, r *http.Request) // nil: reply
	reply   []byte

	mu     sync.Mutex
	asked  []*http.Request
	bodies [][]byte
}

func serve(t *testing.T, v any) *server {
	t.Helper()
	s := &server{reply: llmtest.JSON(v)}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.asked, s.bodies = append(s.asked, r), append(s.bodies, body)
	s.mu.Unlock()
	if s.handler != nil {
		s.handler(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(s.reply)
}

func (s *server) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func texts(r assay.Results) []string {
	out := []string{}
	for _, h := range r.Hits {
		out = append(out, h.Text)
	}
	return out
}

var leave = assay.Query{Text: "days of leave", Limit: 10}

// testAccess lets a service return everything, whatever the filter says.
func testAccess(t *testing.T, s Subject) {
	const board, staff, another, none = "The board has forty days of leave.", "All staff has thirty days of leave.", "Another tenant has ten days of leave.", "No name is given here: days of leave."
	narrowed := ann
	narrowed.Collections = []string{"handbook"}
	for name, test := range map[string]struct {
		sharing passage.Sharing
		who     assay.Principal
		want    []string // nil: the service is not asked
		words   []string // of the filter
	}{
		"by default":             {passage.Sharing{}, ann, nil, nil},
		"nobody":                 {passage.Sharing{OpenTo: []string{"*"}}, assay.Principal{}, nil, nil},
		"narrowed":               {passage.Sharing{OpenTo: []string{"*"}, GroupsKey: "groups"}, narrowed, nil, nil},
		"open to others":         {passage.Sharing{OpenTo: []string{"user:bob", "group:sales"}}, ann, nil, nil},
		"groups, without any":    {passage.Sharing{GroupsKey: "groups"}, assay.Principal{User: "bob"}, nil, nil},
		"users":                  {passage.Sharing{UsersKey: "users"}, ann, []string{another}, []string{"users", "ann"}},
		"groups":                 {passage.Sharing{GroupsKey: "groups"}, ann, []string{board, staff, another}, []string{"groups", "staff", "board"}},
		"users and groups":       {passage.Sharing{UsersKey: "users", GroupsKey: "groups"}, eve, []string{"Eve has no days of leave."}, []string{"users", "eve", "groups", "guests"}},
		"groups of a tenant":     {passage.Sharing{GroupsKey: "groups", TenantKey: "tenant", Tenant: "acme"}, ann, []string{board, staff}, []string{"groups", "staff", "board", "tenant", "acme"}},
		"ACLs":                   {passage.Sharing{ACLKey: "acl"}, ann, []string{board, staff, another}, []string{"acl", "group:staff", "group:board", "user:ann"}},
		"ACLs of a tenant":       {passage.Sharing{ACLKey: "acl", TenantKey: "tenant", Tenant: "acme"}, eve, []string{"Eve has no days of leave."}, []string{"acl", "user:eve", "tenant", "acme"}},
		"a user called a group":  {passage.Sharing{UsersKey: "users", GroupsKey: "groups"}, assay.Principal{User: "board"}, []string{}, []string{"board"}},
		"open, of a tenant":      {passage.Sharing{OpenTo: []string{"user:ann"}, TenantKey: "tenant", Tenant: "other"}, ann, []string{another}, []string{"tenant", "other"}},
		"open to all":            {passage.Sharing{OpenTo: []string{"*"}}, eve, []string{board, "Eve has no days of leave.", staff, another, none}, nil},
		"a quote in a name":      {passage.Sharing{UsersKey: "users"}, assay.Principal{User: `x' or "1"="1") or true; --`}, []string{}, nil},
		"a user called everyone": {passage.Sharing{UsersKey: "users", ACLKey: "acl"}, assay.Principal{User: "*"}, []string{another}, nil},
	} {
		if c := test.sharing; s.OneKey && c.UsersKey != "" && c.GroupsKey+c.ACLKey != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			deaf := serve(t, s.Reply(docs()))
			r := s.Open(t, Setup{URL: deaf.URL, Sharing: test.sharing})
			got, err := r.Retrieve(t.Context(), test.who.Access(), leave)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(texts(got), test.want) && len(got.Hits)+len(test.want) > 0 {
				t.Errorf("found %q, want %q", texts(got), test.want)
			}
			if asked := deaf.requests() > 0; asked != (test.want != nil) || r.Visible(test.who.Access()) != asked {
				t.Errorf("the service was asked: %v", asked)
			}
			if got.Chunks != len(got.Hits) || got.Total != len(got.Hits) {
				t.Errorf("%d chunks and %d in all are counted, %d found", got.Chunks, got.Total, len(got.Hits))
			}
			if test.words != nil {
				s.Asked(t, deaf.asked[0], deaf.bodies[0], test.words)
			}
			for _, h := range got.Hits {
				if acl, err := r.ACL(t.Context(), h.Chunk.Document); err != nil || !test.who.Access().Allows("", acl) {
					t.Errorf("the ACL of %q is %+v, %v", h.Text, acl, err)
				}
			}
		})
	}
	for name, bad := range map[string]passage.Sharing{"half a tenant": {TenantKey: "tenant"}, "no entry": {OpenTo: []string{"ann"}}} {
		if bad.Check() == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

func testHits(t *testing.T, s Subject) {
	one := []Doc{{"\ufeffThe de\u0301claration:\r\nthirty days\u200b of leave.\u202e", map[string]any{"groups": []string{"staff"}, "year": 2024}}}
	r := s.Open(t, Setup{URL: serve(t, s.Reply(one)).URL, Sharing: passage.Sharing{GroupsKey: "groups"}})
	got, err := r.Retrieve(t.Context(), ann.Access(), leave)
	if err != nil || len(got.Hits) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	h := got.Hits[0]
	CheckHit(t, h)
	if h.Text != "The déclaration:\nthirty days of leave." || h.Collection != r.Collection() || h.URI == "" || h.Title == "" {
		t.Errorf("hit %+v", h)
	}
	doc, err := r.Version(t.Context(), h.Chunk.Document, h.Chunk.Version)
	if err != nil || doc.Text[h.Chunk.Start:h.Chunk.End] != h.Text || doc.ID != assay.DocumentID(r.Collection(), h.URI) {
		t.Errorf("document %+v, %v", doc, err)
	}
	if again, err := r.Search(t.Context(), ann.Access(), leave); err != nil || len(again.Hits) != 1 || again.Hits[0].Scores.Relevance != 0 || again.Hits[0].Chunk.ID != h.Chunk.ID {
		t.Errorf("Search: %+v, %v", again.Hits, err)
	}
	elsewhere := leave
	elsewhere.Collections = []string{"moon"}
	if other, err := r.Retrieve(t.Context(), ann.Access(), elsewhere); err != nil || len(other.Hits) > 0 {
		t.Errorf("another collection: %+v, %v", other.Hits, err)
	}
	if other, err := r.Retrieve(t.Context(), ann.Access(), assay.Query{Text: "?!", Limit: 1}); err != nil || len(other.Hits) > 0 {
		t.Errorf("no term: %+v, %v", other.Hits, err)
	}
	if _, err := r.Retrieve(t.Context(), ann.Access(), assay.Query{Text: "leave"}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("no limit: %v", err)
	}
}

// testFilter checks that a filter that the service ignores restricts the results nevertheless, and that
// one which it cannot apply is refused by name.
func testFilter(t *testing.T, s Subject) {
	deaf := serve(t, s.Reply(docs()))
	r := s.Open(t, Setup{URL: deaf.URL, Sharing: passage.Sharing{GroupsKey: "groups"}})
	q := leave
	q.Filter = assay.Filter{Op: assay.OpAndAll, Filters: []assay.Filter{
		{Op: assay.OpGreaterThanOrEquals, Key: "year", Value: assay.NumberValue(2024)},
		{Op: assay.OpNotEquals, Key: "tenant", Value: assay.StringValue("other")},
	}}
	got, err := r.Retrieve(t.Context(), ann.Access(), q)
	if err != nil || !slices.Equal(texts(got), []string{"All staff has thirty days of leave."}) {
		t.Errorf("found %q, %v", texts(got), err)
	}
	if !slices.ContainsFunc(got.Notes, func(n assay.Note) bool { return strings.Contains(n.Text, "filter excludes") }) {
		t.Errorf("notes %v", got.Notes)
	}
	before := deaf.requests()
	q.Filter = assay.Filter{Op: "like", Key: "year", Value: assay.StringValue("x")}
	if _, err := r.Retrieve(t.Context(), ann.Access(), q); !errors.Is(err, assay.ErrInvalid) || deaf.requests() != before {
		t.Errorf("an unknown operator: %v", err)
	}
	if r.Check(q.Filter) == nil || r.Check(assay.Filter{}) != nil {
		t.Error("Check accepts an unknown operator, or refuses no filter")
	}
}

// testThrottled checks that searches are repeated within the deadline of the context, and end with it.
func testThrottled(t *testing.T, s Subject) {
	guard := resilient.New(resilient.Config{Backoff: time.Nanosecond, MaxBackoff: time.Nanosecond})
	limited := serve(t, s.Reply(docs()))
	limited.handler = func(w http.ResponseWriter, r *http.Request) {
		if limited.requests() <= 2 {
			s.Throttled(w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(limited.reply)
	}
	open := passage.Sharing{OpenTo: []string{"*"}}
	r := s.Open(t, Setup{URL: limited.URL, Sharing: open, Guard: guard})
	if got, err := r.Retrieve(t.Context(), ann.Access(), leave); err != nil || len(got.Hits) != len(docs()) || limited.requests() != 3 {
		t.Errorf("%d hits after %d requests, %v", len(got.Hits), limited.requests(), err)
	}
	once := s.Open(t, Setup{URL: limited.URL, Sharing: open})
	limited.handler = func(w http.ResponseWriter, r *http.Request) { s.Throttled(w) }
	_, err := once.Retrieve(t.Context(), ann.Access(), leave)
	if e, _ := errors.AsType[*llm.Error](err); e == nil || e.Kind != llm.RateLimited || !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("without a guard: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := once.Retrieve(ended, ann.Access(), leave); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	m := llm.NewMeter(assay.Usage{Calls: 1})
	counted := s.Open(t, Setup{URL: serve(t, s.Reply(docs())).URL, Sharing: open})
	if _, err := counted.Retrieve(llm.WithMeter(t.Context(), m), ann.Access(), leave); err != nil || m.Spent().Calls != 1 {
		t.Errorf("%v, spent %+v", err, m.Spent())
	}
	if _, err := counted.Retrieve(llm.WithMeter(t.Context(), m), ann.Access(), leave); !errors.Is(err, assay.ErrBudget) {
		t.Errorf("%v, want ErrBudget", err)
	}
}

// testSecrets checks that no error quotes a credential which a server echoes.
func testSecrets(t *testing.T, s Subject) {
	for _, status := range []int{200, 302, 400, 401, 403, 404, 413, 500, 503} {
		echo := serve(t, nil)
		echo.handler = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example/?key="+llmtest.Canary)
			w.WriteHeader(status)
			_, _ = w.Write(llmtest.JSON(map[string]any{"message": "your key is " + llmtest.Canary, "error": map[string]any{"message": "it is " + llmtest.Canary}}))
		}
		_, err := s.Open(t, Setup{URL: echo.URL, Sharing: passage.Sharing{OpenTo: []string{"*"}}}).Retrieve(t.Context(), ann.Access(), leave)
		if err != nil && (strings.Contains(err.Error(), llmtest.Canary) || !errors.Is(err, assay.ErrUnavailable)) {
			t.Errorf("%d: %v", status, err)
		}
		if err == nil && status != 200 {
			t.Errorf("%d is no error", status)
		}
		if echo.requests() > 1 {
			t.Errorf("%d: %d requests; redirects must not be followed", status, echo.requests())
		}
	}
}

// testHostile replaces each value of a reply with values of other types, and leaves it out.
func testHostile(t *testing.T, s Subject) {
	var doc any
	if err := json.Unmarshal(llmtest.JSON(s.Reply(docs()[2:3])), &doc); err != nil {
		t.Fatal(err)
	}
	hostile := serve(t, nil)
	r := s.Open(t, Setup{URL: hostile.URL, Sharing: passage.Sharing{GroupsKey: "groups"}})
	try := func(reply []byte) {
		hostile.reply = reply
		got, err := r.Retrieve(t.Context(), ann.Access(), leave)
		if err != nil && !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("after %.300s: %v", reply, err)
		}
		for _, h := range got.Hits {
			CheckHit(t, h)
			if h.Text == "" {
				t.Errorf("after %.300s: a hit without text", reply)
			}
		}
	}
	n := 0
	llmtest.Mutate(doc, func() {
		if n++; !testing.Short() || n%3 == 0 {
			try(llmtest.JSON(doc))
		}
	})
	for _, garbage := range []string{"", "null", "[]", "{", `{"a":` + strings.Repeat("[", 100_000), "\xff\xfe", `"text"`, strings.Repeat(" ", 9<<20) + "{}"} {
		try([]byte(garbage))
	}
	if n < 20 {
		t.Errorf("only %d replies were tried", n)
	}
}

// testSlow checks that a search ends with its context though the server does not reply.
func testSlow(t *testing.T, s Subject) {
	asked := make(chan struct{})
	release := make(chan struct{})
	slow := serve(t, nil)
	slow.handler = func(http.ResponseWriter, *http.Request) { close(asked); <-release }
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-asked; cancel() }()
	_, err := s.Open(t, Setup{URL: slow.URL, Sharing: passage.Sharing{OpenTo: []string{"*"}}}).Retrieve(ctx, ann.Access(), leave)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

// CheckHit checks the invariants of every hit.
func CheckHit(t *testing.T, h assay.Hit) {
	t.Helper()
	if h.Text[h.Chunk.Start:h.Chunk.End] != h.Text || !utf8.ValidString(h.Text+h.URI+h.Title) || h.Chunk.ID == "" || h.Page < 0 || h.Origin != assay.FromService {
		t.Errorf("hit %+v", h)
	}
	s := h.Scores
	if !(s.Relevance >= 0 && s.Relevance <= 1) {
		t.Errorf("scores %+v", s)
	}
	for _, f := range []*float64{s.BM25, s.Vector, s.Graph, s.Fused, s.Rerank, s.Managed, s.Score} {
		if f != nil && (math.IsNaN(*f) || math.IsInf(*f, 0)) {
			t.Errorf("scores %+v", s)
		}
	}
	if _, err := json.Marshal(h); err != nil {
		t.Errorf("hit %+v: %v", h, err)
	}
}
