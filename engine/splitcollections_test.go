package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// collections opens a data directory with one document in each collection.
func collections(t *testing.T, documents map[string]string) *Engine {
	t.Helper()
	return collectionsIn(t, openDir(t, t.TempDir()), documents)
}

func collectionsIn(t *testing.T, e *Engine, documents map[string]string) *Engine {
	t.Helper()
	for name, text := range documents {
		dir := t.TempDir()
		collection, file, _ := strings.Cut(name, "/")
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{dir}, Collection: collection}); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func notices(t *testing.T) *Engine {
	return collections(t, map[string]string{
		"contracts/lease.md":  "# Lease\n\n## Notice\n\nThe notice period of the lease is three months to the end of a quarter.\n",
		"contracts/rent.md":   "# Rent\n\nThe rent of the office is paid by the third working day.\n",
		"handbook/notice.md":  "# Leaving\n\n## Notice\n\nThe notice period of employees is six weeks to the end of a month.\n",
		"handbook/leave.md":   "# Leave\n\nEvery employee has 28 days of annual leave.\n",
		"archive/old.md":      "# Old\n\nThe notice period was one month in the old days.\n",
		"secret/board.md":     "# Board\n\nThe notice period of the board is twelve months.\n",
		"secret/board.md.bak": "x",
	})
}

// TestSpanNamed checks that a question that names several collections searches each one
// separately, uses a fair share of each, and attributes the results to them.
func TestSpanNamed(t *testing.T) {
	t.Parallel()
	e := notices(t)
	for _, name := range []string{"auto", "static", "corrective"} {
		a := asked(t, e, Request{Question: "What is the notice period in the contracts and in the handbook?", Strategy: name})
		if !strings.Contains(a.Text, "three months") || !strings.Contains(a.Text, "six weeks") || strings.Contains(a.Text, "old days") {
			t.Errorf("%s: %s: %q, missing %q", name, a.Status, a.Text, gapTexts(a.Missing))
		}
		cited := map[string]bool{}
		for _, c := range a.Citations {
			cited[c.Collection] = true
		}
		if len(cited) != 2 || !cited["contracts"] || !cited["handbook"] {
			t.Errorf("%s: cited %v", name, cited)
		}
		if !slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.Contains(n, "contracts 1, handbook 1") }) {
			t.Errorf("%s: notes %q", name, a.Notes)
		}
		for _, s := range a.Searched {
			if len(s.Collections) != 1 || s.Hits == 0 {
				t.Errorf("%s: searched %+v", name, s)
			}
		}
		paths := strings.Join(stepPaths(t, e, a.Run), "\n")
		if !strings.Contains(paths, "collection[0]/search") || !strings.Contains(paths, "collection[1]/search") {
			t.Errorf("%s: steps %s", name, paths)
		}
		replays(t, e, a.Run)
	}
}

// TestSpanWords checks that the search query is still a question after the names of collections
// are removed, wherever they occurred in it.
func TestSpanWords(t *testing.T) {
	t.Parallel()
	e := collections(t, map[string]string{
		"people/files.md":     "# Files\n\nFiles of applicants are kept for six months.\n",
		"legal/files.md":      "# Files\n\nFiles of contracts are kept for ten years.\n",
		"products/alpha.md":   "# Alpha\n\nThe warranty of Alpha is ten years.\n",
		"it/laptops.md":       "# Laptops\n\nThe warranty of laptops is three years.\n",
		"archive/warranty.md": "# Old\n\nThe warranty was one year.\n",
	})
	for _, test := range []struct{ question, searched, one, other string }{
		{"Compare what people and legal say about how long files are kept", "How long files are kept?", "six months", "ten years"},
		{"What do it and products say about the warranty?", "What is said about the warranty?", "ten years", "three years"},
		{"How do it and products differ in the warranty?", "What is said about the warranty?", "ten years", "three years"},
	} {
		a := asked(t, e, Request{Question: test.question})
		if !strings.Contains(a.Text, test.one) || !strings.Contains(a.Text, test.other) || strings.Contains(a.Text, "one year") || a.Question != test.question {
			t.Errorf("%q: %s: %q", test.question, a.Status, a.Text)
		}
		if a.Searched[0].Query != test.searched {
			t.Errorf("%q: searched %q", test.question, a.Searched[0].Query)
		}
		replays(t, e, a.Run)
	}
}

// TestSpanLacksASide checks that the answer names a collection that does not answer the question
// as missing.
func TestSpanLacksASide(t *testing.T) {
	t.Parallel()
	e := notices(t)
	a := asked(t, e, Request{Question: "How many days of annual leave do handbook and contracts grant?"})
	if a.Status != assay.Incomplete || !slices.ContainsFunc(gapTexts(a.Missing), func(m string) bool { return strings.Contains(m, "contracts") }) || !strings.Contains(a.Text, "28 days") {
		t.Errorf("%s: %q, missing %q", a.Status, a.Text, gapTexts(a.Missing))
	}
	replays(t, e, a.Run)
}

