package neptune

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/graph"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// TestContract checks that an index with a graph in Neptune is still the index of its texts.
func TestContract(t *testing.T) {
	if testing.Short() {
		t.Skip("the contract of the index of texts, which this package only delegates to")
	}
	_, g := newFake(t)
	indextest.Run(t, func(t testing.TB, source index.Source, dir string) index.Index {
		if _, ok := source.(index.Identified); !ok {
			source = identified{source}
		}
		return open(t, g, source, dir)
	}, indextest.Full)
}

// An identified source has the identity that a graph needs.
type identified struct{ index.Source }

func (identified) Identity(context.Context) (string, error) { return "identified", nil }

// names are the entities in the documents of the tests.
var names = []string{
	"Ada Lovelace", "Charles Babbage", "Analytical Engine", "os.Open", "ReadHeaderTimeout", "University of Cambridge", "Zürich", "E1042", "Lord Byron", "Menabrea",
}

func randomEntry(r *rand.Rand) indextest.Entry {
	name := func() string { return names[r.IntN(len(names))] }
	var parts []string
	for range r.IntN(4) {
		parts = append(parts, "there is "+name()+" beside "+name()+" and so on.")
	}
	parts = append(parts, "nothing is named here.")
	e := indextest.NewEntry(fmt.Sprint("c", r.IntN(2)), fmt.Sprint("d", r.IntN(40)), name(), parts...)
	switch r.IntN(6) {
	case 0:
		e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"group:staff", "user:ann"}}
	case 1:
		e.Document.ACL = assay.ACL{Restricted: true}
	}
	e.Document.Metadata = assay.Metadata{"year": assay.NumberValue(float64(2020 + r.IntN(3))), "tags": assay.ListValue("a", name())}
	return e
}

var (
	late     = assay.Filter{Op: assay.OpGreaterThan, Key: "year", Value: assay.NumberValue(2020)}
	tagged   = assay.Filter{Op: assay.OpListContains, Key: "tags", Value: assay.StringValue("Zürich")}
	unknown  = assay.Filter{Op: assay.OpEquals, Key: "none", Value: assay.NumberValue(1)}
	accesses = []assay.Principal{
		{User: "ann"}, {User: "ann", Groups: []string{"staff"}}, {User: "bob", Collections: []string{"c1"}}, assay.Local(), {},
	}
	queries = []assay.Query{{Text: "Ada Lovelace"}, {Text: "Zürich", Collections: []string{"c1"}}, {Text: "Menabrea", Filter: late}, {Filter: assay.And(late, tagged)}, {Filter: unknown}}
)

// TestGraph checks that the graph is that of the index of package index, after random changes and for
// several accesses and queries, and that a walk over it finds the same.
func TestGraph(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 9))
	source, other := indextest.NewSource("a"), indextest.NewSource("b")
	_, g := newFake(t)
	x, y := open(t, g, source, t.TempDir()), open(t, g, other, t.TempDir())
	for range indextest.Rounds(4, 10, 100) {
		for range 8 {
			e := randomEntry(r)
			if r.IntN(5) == 0 {
				source.Delete(e.Document.ID)
			} else {
				source.Put(e)
			}
			other.Put(randomEntry(r))
		}
		flush(t, x)
		flush(t, y)
		compare(t, x, source)
	}
	if err := g.Remove(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	compare(t, x, source)
}

// compare checks the graph of an index against that of the index of its texts.
func compare(t *testing.T, x *Index, source *indextest.Source) {
	t.Helper()
	compareFor(t, x, source, accesses, queries)
}

func compareFor(t *testing.T, x *Index, source *indextest.Source, accesses []assay.Principal, queries []assay.Query) {
	t.Helper()
	var chunks []string
	for change, err := range source.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range change.Chunks {
			chunks = append(chunks, c.ID)
		}
	}
	for _, who := range accesses {
		for _, q := range queries {
			want, got := describe(t, x.Follower.(graph.Index), who.Access(), q, chunks), describe(t, x, who.Access(), q, chunks)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%+v, %+v: -index +neptune\n%s", who, q, diff)
			}
		}
	}
}

