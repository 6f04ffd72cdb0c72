package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// A service is an encoder that is a service. It counts the texts that it embeds.
type service struct {
	llmtest.Hashing
	texts atomic.Int64
}

func (s *service) Facts() llm.Facts { return llm.Facts{} }

func (s *service) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	s.texts.Add(int64(len(texts)))
	return s.Hashing.Embed(ctx, p, texts)
}

// Default implements engine.Encoders.
func (s *service) Default() string { return s.Model() }

// Open implements engine.Encoders.
func (s *service) Open(context.Context, string) (llm.Embedder, error) { return s, nil }

// asked returns how many texts fn has embedded.
func (s *service) asked(fn func()) int64 {
	before := s.texts.Load()
	fn()
	return s.texts.Load() - before
}

// openEngine opens a data directory of its own for a tenant. A nil server shares nothing.
func openEngine(t *testing.T, encoders engine.Encoders, tenant string, s *Server) *engine.Engine {
	t.Helper()
	dir := t.TempDir()
	opened, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(opened.CreateTenant(t.Context(), tenant, store.Act{Actor: assay.Local()}), opened.Close()); err != nil {
		t.Fatal(err)
	}
	c := engine.Config{Dir: dir, Tenant: tenant, Encoders: encoders, NoBackground: true}
	if s != nil {
		c.SharedLimits, c.SharedVectors = s, s
	}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// ingest reads a folder and makes all vectors.
func ingest(t *testing.T, e *engine.Engine, folder string) {
	t.Helper()
	if _, err := e.Ingest(t.Context(), engine.IngestRequest{Paths: []string{folder}, Wait: true, Verify: true}); err != nil {
		t.Fatal(err)
	}
	if r, err := e.Embed(t.Context(), nil); err != nil || len(r.Failed) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const notes = 40

// writeNotes writes documents to a new folder.
func writeNotes(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for i := range notes {
		writeFile(t, filepath.Join(folder, fmt.Sprintf("%02d.md", i)), fmt.Sprintf("# Note %d\n\nThe lantern%d burns brightly in the harbour at night.\n", i, i))
	}
	return folder
}

func search(t *testing.T, e *engine.Engine, user, text string) []assay.Hit {
	t.Helper()
	r, err := e.Search(t.Context(), assay.Principal{User: user}, assay.Query{Text: text, Mode: assay.ModeVector, Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	return r.Hits
}

// TestEngines ingests the same documents in engines with data directories of their own. The vector of
// each passage is made once, and found is what each would have found alone, as long as the text, the tenant
// and the key are the same.
func TestEngines(t *testing.T) {
	t.Parallel()
	r, encoder, folder := startServer(t), &service{}, writeNotes(t)
	var said reports
	s := r.open("", said.add)
	a, b, c := openEngine(t, encoder, "acme", s), openEngine(t, encoder, "acme", r.open("", said.add)), openEngine(t, encoder, "globex", s)
	alone := openEngine(t, encoder, "acme", nil)
	ingest(t, alone, folder)
	for i, step := range []struct {
		e    *engine.Engine
		want int64
	}{{a, notes}, {b, 0}, {c, notes}} {
		if n := encoder.asked(func() { ingest(t, step.e, folder) }); n != step.want {
			t.Errorf("engine %d has %d vectors made, want %d", i, n, step.want)
		}
	}
	got, want := search(t, b, "ann", "lantern7 harbour"), search(t, alone, "ann", "lantern7 harbour")
	if len(want) == 0 || len(got) != len(want) || got[0].Chunk.ID != want[0].Chunk.ID || *got[0].Scores.Vector != *want[0].Scores.Vector {
		t.Errorf("found %d passages, alone %d, or with other vectors", len(got), len(want))
	}
	writeFile(t, filepath.Join(folder, "03.md"), "# Note 3\n\nThe lantern3 was put out in the morning.\n")
	if n := encoder.asked(func() { ingest(t, b, folder) }); n != 1 {
		t.Errorf("after a change of a document %d vectors are made, want 1", n)
	}
	if n := encoder.asked(func() { ingest(t, a, folder) }); n != 0 {
		t.Errorf("the other engine then has %d made", n)
	}
	if seen := said.take(); len(seen) > 0 {
		t.Errorf("reported %q", seen)
	}
}

// TestEnginesShowNothing checks that a caller finds what an ACL shows, whoever made the vectors, and that
// texts of callers are not looked up, because the time would tell what the documents have.
func TestEnginesShowNothing(t *testing.T) {
	t.Parallel()
	r, encoder, folder := startServer(t), &service{}, t.TempDir()
	const passage = "The lantern of the harbour is broken."
	file := filepath.Join(folder, "secret.md")
	writeFile(t, file, passage)
	a, b := openEngine(t, encoder, "acme", r.open("", nil)), openEngine(t, encoder, "acme", r.open("", nil))
	ingest(t, a, folder)
	writeFile(t, file+".metadata.json", `{"acl": ["user:ann"]}`)
	check := func(what string, e *engine.Engine) {
		t.Helper()
		if n := encoder.asked(func() { ingest(t, e, folder) }); n != 0 {
			t.Errorf("%s: %d vectors are made", what, n)
		}
		if bob, ann := len(search(t, e, "bob", passage)), len(search(t, e, "ann", passage)); bob != 0 || ann != 1 {
			t.Errorf("%s: bob finds %d passages, ann %d", what, bob, ann)
		}
	}
	if len(search(t, a, "bob", passage)) != 1 {
		t.Error("bob does not find what all may see")
	}
	check("another engine, in which ann may see it", b)
	check("the same engine, after the ACL has changed", a)
	for range 2 {
		n := encoder.asked(func() {
			if _, err := a.EmbedTexts(t.Context(), assay.Principal{User: "bob"}, engine.EmbedRequest{Purpose: llm.Passage, Texts: []string{passage}}); err != nil {
				t.Fatal(err)
			}
		})
		if n != 1 {
			t.Errorf("a caller's text is looked up: the encoder was asked for %d", n)
		}
	}
}

// TestEnginesWithoutRedis overwrites everything in Redis, and then kills it: engines have the vectors
// made, and no ingest fails.
func TestEnginesWithoutRedis(t *testing.T) {
	t.Parallel()
	r, encoder, folder := startServer(t), &service{}, writeNotes(t)
	var said reports
	s := r.open("", said.add)
	ingest(t, openEngine(t, encoder, "acme", s), folder)
	names, err := s.client.Keys(t.Context(), "assay:vector:*").Result()
	if err != nil || len(names) != notes {
		t.Fatalf("%d vectors, %v", len(names), err)
	}
	for i, name := range names { // each has the value of another
		value, err := s.client.Get(t.Context(), names[(i+1)%len(names)]).Result()
		if err == nil {
			err = s.client.Set(t.Context(), name+"x", value, time.Hour).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		if err := s.client.Rename(t.Context(), name+"x", name).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if n := encoder.asked(func() { ingest(t, openEngine(t, encoder, "acme", s), folder) }); n != notes {
		t.Errorf("with foreign vectors %d are made, want %d", n, notes)
	}
	if seen := said.take(); len(seen) != 1 || !errors.Is(seen[0], errTampered) {
		t.Errorf("reported %q", seen)
	}
	if n := encoder.asked(func() { ingest(t, openEngine(t, encoder, "acme", s), folder) }); n != 0 {
		t.Errorf("afterwards %d are made", n)
	}
	r.kill()
	if n := encoder.asked(func() { ingest(t, openEngine(t, encoder, "acme", s), folder) }); n != notes {
		t.Errorf("without Redis %d are made, want %d", n, notes)
	}
	if seen := said.take(); len(seen) != 1 || !errors.Is(seen[0], assay.ErrUnavailable) {
		t.Errorf("reported %q", seen)
	}
}

// TestEnginesLimit asks engines with data directories of their own: both count in one bucket. Without
// Redis the requests of those who have a limit are refused, and those of others are not.
func TestEnginesLimit(t *testing.T) {
	t.Parallel()
	r, encoder, folder := startServer(t), &service{}, writeNotes(t)
	engines := []*engine.Engine{openEngine(t, encoder, "acme", r.open("", nil)), openEngine(t, encoder, "acme", r.open("", nil))}
	for _, e := range engines {
		ingest(t, e, folder)
		if err := e.SetLimits(t.Context(), assay.Local(), limit.User("ann"), limit.Limits{limit.RequestsPerMinute: 2}, "a test"); err != nil {
			t.Fatal(err)
		}
	}
	limited := assay.Principal{User: "ann"}
	find := func(e *engine.Engine, p assay.Principal) error {
		_, err := e.Search(t.Context(), p, assay.Query{Text: "lantern3", Mode: assay.ModeText, Limit: 1})
		return err
	}
	began, taken := time.Now(), 0
	for i := range 6 {
		err := find(engines[i%2], limited)
		if _, reached := limit.AsError(err); err != nil && !reached {
			t.Fatal(err)
		}
		if err == nil {
			taken++
		}
	}
	if most := 2 + int(time.Since(began)/(30*time.Second)) + 1; taken < 2 || taken > most {
		t.Errorf("%d of 6 requests were taken, want 2", taken)
	}
	r.kill()
	for _, e := range engines {
		if err := find(e, limited); !errors.Is(err, assay.ErrUnavailable) || strings.Contains(err.Error(), r.dir) {
			t.Errorf("without Redis: %v, want ErrUnavailable", err)
		}
		if _, err := e.Answer(t.Context(), limited, engine.Request{Question: "Where does lantern3 burn?"}); !errors.Is(err, assay.ErrUnavailable) {
			t.Errorf("a question without Redis: %v, want ErrUnavailable", err)
		}
		if err := find(e, assay.Principal{User: "bob"}); err != nil {
			t.Errorf("without Redis and without a limit: %v", err)
		}
	}
}
