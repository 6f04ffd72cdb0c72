package s3vectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/internal/passage/passagetest"
	"github.com/assay-rag/assay/provider/s3vectors"
)

// bucket is a server of S3 Vectors with one index. It ignores filters. A request past the limit is
// made or not, and gets no reply, as if the process had been killed.
type bucket struct {
	mu      sync.Mutex
	vectors map[string]map[string]any // metadata by key
	limit   int                       // requests until the kill; negative: none
	applied bool                      // the last request is made before the kill
}

// ServeHTTP implements http.Handler.
func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	killed := b.limit == 0
	if b.limit >= 0 {
		b.limit = max(0, b.limit-1)
	}
	if !killed || b.applied {
		reply := b.do(r.URL.Path, body)
		if !killed {
			_, _ = w.Write(llmtest.JSON(reply))
			return
		}
	}
	panic(http.ErrAbortHandler)
}

func (b *bucket) do(path string, body []byte) any {
	var in struct {
		Vectors []struct {
			Key      string
			Metadata map[string]any
		}
		Keys []string
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return map[string]any{"message": err.Error()}
	}
	switch path {
	case "/PutVectors":
		for _, v := range in.Vectors {
			b.vectors[v.Key] = v.Metadata
		}
	case "/DeleteVectors":
		for _, k := range in.Keys {
			delete(b.vectors, k)
		}
	case "/QueryVectors":
		out := []any{}
		for _, k := range slices.Sorted(maps.Keys(b.vectors)) {
			out = append(out, map[string]any{"key": k, "distance": 0.5, "metadata": b.vectors[k]})
		}
		return map[string]any{"distanceMetric": "cosine", "vectors": out}
	}
	return map[string]any{}
}

// memory is a hot index and the catalogue of its documents.
type memory struct {
	chunks map[string]s3vectors.Chunk
	used   map[string]time.Time
	docs   map[string]assay.ACL // by document
	touch  map[string]bool      // chunks that are used between Idle and Drop
}

func (m *memory) Retrieve(_ context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	var r assay.Results
	for _, id := range slices.Sorted(maps.Keys(m.chunks)) {
		c := m.chunks[id]
		if access.Allows(c.Collection, m.docs[c.Chunk.Document]) && len(r.Hits) < q.Limit {
			r.Hits = append(r.Hits, assay.Hit{Chunk: c.Chunk, Text: c.Text, URI: c.URI, Collection: c.Collection, Scores: assay.Scores{Relevance: 0.4}})
		}
	}
	return r, nil
}

func (m *memory) Idle(_ context.Context, before time.Time, n int) ([]s3vectors.Chunk, error) {
	var out []s3vectors.Chunk
	for _, id := range slices.Sorted(maps.Keys(m.chunks)) {
		if m.used[id].Before(before) && len(out) < n {
			out = append(out, m.chunks[id])
		}
	}
	return out, nil
}

func (m *memory) Drop(_ context.Context, id, revision string, before time.Time) (bool, error) {
	c, ok := m.chunks[id]
	if m.touch[id] || !ok || c.Revision != revision || !m.used[id].Before(before) {
		m.used[id] = before.Add(time.Hour)
		return false, nil
	}
	delete(m.chunks, id)
	return true, nil
}

func (m *memory) Current(_ context.Context, id string) (string, assay.ACL, error) {
	acl, ok := m.docs[id]
	if !ok {
		return "", assay.ACL{}, assay.ErrNotFound
	}
	return "v1", acl, nil
}

var (
	noon  = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	staff = assay.Principal{User: "ann", Groups: []string{"staff"}}.Access()
)

const chunks = 10