// prefetched calls f on a graph, after prefetching everything that f asks for if the graph needs it.
func prefetched(t *testing.T, g index.Graph, chunks, keys []string) {
	t.Helper()
	p, ok := g.(graph.Prefetcher)
	if !ok {
		return
	}
	if err := p.PrefetchStart(t.Context(), chunks, keys); err != nil {
		t.Fatal(err)
	}
	var entities []uint32
	for _, key := range keys {
		entities = append(entities, p.Entity(key))
	}
	if err := p.Prefetch(t.Context(), nil, entities); err != nil {
		t.Fatal(err)
	}
}

// describe returns the content of a graph and the result of a walk over it.
func describe(t *testing.T, ix graph.Index, access assay.Access, q assay.Query, chunks []string) []string {
	t.Helper()
	g, err := ix.Graph(t.Context(), access, q)
	if errors.Is(err, assay.ErrInvalid) {
		return []string{"invalid"}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	keys := []string{"ada lovelace", "zurich", "nobody"}
	prefetched(t, g, chunks, keys)
	lines := []string{fmt.Sprint(g.Passages(), " passages")}
	failed := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var seeds []graph.Seed
	for i, chunk := range chunks {
		number, ok := g.Passage(chunk)
		if !ok {
			continue
		}
		if i%9 == 0 {
			seeds = append(seeds, graph.Seed{Chunk: g.Chunk(number), Score: 1 + float64(i%7)})
		}
		var row []string
		failed(g.Entities(number, func(entity uint32, title bool) {
			n, err := g.Count(entity)
			failed(err)
			row = append(row, fmt.Sprintf("%s names %s (%v) of %d", chunk, g.Key(entity), title, n))
		}))
		slices.Sort(row)
		lines = append(lines, row...)
	}
	for _, key := range keys {
		n, err := g.Count(g.Entity(key))
		failed(err)
		named := make(map[string]bool)
		failed(g.Named(g.Entity(key), func(passage uint64, title bool) { named[g.Chunk(passage)] = title }))
		lines = append(lines, fmt.Sprint(key, n, named))
	}
	scores, err := graph.New(ix, graph.Options{}).Walk(t.Context(), access, q, seeds)
	failed(err)
	return append(lines, fmt.Sprintf("%+v", scores))
}

// walked returns the chunks that a walk from everything reaches.
func walked(ctx context.Context, x *Index, who assay.Principal, entries ...indextest.Entry) ([]string, error) {
	return walkedBy(ctx, x, who, assay.Query{Text: "Ada Lovelace"}, entries...)
}

func walkedBy(ctx context.Context, x *Index, who assay.Principal, q assay.Query, entries ...indextest.Entry) ([]string, error) {
	var seeds []graph.Seed
	for _, e := range entries {
		seeds = append(seeds, graph.Seed{Chunk: e.Chunks[0].ID, Score: 1})
	}
	scores, err := graph.New(x, graph.Options{}).Walk(ctx, who.Access(), q, seeds)
	var chunks []string
	for _, s := range scores {
		chunks = append(chunks, s.Chunk)
	}
	slices.Sort(chunks)
	return chunks, err
}

// filling is the number of passages of a world that name nothing.
const filling = 30

// world is three documents that name Ada Lovelace among others that do not, in a graph.
func world(t *testing.T) (*fakeNeptune, *Graph, *indextest.Source, *Index, []indextest.Entry) {
	t.Helper()
	f, g := newFake(t)
	source := indextest.NewSource("a")
	var entries []indextest.Entry
	for i := range 3 {
		entries = append(entries, indextest.NewEntry("c", fmt.Sprint("d", i), "Engines", fmt.Sprintf("there is Ada Lovelace of house %d.", i)))
	}
	var nothing []string
	for i := range filling {
		nothing = append(nothing, fmt.Sprintf("nothing is named here %d.", i))
	}
	source.Put(append(slices.Clone(entries), indextest.NewEntry("c", "filling", "", nothing...))...)
	x := open(t, g, source, t.TempDir())
	flush(t, x)
	return f, g, source, x, entries
}

// TestStale checks that a graph that was not written again shows no document that was deleted or
// changed, and counts none.
func TestStale(t *testing.T) {
	t.Parallel()
	ann, bob := assay.Principal{User: "ann"}, assay.Principal{User: "bob"}
	for name, change := range map[string]func(*indextest.Source, indextest.Entry){
		"deleted": func(s *indextest.Source, e indextest.Entry) { s.Delete(e.Document.ID) },
		"hidden": func(s *indextest.Source, e indextest.Entry) {
			e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:bob"}}
			s.Put(e)
		},
		"replaced": func(s *indextest.Source, e indextest.Entry) {
			s.Put(indextest.NewEntry("c", "d1", "Engines", "there is Charles Babbage."))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, source, x, entries := world(t)
			before, err := walked(t.Context(), x, ann, entries...)
			if err != nil || len(before) != 3 {
				t.Fatalf("%d passages, %v", len(before), err)
			}
			change(source, entries[1])
			for _, who := range []assay.Principal{ann, bob} {
				after, err := walked(t.Context(), x, who, entries...)
				if err != nil || len(after) != 2 || slices.Contains(after, entries[1].Chunks[0].ID) {
					t.Errorf("%s reaches %v, %v", who.User, after, err)
				}
				g, err := x.Graph(t.Context(), who.Access(), assay.Query{})
				if err != nil || g.Passages() != filling+2 {
					t.Errorf("%d passages are counted, %v", g.Passages(), err)
				}
			}
			flush(t, x)
			compare(t, x, source)
		})
	}
}

