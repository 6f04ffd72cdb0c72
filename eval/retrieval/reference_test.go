package retrieval_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay/eval/evaltest"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
	"github.com/assay-rag/assay/provider/local"
)

// A referenceEmbedder serves vectors of passages and queries that another program made.
type referenceEmbedder struct{ vectors map[string]llm.Vector }

// referenceVectors reads SET.corpus.f32 and SET.queries.f32 in the folder ASSAY_RESEARCH_VECTORS.
// These have 384 little-endian float32 for each line of the set's corpus.jsonl and queries.jsonl.
func referenceVectors(t *testing.T, sets ...testset.Set) *referenceEmbedder {
	t.Helper()
	dir := os.Getenv("ASSAY_RESEARCH_VECTORS")
	if dir == "" {
		t.Skip("ASSAY_RESEARCH_VECTORS is not set: it names a folder of vectors that another program made")
	}
	e := &referenceEmbedder{map[string]llm.Vector{}}
	for _, set := range sets {
		rows := readRows(t, filepath.Join(dir, set.Name+".corpus.f32"))
		for i, p := range set.Passages {
			e.vectors[strings.TrimSpace(p.Title+"\n"+p.Text)] = rows(i)
		}
		rows = readRows(t, filepath.Join(dir, set.Name+".queries.f32"))
		for i, q := range allQueries(t, set) {
			e.vectors["?"+strings.TrimSpace(q)] = rows(i)
		}
	}
	return e
}

func (e *referenceEmbedder) Model() string { return "gte-small-f16-reference/384" }

func (e *referenceEmbedder) Languages() []string { return []string{"en"} }

func (e *referenceEmbedder) Embed(_ context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	vectors := make([]llm.Vector, len(texts))
	for i, text := range texts {
		key := strings.TrimSpace(text)
		if p == llm.Query {
			key = "?" + key
		}
		if vectors[i] = e.vectors[key]; vectors[i] == nil {
			return vectors[:i], fmt.Errorf("no vector was made of %q", text)
		}
	}
	return vectors, nil
}

// researchSets returns the sets in ASSAY_RESEARCH_SETS, or all.
func researchSets(t *testing.T) []testset.Set {
	t.Helper()
	if os.Getenv("ASSAY_RESEARCH_VECTORS") == "" {
		t.Skip("ASSAY_RESEARCH_VECTORS is not set: it names a folder of vectors that another program made")
	}
	names := strings.Fields(strings.ReplaceAll(os.Getenv("ASSAY_RESEARCH_SETS"), ",", " "))
	if len(names) == 0 {
		names = sharedNames
	}
	return evaltest.Shared(t, names...)
}

// researchParts returns parts with the encoder that ASSAY_RESEARCH_VECTORS selects: "embedded" is
// the embedded one, a folder with a model is that model, and any other folder has vectors of
// another program.
func researchParts(t *testing.T, set testset.Set) retrieval.Parts {
	t.Helper()
	parts := retrieval.Parts{CacheDir: filepath.Join(os.TempDir(), "assay-eval-research")}
	dir := os.Getenv("ASSAY_RESEARCH_VECTORS")
	var err error
	if dir == "embedded" {
		parts.Embedder, err = embedded.Open()
	} else if _, missing := os.Stat(filepath.Join(dir, "config.json")); missing != nil {
		parts = retrieval.Parts{Embedder: referenceVectors(t, set)}
	} else {
		parts.Embedder, err = local.OpenDir(t.Context(), dir, local.Config{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// TestReferenceVectors logs the figures of the rankings with vectors of another program.
// ASSAY_RESEARCH_RANKINGS is a comma-separated list of rankings; empty means all.
func TestReferenceVectors(t *testing.T) {
	rankings := retrieval.Rankings(true, false)
	if names := os.Getenv("ASSAY_RESEARCH_RANKINGS"); names != "" {
		rankings = slices.DeleteFunc(rankings, func(r retrieval.Ranking) bool { return !slices.Contains(strings.Split(names, ","), r.Name) })
	}
	for _, set := range researchSets(t) {
		report, err := retrieval.Run(t.Context(), set, researchParts(t, set), rankings)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range report.Rows {
			t.Logf("%-18s %-22s ndcg %.4f [%.3f %.3f]  mrr %.4f  r10 %.4f  r100 %.4f  gold %.4f  %5.1f ms  %s %s",
				report.Set, r.Ranking, r.NDCG10, r.Low.NDCG10, r.High.NDCG10, r.MRR10, r.Recall10, r.Recall100, r.AllGold10, r.SearchMS, difference(r), notes(r))
		}
	}
}

// TestReferenceCoverage logs the figures with vectors for only a part of the passages.
func TestReferenceCoverage(t *testing.T) {
	for _, set := range researchSets(t) {
		report, err := retrieval.Coverage(t.Context(), set, researchParts(t, set), []float64{0, 0.1, 0.5, 0.9})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-18s text alone  ndcg %.4f", report.Set, report.Text.NDCG10)
		for _, r := range report.Rows {
			t.Logf("%-18s %-11s ndcg %.4f  %s %s", report.Set, r.Ranking, r.NDCG10, difference(r.Row), notes(r.Row))
		}
	}
}

// notes returns the two most frequent notes, shortened.
func notes(r retrieval.Row) string {
	var b strings.Builder
	for _, n := range r.Notes[:min(len(r.Notes), 2)] {
		fmt.Fprintf(&b, " %d: %.60s;", n.Queries, n.Note)
	}
	return b.String()
}

func difference(r retrieval.Row) string {
	if r.Against == nil {
		return ""
	}
	return fmt.Sprintf("%+.4f [%+.3f %+.3f]", r.Against.NDCG10, r.Against.Low, r.Against.High)
}

// sharedNames are the labelled sets of ASSAY_TESTDATA.
var sharedNames = []string{
	"scifact-train", "hotpotqa-train100", "musique-train100", "anthropic-docs",
	"clapnq-answerable", "pubmedqa-1000", "mtrag-un-reference", "xquad-en", "xquad-de",
}

// allQueries returns all queries in the file, whether or not they have judgements.
func allQueries(t *testing.T, set testset.Set) []string {
	t.Helper()
	f, err := os.Open(filepath.Join(os.Getenv("ASSAY_TESTDATA"), "data", "retrieval", set.Name, "queries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var texts []string
	for d := json.NewDecoder(f); d.More(); {
		var q struct{ Text string }
		if err := d.Decode(&q); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, q.Text)
	}
	return texts
}

func readRows(t *testing.T, path string) func(i int) llm.Vector {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const dimensions = 384
	return func(i int) llm.Vector {
		v := make(llm.Vector, dimensions)
		for j := range v {
			v[j] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*(i*dimensions+j):]))
		}
		return v
	}
}
