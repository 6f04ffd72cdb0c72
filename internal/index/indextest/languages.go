package indextest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
)

func written(language, uri, text string, acl ...string) Entry {
	e := NewEntry("c", uri, "", text)
	e.Document.Metadata = assay.Metadata{}
	if language != "" {
		e.Document.Metadata[assay.MetaLanguage] = assay.StringValue(language)
	}
	if len(acl) > 0 {
		e.Document.ACL, _ = assay.RestrictTo(acl...)
	}
	return e.identified()
}

// testLanguages checks that a document is analysed in its own language, and that a word of a query
// matches all forms that it has in the visible languages. The forms are one term.
func testLanguages(t *testing.T, c contract) {
	s := NewSource("a")
	s.Put(
		written("de", "haus", "das Haus am See"),
		written("de-CH", "see", "die Seen in der Schweiz"),
		written("en", "house", "the houses at the lake"),
		written("", "lake", "a lake of several lakes"),
		written("fr", "maison", "les maisons du lac"),
		written("xx", "other", "zzhausen"),
	)
	dir := t.TempDir()
	ix := c.open(t, s, dir)
	for range 2 {
		wantDocuments(t, s, search(t, ix, assay.Query{Text: "Häuser"}), "haus")
		wantDocuments(t, s, search(t, ix, assay.Query{Text: "house"}), "house")
		wantDocuments(t, s, search(t, ix, assay.Query{Text: "maison"}), "maison")
		wantDocuments(t, s, search(t, ix, assay.Query{Text: "zzhausen"}), "other")
		result := search(t, ix, assay.Query{Text: "lakes"})
		if len(result.Terms) != 1 || result.Terms[0].Chunks != 2 || result.Total != 2 {
			t.Errorf("%+v, want one term in two chunks", result)
		}
		if err := ix.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		ix = c.open(t, s, dir)
	}
}

// testLanguagesHidden checks that the languages of invisible documents do not influence the
// analysis of a query.
func testLanguagesHidden(t *testing.T, c contract) {
	s := NewSource("a")
	ann := assay.Principal{User: "ann"}.Access()
	s.Put(written("en", "1", "a house and Häuser"), written("", "2", "the gift of running"))
	ix := c.open(t, s, t.TempDir())
	queries := []string{"Häuser", "die Häuser running", "die houses of the maisons", "gift", "das ist ein Haus"}
	var before []any
	for _, text := range queries {
		before = append(before, search(t, ix, assay.Query{Text: text}))
	}
	s.Put(written("de", "3", "das Haus und die Häuser", "user:ann"), written("fr", "4", "les maisons", "user:ann"), written("de", "5", ""))
	empty := written("ru", "6", "")
	empty.Chunks = nil
	s.Put(empty)
	s.Delete(assay.DocumentID("c", "5"))
	for i, text := range queries {
		after := search(t, ix, assay.Query{Text: text})
		after.Sequence = 1
		if diff := cmp.Diff(before[i], any(after), c.scores()); diff != "" {
			t.Errorf("%q: languages that may not be seen change the result: -without +with\n%s", text, diff)
		}
	}
	if got := searchAs(t, ix, ann, assay.Query{Text: "Häuser"}); got.Total != 2 {
		t.Errorf("ann finds %d chunks, want 2", got.Total)
	}
	s.Delete(assay.DocumentID("c", "3"), assay.DocumentID("c", "4"))
	for i, text := range queries {
		after := searchAs(t, ix, ann, assay.Query{Text: text})
		after.Sequence = 1
		if diff := cmp.Diff(before[i], any(after), cmpopts.EquateEmpty(), c.scores()); diff != "" {
			t.Errorf("%q: languages of deleted documents change the result: -want +got\n%s", text, diff)
		}
	}
}

// testLanguagesModel checks the scores of many documents in many languages against their
// definition.
func testLanguagesModel(t *testing.T, c contract) {
	texts := map[string][]string{
		"de": {"die Häuser der Stadt", "ein Haus in den Städten", "Wasser und Gewässer", "laufen läuft gelaufen", "running gag"},
		"en": {"the houses of the city", "a house in cities", "water and waters", "running runs ran", "die hard in Hauser"},
		"fr": {"les maisons de la ville", "une maison des villes", "l'eau et les eaux", "courir court couru", "gag running"},
		"ja": {"東京の家", "家と水", "走る人"},
	}
	s := NewSource("a")
	for language, list := range texts {
		for i, text := range list {
			s.Put(written(language, fmt.Sprint(language, i), text))
		}
	}
	ix, m := c.open(t, s, t.TempDir()), c.newModel(s)
	for _, text := range []string{"Häuser Stadt", "houses", "running gag", "die Städte", "eaux maison", "家", "laufen run courir", "hauser haus hous", "the die les"} {
		q := assay.Query{Text: text, Limit: 100}
		got, err := ix.Search(t.Context(), everyone, q)
		checkSearch(t, m.search(everyone, q), q, got, err)
	}
}