// TestNotWritten checks that a graph that is missing or ahead of its source is not
// used, and is written by the next flush.
func TestNotWritten(t *testing.T) {
	t.Parallel()
	_, g := newFake(t)
	source := indextest.NewSource("a")
	e := indextest.NewEntry("c", "d", "Engines", "there is Ada Lovelace.")
	source.Put(e)
	x := open(t, g, source, t.TempDir())
	if _, err := walked(t.Context(), x, assay.Local(), e); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("before the first flush: %v", err)
	}
	if n := x.Sequence(); n != 0 {
		t.Errorf("Sequence = %d before the graph is written", n)
	}
	flush(t, x)
	for range 3 {
		source.Skip()
	}
	flush(t, x)
	restored := indextest.NewSource("a")
	restored.Put(indextest.NewEntry("c", "d2", "Engines", "there is Charles Babbage."))
	restored.Put(e)
	y := open(t, g, restored, t.TempDir())
	if _, err := walked(t.Context(), y, assay.Local(), e); !errors.Is(err, assay.ErrForeign) {
		t.Errorf("ahead of its source: %v, want ErrForeign", err)
	}
	flush(t, y)
	compare(t, y, restored)
}

// TestManyChanges checks that searches go on while over maxPending documents changed since the last flush,
// and that a walk is refused.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	_, _, source, x, entries := world(t)
	var more []indextest.Entry
	for i := range maxPending + 1 {
		more = append(more, indextest.NewEntry("c", fmt.Sprint("more", i), "", "x"))
	}
	source.Put(more...)
	if _, err := walked(t.Context(), x, assay.Local(), entries...); !errors.Is(err, assay.ErrUnavailable) || !strings.Contains(err.Error(), "changed since") {
		t.Errorf("Walk = %v", err)
	}
}

// lagging is an index that says whether it lags.
type lagging struct {
	index.Follower
	lags bool
}

func (l *lagging) Lags(context.Context) (bool, error) { return l.lags, nil }

// TestLags checks that the graph of an index that is flushed in the background is flushed as well.
func TestLags(t *testing.T) {
	t.Parallel()
	_, g := newFake(t)
	source := indextest.NewSource("a")
	source.Put(indextest.NewEntry("c", "d", "Engines", "there is Ada Lovelace."))
	own, err := index.Open(t.Context(), t.TempDir(), source)
	if err != nil {
		t.Fatal(err)
	}
	if x, err := g.Open(t.Context(), source, own); err != nil {
		t.Error(err)
	} else if _, lags := x.(lagger); lags {
		t.Error("an index that does not lag is a lagger")
	}
	texts := &lagging{own, false}
	x, err := g.Open(t.Context(), source, texts)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for _, step := range []struct {
		change func()
		want   bool
	}{
		{func() {}, true}, {func() { _ = x.Flush(t.Context()) }, false}, {func() { source.Skip() }, true},
		{func() { _ = x.Flush(t.Context()) }, false}, {func() { texts.lags = true }, true},
	} {
		step.change()
		if lags, err := x.(lagger).Lags(t.Context()); err != nil || lags != step.want {
			t.Errorf("Lags = %v, %v, want %v", lags, err, step.want)
		}
	}
	if _, err := g.Open(t.Context(), unnamed{source}, own); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a source without identity: %v", err)
	}
}

// unnamed is a source without an identity.
type unnamed struct{ index.Source }
