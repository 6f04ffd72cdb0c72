package pgvector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
	"github.com/assay-rag/assay/internal/pgtest"
)

var everyone = assay.Local().Access()

// FuzzEncode checks that encoded strings are valid for PostgreSQL and keep equality, prefixes and
// substrings.
func FuzzEncode(f *testing.F) {
	f.Add("légal 日本", "l\xc3")
	f.Add("a\x00b", "\x00")
	f.Add("", "\xff")
	f.Fuzz(func(t *testing.T, s, part string) {
		e := encode(s)
		if decode(e) != s || strings.ContainsRune(e, 0) || strings.ToValidUTF8(e, "") != e {
			t.Errorf("encode(%q) = %q, decoded %q", s, e, decode(e))
		}
		if strings.Contains(e, encode(part)) != strings.Contains(s, part) || strings.HasPrefix(e, encode(part)) != strings.HasPrefix(s, part) {
			t.Errorf("encode changes whether %q contains %q", s, part)
		}
	})
}

func TestSchemaOf(t *testing.T) {
	seen := make(map[string]string)
	for _, identity := range []string{"", "a", "abc_1", "A", "x", "x2d711642b726b04401627ca9fbac32f5", "a\x00", `a"b`, strings.Repeat("a", 40), strings.Repeat("a", 41), "ä"} {
		name := SchemaOf(identity)
		if len(name) > 63 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			t.Errorf("SchemaOf(%q) = %q, want a plain name", identity, name)
		}
		if other, twice := seen[name]; twice {
			t.Errorf("%q and %q have the schema %s", identity, other, name)
		}
		seen[name] = identity
	}
}

func TestOpenInvalid(t *testing.T) {
	for url, source := range map[string]index.Source{
		"postgres://assay:secret@127.0.0.1:port/x": indextest.NewSource("a"),
		"postgres://assay:secret@127.0.0.1/x":      struct{ index.Source }{indextest.NewSource("a")}, // without identity
	} {
		d, err := Connect(url)
		if err == nil {
			_, err = d.Open(t.Context(), source)
		}
		if !errors.Is(err, assay.ErrInvalid) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("Open(%s): %v, want ErrInvalid without the password", url, err)
		}
	}
}