// newTier returns a tier of ten chunks, all of which but the last two are idle.
func newTier(t *testing.T, p s3vectors.Policy) (*s3vectors.Tier, *memory, *bucket) {
	t.Helper()
	m := &memory{chunks: map[string]s3vectors.Chunk{}, used: map[string]time.Time{}, docs: map[string]assay.ACL{}, touch: map[string]bool{}}
	for i := range chunks {
		text := fmt.Sprintf("Chunk %d is on days of leave.", i)
		c := s3vectors.Chunk{
			Passage:    assay.Passage{Chunk: assay.Chunk{ID: fmt.Sprint("c", i), Document: fmt.Sprint("d", i), Version: "v1", Start: 100, End: 100 + len(text)}, Text: text, URI: fmt.Sprintf("file:///%d", i), Title: "Handbook"},
			Collection: "handbook", ACL: assay.ACL{Restricted: true, Allow: []string{"group:staff"}}, Vector: llm.Vector{0.6, 0.8}, Revision: "r1",
			Metadata: assay.Metadata{"year": assay.NumberValue(2024), "tags": assay.ListValue("a"), "draft": assay.BooleanValue(false), "seen": assay.TimeValue(noon)},
		}
		m.chunks[c.Chunk.ID], m.docs[c.Chunk.Document], m.used[c.Chunk.ID] = c, c.ACL, noon.Add(-48*time.Hour)
		if i >= chunks-2 {
			m.used[c.Chunk.ID] = noon
		}
	}
	b := &bucket{vectors: map[string]map[string]any{}, limit: -1}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	cold := open(t, config(passagetest.Setup{URL: server.URL, Sharing: s3vectors.Sharing{ACLKey: "acl", TenantKey: "tenant", Tenant: "acme"}}))
	p.Idle = 24 * time.Hour
	tier, err := s3vectors.NewTier(m, cold, m, p, func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	return tier, m, b
}

// found returns the IDs of the chunks that a search returns.
func found(t *testing.T, tier *s3vectors.Tier, access assay.Access, limit int) []string {
	t.Helper()
	r, err := tier.Retrieve(t.Context(), access, assay.Query{Text: "days of leave", Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, h := range r.Hits {
		if h.Chunk.Version != "v1" || h.Chunk.Start != 100 || h.Chunk.End != 100+len(h.Text) || h.Origin != assay.FromDocuments || h.Collection != "handbook" || h.URI == "" {
			t.Errorf("hit %+v", h)
		}
		ids = append(ids, h.Chunk.ID)
	}
	slices.Sort(ids)
	return ids
}

func all() []string {
	var ids []string
	for i := range chunks {
		ids = append(ids, fmt.Sprint("c", i))
	}
	return ids
}

// TestMove checks what moves, and that a search finds every chunk once.
func TestMove(t *testing.T) {
	tier, m, b := newTier(t, s3vectors.Policy{Batch: 3})
	if n, err := tier.Move(t.Context()); err != nil || n != chunks-2 || len(m.chunks) != 2 || len(b.vectors) != chunks-2 {
		t.Errorf("moved %d, %v; %d hot, %d cold", n, err, len(m.chunks), len(b.vectors))
	}
	if got := found(t, tier, staff, 50); !slices.Equal(got, all()) {
		t.Errorf("found %v", got)
	}
	if n, err := tier.Move(t.Context()); err != nil || n != 0 {
		t.Errorf("moved %d again, %v", n, err)
	}
	if got := found(t, tier, assay.Principal{User: "eve"}.Access(), 50); len(got) > 0 {
		t.Errorf("a stranger found %v", got)
	}
	if v := b.vectors["c0"]; v["tenant"] != "acme" || fmt.Sprint(v["acl"]) != "[group:staff]" || v["year"] != 2024.0 || v["seen"] != nil {
		t.Errorf("metadata %v", v)
	}
}

// TestKilled kills the mover at each request, before or after the service has made it, and moves again:
// nothing is lost and nothing is found twice, also before the second move.
func TestKilled(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for limit := range 5 {
			tier, m, b := newTier(t, s3vectors.Policy{Batch: 3})
			m.touch["c1"] = true // makes the mover delete a chunk of the cold tier
			b.limit, b.applied = limit, applied
			_, err := tier.Move(t.Context())
			if killed := errors.Is(err, assay.ErrUnavailable); !killed && limit < 4 {
				t.Fatalf("at %d: %v, want a killed mover", limit, err)
			}
			b.mu.Lock()
			b.limit = -1
			b.mu.Unlock()
			if got := found(t, tier, staff, 50); !slices.Equal(got, all()) {
				t.Errorf("killed at %d (%v): found %v", limit, applied, got)
			}
			m.touch, m.used["c1"] = map[string]bool{}, noon.Add(-48*time.Hour)
			if _, err := tier.Move(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := found(t, tier, staff, 50); !slices.Equal(got, all()) || len(m.chunks)+len(b.vectors) != chunks {
				t.Errorf("killed at %d (%v), moved again: found %v; %d hot, %d cold", limit, applied, got, len(m.chunks), len(b.vectors))
			}
		}
	}
}

// TestStale checks that the cold tier shows no chunk whose document was deleted, changed or hidden.
func TestStale(t *testing.T) {
	tier, m, b := newTier(t, s3vectors.Policy{})
	if _, err := tier.Move(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(m.docs, "d0")
	m.docs["d1"] = assay.ACL{Restricted: true, Allow: []string{"group:board"}}
	b.vectors["c2"]["assay_version"] = "v0"
	b.vectors["c3"]["tenant"] = "other"
	b.vectors["c4"]["acl"] = []string{"group:board"}
	b.vectors["c5"]["assay_start"] = -5
	b.vectors["c6"]["assay_document"] = 7
	if got := found(t, tier, staff, 50); !slices.Equal(got, []string{"c7", "c8", "c9"}) {
		t.Errorf("found %v", got)
	}
}

// TestAsksCold checks when the cold tier is asked, and what is returned if it fails.
func TestAsksCold(t *testing.T) {
	for name, test := range map[string]struct {
		policy s3vectors.Policy
		limit  int
		want   int
	}{
		"always":         {s3vectors.Policy{}, 50, chunks},
		"up to a limit":  {s3vectors.Policy{}, 4, 4},
		"few hot hits":   {s3vectors.Policy{Fewer: 3}, 50, chunks},
		"enough of them": {s3vectors.Policy{Fewer: 2}, 50, 2},
		"irrelevant":     {s3vectors.Policy{Below: 0.5}, 50, chunks},
		"relevant":       {s3vectors.Policy{Below: 0.3}, 50, 2},
	} {
		tier, _, b := newTier(t, test.policy)
		if _, err := tier.Move(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := found(t, tier, staff, test.limit); len(got) != test.want {
			t.Errorf("%s: found %v, want %d", name, got, test.want)
		}
		b.limit = 0
		r, err := tier.Retrieve(t.Context(), staff, assay.Query{Text: "days of leave", Limit: 50})
		if noted := strings.Contains(fmt.Sprint(r.Notes), "cold tier"); err != nil || len(r.Hits) != 2 || noted != (test.want > 2) {
			t.Errorf("%s, failing: %d hits, %v, %v", name, len(r.Hits), r.Notes, err)
		}
	}
	m := &memory{}
	for _, p := range []s3vectors.Policy{{}, {Idle: -1}, {Idle: 1, Batch: 501}, {Idle: 1, Below: 2}, {Idle: 1, Fewer: -1}} {
		if _, err := s3vectors.NewTier(m, nil, m, p, nil); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", p, err)
		}
	}
}