// TestSpanGiven checks that the request's own collections are searched separately if the question
// compares, and that no other collection is searched.
func TestSpanGiven(t *testing.T) {
	t.Parallel()
	e := notices(t)
	own := []string{"handbook", "contracts"}
	a := asked(t, e, Request{Question: "How do the notice periods differ?", Collections: own})
	if len(a.Searched) < 2 || len(a.Searched[0].Collections) != 1 {
		t.Errorf("searched %+v", a.Searched)
	}
	for _, req := range []Request{
		{Question: "How long is the notice period?", Collections: own}, // not a comparison
	} {
		a := asked(t, e, req)
		for _, s := range a.Searched {
			if len(s.Collections) > 0 {
				t.Errorf("%q searched %+v", req.Question, s)
			}
		}
		for _, c := range a.Citations {
			if c.Collection != "" {
				t.Errorf("%q cites %+v", req.Question, c)
			}
		}
	}
	a = asked(t, e, Request{Question: "What is the notice period in the contracts, the archive and the handbook?", Collections: own})
	if strings.Contains(a.Text, "old days") {
		t.Errorf("%q", a.Text)
	}
}

// TestSpanPlace checks that a question that names one collection as its place searches only that
// one, with every strategy, and that the name is not part of the query.
func TestSpanPlace(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for i, name := range []string{"orion", "vega", "lyra", "nova"} {
		texts[name+"/start.md"] = fmt.Sprintf("# Getting started\n\n## Configuration\n\nThe server is configured in the file %s.conf. The port is %d.\n\n## Backup\n\nBackups are made every night at %d:00.\n", name[:1], 80+i, i)
	}
	e := collections(t, texts)
	only := func(what string, a assay.Answer, collection, want string) {
		t.Helper()
		if a.Status != assay.Answered || !strings.Contains(a.Text, want) {
			t.Errorf("%s: %s: %q, not %q", what, a.Status, a.Text, want)
		}
		for _, s := range a.Searched {
			if !slices.Equal(s.Collections, []string{collection}) {
				t.Errorf("%s: searched %+v", what, s)
			}
		}
		replays(t, e, a.Run)
	}
	for _, name := range []string{"auto", "static", "corrective", "multihop", "react", "self", "adaptive", "graph"} {
		only(name, asked(t, e, Request{Question: "How is the server configured in orion?", Strategy: name}), "orion", "file o.conf")
	}
	only("of", asked(t, e, Request{Question: "What is the port of Vega?"}), "vega", "81")
	only("whose", asked(t, e, Request{Question: "What is nova's port?"}), "nova", "83")
	only("own", asked(t, e, Request{Question: "What is the port in lyra?", Collections: []string{"lyra"}}), "lyra", "82")

	differ := asked(t, e, Request{Question: "How do orion and nova differ in backups?"})
	if differ.AskBack != "" || !strings.Contains(differ.Text, "0:00") || !strings.Contains(differ.Text, "3:00") {
		t.Errorf("%s: %q", differ.Status, differ.Text)
	}
	replays(t, e, differ.Run)

	back := asked(t, e, Request{Question: "How is the server configured?"})
	if back.AskBack == "" {
		t.Fatalf("%s: %q", back.Status, back.Text)
	}
	for _, reply := range []string{"lyra", "I mean lyra", "in lyra", "the one in lyra", "Getting started (lyra)"} {
		a := asked(t, e, Request{Question: reply, Follows: back.Run})
		only(reply, a, "lyra", "file l.conf")
		if reply == "lyra" {
			only("and then", asked(t, e, Request{Question: "and the port?", Follows: a.Run}), "lyra", "82")
		}
	}
}

// TestSpanHidden checks that a collection without visible documents is treated like one that does
// not exist.
func TestSpanHidden(t *testing.T) {
	t.Parallel()
	e := openDir(t, t.TempDir())
	ingestPaths(t, e, "testdata/handbook")
	dir := t.TempDir()
	for file, text := range map[string]string{"board.md": "The notice period of the board is twelve months.", "board.md.metadata.json": `{"acl": ["group:board"]}`} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{dir}, Collection: "secret"}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{"testdata/handbook"}, Collection: "handbook"}); err != nil {
		t.Fatal(err)
	}
	a := asked(t, e, Request{Question: "What do secret and handbook say about travel to a customer?"})
	r, err := e.run(t.Context(), assay.Local(), a.Run)
	if err != nil {
		t.Fatal(err)
	}
	req, err := requestOf(r)
	if err != nil || slices.Contains(req.NamedCollections, "secret") {
		t.Errorf("the catalogue is %q, %v", req.NamedCollections, err)
	}
}

// TestSpanBudget checks that the first collection that the budget has no room for is skipped, and
// that the answer reports it.
func TestSpanBudget(t *testing.T) {
	t.Parallel()
	e := notices(t)
	r := watch(t, e, nil)
	r.before = nil
	for ev, err := range e.Ask(t.Context(), assay.Local(), Request{Question: "What is the notice period in the contracts and in the handbook?", Budget: assay.Budget{Wall: 1}}) {
		if err != nil {
			if !errors.Is(err, assay.ErrDeadline) {
				t.Fatal(err)
			}
			return
		}
		if ev.Answer != nil && ev.Answer.Status != assay.Incomplete {
			t.Errorf("%s: %q", ev.Answer.Status, ev.Answer.Text)
		}
	}
}