// TestHostile checks names and values that would end a string or a statement, or that PostgreSQL
// cannot hold.
func TestHostile(t *testing.T) {
	t.Parallel()
	hostile := []string{`'`, `"`, `\`, `'; DROP TABLE chunk; --`, "a\x00b", "\xff\xfe", "$1", "%s", `{"a": 1}`, "null", strings.Repeat("k", 5000), strings.Repeat("ü", 2000)}
	source := indextest.NewSource("a")
	for i, s := range hostile {
		e := indextest.NewEntry(s, fmt.Sprint(i), s, "needle "+s)
		e.Document.Metadata = assay.Metadata{s: assay.StringValue(s), s + "list": assay.ListValue(s), "language": assay.StringValue("en")}
		e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:" + s}}
		source.Put(e)
	}
	x := opener(t, defaultSettings)(t, source, t.TempDir())
	for i, s := range hostile {
		for _, filter := range []assay.Filter{
			{},
			{Op: assay.OpEquals, Key: s, Value: assay.StringValue(s)},
			{Op: assay.OpIn, Key: s, Value: assay.ListValue("none", s)},
			{Op: assay.OpStartsWith, Key: s, Value: assay.StringValue(s)},
			{Op: assay.OpStringContains, Key: s + "list", Value: assay.StringValue(s)},
			{Op: assay.OpListContains, Key: s + "list", Value: assay.StringValue(s)},
			{Op: assay.OpEquals, Key: s + "list", Value: assay.ListValue(s)},
		} {
			q := assay.Query{Text: "needle", Limit: 100, Collections: []string{s, "none"}, Filter: filter}
			result, err := x.Search(t.Context(), assay.Principal{User: s, Collections: []string{s}}.Access(), q)
			if err != nil || len(result.Hits) != 1 || result.Hits[0].Document != assay.DocumentID(s, fmt.Sprint(i)) {
				t.Errorf("%.40q, filter %.80s: %+v, %v; want its document", s, filter, result.Hits, err)
			}
		}
	}
}

// TestManyTerms checks a query with more terms than a statement names one by one.
func TestManyTerms(t *testing.T) {
	t.Parallel()
	source := indextest.NewSource("a")
	var all []string
	for i := range 300 {
		word := fmt.Sprintf("word%d", i)
		all = append(all, word)
		source.Put(indextest.NewEntry("c", word, "", strings.Repeat(word+" ", 1+i%3)+strings.Join(all[max(0, i-5):], " ")))
	}
	x := opener(t, defaultSettings)(t, source, t.TempDir())
	own, err := index.Open(t.Context(), t.TempDir(), source)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for _, n := range []int{1, manyForms / 2, manyForms, len(all)} {
		q := assay.Query{Text: strings.Join(all[:n], " "), Limit: 20}
		want, wantErr := own.Search(t.Context(), everyone, q)
		got, err := x.Search(t.Context(), everyone, q)
		if err != nil || wantErr != nil || len(got.Hits) != len(want.Hits) || got.Total != want.Total {
			t.Fatalf("%d terms: %d hits of %d, %v; want %d of %d, %v", n, len(got.Hits), got.Total, err, len(want.Hits), want.Total, wantErr)
		}
		for i := range got.Hits {
			if got.Hits[i].Chunk != want.Hits[i].Chunk || got.Hits[i].BM25 != want.Hits[i].BM25 {
				t.Errorf("%d terms, hit %d: %+v, want %+v", n, i, got.Hits[i], want.Hits[i])
			}
		}
	}
}

// TestDrop checks that an open index reads its source again after its schema was dropped.
func TestDrop(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	source := indextest.NewSource("dropped")
	source.Put(indextest.NewEntry("c", "1", "", "needle"))
	database := connect(t, address)
	x, err := database.Open(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for range 3 {
		result, err := x.Search(t.Context(), everyone, assay.Query{Text: "needle", Limit: 9})
		if err != nil || len(result.Hits) != 1 {
			t.Fatalf("%d hits, %v; want 1", len(result.Hits), err)
		}
		if err := database.Drop(t.Context(), "dropped"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNothingRemains checks that the tables have nothing of documents that were deleted: no names
// of ACLs, no metadata, and no counts.
func TestNothingRemains(t *testing.T) {
	t.Parallel()
	source := indextest.NewSource("a")
	w := indextest.NewEntry("c", "1", "Title of Ada Lovelace", "needle")
	w.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
	w.Document.Metadata = assay.Metadata{"codename": assay.StringValue("x")}
	source.Put(w)
	source.PutVectors("m", map[string][]float32{w.Chunks[0].ID: {1, 2}})
	x := opener(t, defaultSettings)(t, source, t.TempDir()).(*Index)
	if err := x.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	source.Delete(w.Document.ID)
	if err := x.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := x.reading(t.Context(), func(tx pgx.Tx) error {
		list, err := models(t.Context(), tx)
		if err != nil || len(list) != 1 {
			return fmt.Errorf("models %v: %w", list, err)
		}
		for _, table := range []string{"class", "count", "term", "document", "chunk", "passage", vectorTable(list[0])} {
			var n int
			if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
				return err
			}
			if n > 0 {
				t.Errorf("table %s has %d rows, want none", table, n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNewer checks that an index written by a newer version is left alone.
func TestNewer(t *testing.T) {
	t.Parallel()
	source := indextest.NewSource("a")
	x := opener(t, defaultSettings)(t, source, t.TempDir()).(*Index)
	if _, err := x.pool.Exec(context.Background(), `UPDATE state SET format = format + 1`); err != nil {
		t.Fatal(err)
	}
	source.Put(indextest.NewEntry("c", "1", "", "needle"))
	if _, err := x.Search(t.Context(), everyone, assay.Query{Text: "needle", Limit: 1}); !errors.Is(err, assay.ErrNewer) {
		t.Errorf("error %v, want ErrNewer", err)
	}
	if _, err := x.pool.Exec(context.Background(), `UPDATE state SET format = format - 2`); err != nil {
		t.Fatal(err)
	}
	if result, err := x.Search(t.Context(), everyone, assay.Query{Text: "needle", Limit: 1}); err != nil || len(result.Hits) != 1 {
		t.Errorf("an index of an older version finds %d, %v; want 1", len(result.Hits), err)
	}
}

// TestMove checks that a change of an ACL or a collection alone writes neither terms nor vectors
// again, and that it takes effect at once.
func TestMove(t *testing.T) {
	t.Parallel()
	source := indextest.NewSource("a")
	e, other := indextest.NewEntry("c", "1", "", "needle"), indextest.NewEntry("c", "2", "", "needle and thread")
	source.Put(e, other)
	source.PutVectors("m", map[string][]float32{e.Chunks[0].ID: {1, 2}})
	x := opener(t, defaultSettings)(t, source, t.TempDir()).(*Index)
	v := index.Vector{Model: "m", Metric: index.Cosine, Values: []float32{1, 2}}
	check := func(access assay.Access, collection string, texts, vectors int) {
		t.Helper()
		q := assay.Query{Text: "needle", Limit: 9, Collections: []string{collection}}
		text, err := x.Search(t.Context(), access, q)
		if err != nil || len(text.Hits) != texts {
			t.Errorf("%d hits, %v; want %d", len(text.Hits), err, texts)
		}
		near, err := x.Nearest(t.Context(), access, q, v)
		if err != nil || len(near.Hits) != vectors || near.Total != vectors {
			t.Errorf("%d hits of %d by vector, %v; want %d", len(near.Hits), near.Total, err, vectors)
		}
	}
	place := func() (where string) {
		t.Helper()
		err := x.reading(t.Context(), func(tx pgx.Tx) error {
			list, err := models(t.Context(), tx)
			if err != nil {
				return err
			}
			return tx.QueryRow(t.Context(), `SELECT (SELECT string_agg(no::text, ' ' ORDER BY no) FROM chunk) || ' ' || (SELECT ctid::text FROM `+vectorTable(list[0])+`)`).Scan(&where)
		})
		if err != nil {
			t.Fatal(err)
		}
		return where
	}
	check(everyone, "c", 2, 1)
	before := place()
	e.Document.ACL = assay.ACL{Restricted: true, Allow: []string{"user:ann"}}
	source.Put(e, other)
	check(everyone, "c", 1, 0)
	check(assay.Principal{User: "ann"}.Access(), "c", 2, 1)
	e.Document.Collection = "d"
	source.Put(e)
	check(assay.Principal{User: "ann"}.Access(), "c", 1, 0)
	check(assay.Principal{User: "ann"}.Access(), "d", 1, 1)
	if after := place(); after != before {
		t.Errorf("rows are at %s, before at %s", after, before)
	}
}
