package index_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// errInconsistent reports that the two directions of a graph disagree, which is possible only in a
// forged index.
var errInconsistent = errors.New("inconsistent graph")

// describe returns the content of a graph in both directions: the entities that each chunk names,
// with the number of passages that name them, and the passages that name each key.
func describe(g index.Graph, chunks, keys []string) ([]string, error) {
	var failed error
	lines := []string{fmt.Sprint(g.Passages(), " passages")}
	for _, chunk := range chunks {
		passage, ok := g.Passage(chunk)
		if !ok {
			continue
		}
		lines = append(lines, "has "+chunk)
		if got := g.Chunk(passage); got != chunk {
			failed = errors.Join(failed, fmt.Errorf("passage %s is called %s: %w", chunk, got, errInconsistent))
		}
		last := ""
		err := g.Entities(passage, func(entity uint32, title bool) {
			count, err := g.Count(entity)
			key := g.Key(entity)
			lines = append(lines, fmt.Sprintf("%s names %s (%v) of %d", chunk, key, title, count))
			if key <= last {
				err = errors.Join(err, fmt.Errorf("%q comes after %q: %w", key, last, errInconsistent))
			}
			last = key
			failed = errors.Join(failed, err)
		})
		failed = errors.Join(failed, err)
	}
	for _, key := range keys {
		count, err := g.Count(g.Entity(key))
		failed = errors.Join(failed, err)
		err = g.Named(g.Entity(key), func(passage uint64, title bool) {
			count--
			lines = append(lines, fmt.Sprintf("%s (%v) is named by %s", key, title, g.Chunk(passage)))
		})
		failed = errors.Join(failed, err)
		if count != 0 {
			failed = errors.Join(failed, fmt.Errorf("%s is named by %d more than come: %w", key, count, errInconsistent))
		}
	}
	slices.Sort(lines)
	return lines, failed
}

// graphOf describes the graph of a search.
func graphOf(t testing.TB, ix *index.Searcher, access assay.Access, q assay.Query, chunks, keys []string) []string {
	t.Helper()
	g, err := ix.Graph(t.Context(), access, q)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	lines, err := describe(g, chunks, keys)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestGraph(t *testing.T) {
	t.Parallel()
	source := indextest.NewSource("a")
	ix := small(t, source, t.TempDir())
	old := indextest.NewEntry("c", "old", "Engines", "The Analytical Engine was described by Ada Lovelace.", "It never ran.")
	source.Put(old)
	g := func(chunks ...string) []string {
		return graphOf(t, ix, assay.Local().Access(), assay.Query{}, chunks, []string{"ada lovelace"})
	}
	want := []string{
		"2 passages",
		"ada lovelace (false) is named by " + old.Chunks[0].ID,
		old.Chunks[0].ID + " names ada lovelace (false) of 1",
		old.Chunks[0].ID + " names analytical engine (false) of 1",
		old.Chunks[0].ID + " names engines (true) of 2",
		"has " + old.Chunks[0].ID,
	}
	slices.Sort(want)
	if diff := gocmp.Diff(want, g(old.Chunks[0].ID)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	// A later document is linked to the documents that mentioned it before.
	flushAndSettle(t, ix)
	title := indextest.NewEntry("c", "new", "Ada Lovelace", "She was a mathematician.")
	source.Put(title)
	if got := strings.Join(g(), "\n"); !strings.Contains(got, "ada lovelace (true) is named by "+title.Chunks[0].ID) ||
		!strings.Contains(got, "ada lovelace (false) is named by "+old.Chunks[0].ID) {
		t.Errorf("after the article came:\n%s", got)
	}
	source.Delete(old.Document.ID)
	if got := strings.Join(g(old.Chunks[0].ID), "\n"); strings.Contains(got, old.Chunks[0].ID) || !strings.Contains(got, title.Chunks[0].ID) {
		t.Errorf("after the other was deleted:\n%s", got)
	}
}

// names are the entities in random documents.
var names = []string{
	"Ada Lovelace", "Charles Babbage", "Analytical Engine", "os.Open", "ReadHeaderTimeout", "University of Cambridge", "Zürich", "E1042", "Über", "Lord Byron", "Menabrea",
}

func randomGraphEntry(random *rand.Rand) indextest.Entry {
	name := func() string { return names[min(random.IntN(len(names)), random.IntN(len(names)))] }
	var texts []string
	for range random.IntN(4) {
		texts = append(texts, "there is "+name()+" beside "+name()+" and so on.")
	}
	e := indextest.NewEntry(fmt.Sprint("c", random.IntN(2)), fmt.Sprint("d", random.IntN(25)), name(), texts...)
	for i := range e.Chunks {
		if random.IntN(3) == 0 {
			e.Chunks[i].Headings = []string{"Over", name()}
		}
	}
	switch random.IntN(4) {
	case 0:
		e.Document.ACL = assay.ACL{Restricted: true}
	case 1:
		e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
	}
	e.Document.Metadata = assay.Metadata{"year": assay.NumberValue(float64(2020 + random.IntN(3)))}
	return e
}

// TestGraphHidden checks that, after random changes of the index, a graph equals that of a tenant
// that has only the passages that the search may find.
func TestGraphHidden(t *testing.T) {
	t.Parallel()
	rounds := indextest.Rounds(8, 40, 2000)
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 9))
		source := indextest.NewSource("a")
		ix := small(t, source, t.TempDir())
		latest := make(map[string]indextest.Entry)
		for range rounds {
			for range 4 {
				e := randomGraphEntry(random)
				if random.IntN(5) == 0 {
					source.Delete(e.Document.ID)
					delete(latest, e.Document.ID)
				} else {
					source.Put(e)
					latest[e.Document.ID] = e
				}
			}
			if random.IntN(3) == 0 {
				flushAndSettle(t, ix)
			}
			checkHidden(t, ix, latest, assay.Principal{User: "ann"}, assay.Query{})
			checkHidden(t, ix, latest, assay.Local(), assay.Query{Collections: []string{"c1"}})
			checkHidden(t, ix, latest, assay.Local(), assay.Query{Filter: assay.Filter{Op: assay.OpGreaterThan, Key: "year", Value: assay.NumberValue(2020)}})
		}
	}
}

