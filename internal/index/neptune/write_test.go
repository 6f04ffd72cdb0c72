package neptune

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// errDied is the error of a writer that was killed.
var errDied = errors.New("died")

// TestKilledWriter kills the writer before or after each of its requests in turn. Meanwhile a reader
// must see no hidden or deleted document, and the next writer must finish.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	for kill := 1; ; kill++ {
		for _, acted := range []bool{false, true} {
			if done := killAt(t, kill, acted); done {
				return
			}
		}
	}
}

// killAt kills the writer at a request, before or after Neptune acts, and reports whether it made no
// such request.
func killAt(t *testing.T, kill int, acted bool) (done bool) {
	f, g, source, x, entries := world(t)
	hidden := entries[0]
	hidden.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:bob"}}
	source.Put(hidden, indextest.NewEntry("c", "d3", "Lives", "there is Ada Lovelace and Lord Byron."))
	source.Delete(entries[1].Document.ID)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	f.mu.Lock()
	from := f.calls
	f.before = func(call int, statement string, w http.ResponseWriter) bool {
		if call-from == kill {
			cancel(errDied)
			return !acted
		}
		return false
	}
	f.mu.Unlock()
	if err := x.Flush(ctx); err == nil && context.Cause(ctx) == nil {
		return true
	}
	f.mu.Lock()
	f.before = nil
	f.mu.Unlock()
	reader := open(t, g, source, t.TempDir())
	chunks, err := walked(t.Context(), reader, assay.Principal{User: "ann"}, entries...)
	if err != nil {
		t.Fatalf("killed at %d: %v", kill, err)
	}
	for _, c := range chunks {
		if c == entries[0].Chunks[0].ID || c == entries[1].Chunks[0].ID {
			t.Errorf("killed at %d: a walk finds a document that is hidden or deleted", kill)
		}
	}
	flush(t, reader)
	compareFor(t, reader, source, accesses[:1], queries[:1])
	return false
}

// TestRepeated checks that each request may be executed twice, and that the second execution may come
// after the next requests.
func TestRepeated(t *testing.T) {
	t.Parallel()
	f, g := newFake(t)
	source := indextest.NewSource("a")
	x := open(t, g, source, t.TempDir())
	type call struct {
		statement  string
		parameters object
	}
	var late []call
	replay := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, c := range late {
			f.execute(c.statement, c.parameters)
		}
	}
	f.mu.Lock()
	f.record = func(statement string, p object) {
		f.execute(statement, p)
		if strings.Contains(statement, "$step") {
			late = append(late, call{statement, p})
		}
	}
	f.mu.Unlock()
	entry := func(i int, body string) indextest.Entry {
		return indextest.NewEntry("c", fmt.Sprint("d", i), "Engines", body)
	}
	source.Put(entry(1, "there is Ada Lovelace."), entry(2, "there is Lord Byron."))
	flush(t, x)
	source.Put(entry(1, "there is Charles Babbage."))
	source.Delete(entry(2, "").Document.ID)
	flush(t, x)
	compare(t, x, source)
	replay()
	compare(t, x, source)
	y := open(t, g, source, t.TempDir())
	source.Put(entry(3, "there is Menabrea."))
	flush(t, y)
	replay()
	compare(t, y, source)
}

// TestSuperseded checks that a writer whose claim another one has replaced writes nothing.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	f, _, source, x, _ := world(t)
	source.Put(indextest.NewEntry("c", "d3", "Lives", "there is Lord Byron."))
	for _, statement := range []string{claimState, removePassages, writeDocuments, writePassages, writeNames, commitState} {
		source.Put(indextest.NewEntry("c", "d4", "Lives", "there is Lord Byron, "+statement[:20]))
		f.mu.Lock()
		f.before = func(_ int, asked string, _ http.ResponseWriter) bool {
			if asked == statement {
				f.nodes[x.tenant.state()].props["claim"] = "another"
			}
			return false
		}
		f.mu.Unlock()
		if err := x.Flush(t.Context()); !errors.Is(err, assay.ErrLocked) {
			t.Errorf("claimed before %.40s…: %v, want ErrLocked", statement, err)
		}
		f.mu.Lock()
		f.before = nil
		f.mu.Unlock()
		compareUnflushed(t, x, source)
	}
	flush(t, x)
	compare(t, x, source)
}

// compareUnflushed checks that a reader finds at most what is visible.
func compareUnflushed(t *testing.T, x *Index, source *indextest.Source) {
	t.Helper()
	visible := make(map[string]bool)
	for c, err := range source.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, chunk := range c.Chunks {
			visible[chunk.ID] = true
		}
	}
	chunks, err := walked(t.Context(), x, assay.Local())
	if err != nil {
		t.Error(err)
	}
	for _, c := range chunks {
		if !visible[c] {
			t.Errorf("a walk finds chunk %s, which does not exist", c)
		}
	}
}

// TestLarge checks that a large document is written in requests of limited size, and that a rebuild
// deletes it in several steps.
func TestLarge(t *testing.T) {
	t.Parallel()
	f, g := newFake(t)
	source := indextest.NewSource("a")
	var parts []string
	for i := range clearLimit + 200 {
		parts = append(parts, fmt.Sprintf("there is Ada Lovelace beside Lady Number%d of the house.", i))
	}
	source.Put(indextest.NewEntry("c", "d", "Engines", parts...))
	f.mu.Lock()
	f.record = func(statement string, p object) {
		if rows, ok := p["rows"].([]any); ok && (len(rows) == 0 || len(rows) > maxRows) {
			t.Errorf("%d rows in %.30s…", len(rows), statement)
		}
	}
	f.mu.Unlock()
	x := open(t, g, source, t.TempDir())
	flush(t, x)
	compareFor(t, x, source, accesses[:1], queries[:1])
	if err := g.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if len(f.nodes) != 0 || len(f.edges) != 0 {
		t.Errorf("%d nodes and %d edges are left", len(f.nodes), len(f.edges))
	}
	flush(t, x)
	compareFor(t, x, source, accesses[:1], queries[:1])
}
