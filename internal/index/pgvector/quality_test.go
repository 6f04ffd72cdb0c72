package pgvector

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/index/indextest"
)

// TestQuality checks on real sets that text searches find the same as the index of package index,
// bit for bit, and that approximate vector searches are as good as it on average.
func TestQuality(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(indextest.Data(t), "retrieval")
	for _, set := range []string{"hotpotqa-train100", "scifact-train"} {
		t.Run(set, func(t *testing.T) { testQuality(t, filepath.Join(dir, set), set) })
	}
}

func testQuality(t *testing.T, dir, set string) {
	source := indextest.NewSource(set)
	var texts []string
	var entries []indextest.Entry
	names := make(map[string]string)
	for _, r := range indextest.ReadRows(t, filepath.Join(dir, "corpus.jsonl")) {
		e := indextest.NewEntry("c", r.ID, r.Title, r.Text)
		names[e.Document.ID] = r.ID
		entries, texts = append(entries, e), append(texts, r.Title+"\n"+r.Text)
	}
	source.Put(entries...)
	p := newProjection(96, texts)
	vectors := make(map[string][]float32)
	for i, e := range entries {
		vectors[e.Chunks[0].ID] = p.vector(texts[i])
	}
	source.PutVectors("projection", vectors)

	approximate := defaultSettings
	approximate.exact = 100
	x := opener(t, approximate)(t, source, t.TempDir()).(*Index)
	own, err := index.Open(t.Context(), t.TempDir(), source)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	everyone := assay.Local().Access()
	warm := index.Vector{Model: "projection", Metric: index.Cosine, Values: p.vector("warm")}
	if _, err := x.Nearest(t.Context(), everyone, assay.Query{Limit: 1}, warm); err != nil {
		t.Fatal(err)
	}
	if err := x.Settle(t.Context()); err != nil { // builds the HNSW index
		t.Fatal(err)
	}
	grades := indextest.ReadGrades(t, filepath.Join(dir, "qrels.tsv"))
	queries := indextest.ReadRows(t, filepath.Join(dir, "queries.jsonl"))
	queries = queries[:min(len(queries), indextest.Rounds(40, 150, 1000))]
	var text, exact, scanned, recall float64
	for _, r := range queries {
		q := assay.Query{Text: r.Text, Limit: 50}
		want, wantErr := own.Search(t.Context(), everyone, q)
		got, err := x.Search(t.Context(), everyone, q)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil || wantErr != nil {
			t.Fatalf("%q (%v, %v): -index +pgvector\n%s", r.Text, wantErr, err, diff)
		}
		text += indextest.NDCG10(found(got, names), grades[r.ID])
		v := index.Vector{Model: "projection", Metric: index.Cosine, Values: p.vector(r.Text)}
		want, wantErr = own.Nearest(t.Context(), everyone, q, v)
		got, err = x.Nearest(t.Context(), everyone, q, v)
		if err != nil || wantErr != nil {
			t.Fatal(err, wantErr)
		}
		exact += indextest.NDCG10(found(want, names), grades[r.ID])
		scanned += indextest.NDCG10(found(got, names), grades[r.ID])
		recall += overlap(found(want, names), found(got, names))
	}
	n := float64(len(queries))
	t.Logf("%s, %v queries: nDCG@10 by text %.4f in both; by vectors %.4f, here %.4f; recall@10 %.4f", set, n, text/n, exact/n, scanned/n, recall/n)
	// These vectors have no clusters, which makes them harder to search than those of an encoder.
	if math.Abs(exact-scanned)/n > 0.01 || recall/n < 0.9 {
		t.Errorf("nDCG@10 by vectors is %.4f, want about %.4f; recall@10 is %.4f, want 0.9", scanned/n, exact/n, recall/n)
	}
}

func found(r index.Result, names map[string]string) []string {
	var ids []string
	for _, h := range r.Hits {
		ids = append(ids, names[h.Document])
	}
	return ids
}

// overlap returns the share of the first ten of want that are among the first ten of got.
func overlap(want, got []string) float64 {
	want, got = want[:min(10, len(want))], got[:min(10, len(got))]
	n := 0
	for _, id := range want {
		if slices.Contains(got, id) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(want)))
}