func checkHidden(t *testing.T, ix *index.Searcher, latest map[string]indextest.Entry, who assay.Principal, q assay.Query) {
	t.Helper()
	without := indextest.NewSource("b")
	var chunks []string
	for _, e := range latest {
		for _, c := range e.Chunks {
			chunks = append(chunks, c.ID)
		}
		found := who.Access().Allows(e.Document.Collection, e.Document.ACL) && (q.Collections == nil || slices.Contains(q.Collections, e.Document.Collection)) && q.Filter.Match(e.Document.Metadata)
		if found {
			without.Put(e)
		}
	}
	slices.SortFunc(chunks, cmp.Compare)
	keys := []string{"nobody"}
	for _, n := range names {
		keys = append(keys, strings.ToLower(n))
	}
	got, err := ix.Graph(t.Context(), who.Access(), q)
	if errors.Is(err, assay.ErrInvalid) && q.Filter.Op != "" {
		return // no visible document has the key
	}
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	gotLines, err := describe(got, chunks, keys)
	if err != nil {
		t.Fatal(err)
	}
	fresh := small(t, without, t.TempDir())
	everything := assay.Principal{User: "ann"}.Access()
	if diff := gocmp.Diff(graphOf(t, fresh, everything, assay.Query{}, chunks, keys), gotLines); diff != "" {
		t.Fatalf("%v, %+v: -without what is hidden +got\n%s", who, q, diff)
	}
}

func TestGraphErrors(t *testing.T) {
	t.Parallel()
	source := indextest.NewSource("a")
	e := indextest.NewEntry("c", "d", "", "Ada Lovelace is here.")
	source.Put(e)
	ix, err := index.Open(t.Context(), t.TempDir(), source)
	if err != nil {
		t.Fatal(err)
	}
	if got := graphOf(t, ix, assay.Access{}, assay.Query{}, []string{e.Chunks[0].ID}, []string{"ada lovelace"}); !slices.Equal(got, []string{"0 passages"}) {
		t.Errorf("the zero access sees %q", got)
	}
	unknown := assay.Query{Filter: assay.Filter{Op: assay.OpEquals, Key: "none", Value: assay.StringValue("x")}}
	if _, err := ix.Graph(t.Context(), assay.Local().Access(), unknown); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("an unknown key: error %v, want ErrInvalid", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	source.Put(e)
	if _, err := ix.Graph(ctx, assay.Local().Access(), assay.Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
	open, err := ix.Graph(t.Context(), assay.Local().Access(), assay.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, chunk := range []string{"", "x", strings.Repeat("0", 32), strings.Repeat("f", 32)} {
		if _, ok := open.Passage(chunk); ok {
			t.Errorf("chunk %q is in the graph", chunk)
		}
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	if lines, err := describe(open, []string{e.Chunks[0].ID}, nil); err != nil || len(lines) < 3 {
		t.Errorf("a graph that is still held has %q, %v", lines, err)
	}
	open.Close()
	open.Close()
	if _, err := ix.Graph(t.Context(), assay.Local().Access(), assay.Query{}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: error %v", err)
	}
}
