package chunk

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
)

// wordVectors is an encoder whose vectors count words, so that sentences about the same things are
// near one another.
func wordVectors(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = make([]float32, 64)
		for _, w := range strings.Fields(strings.ToLower(text)) {
			h := fnv.New32a()
			h.Write([]byte(strings.Trim(w, ".,")))
			vectors[i][h.Sum32()%64]++
		}
	}
	return vectors, nil
}

// checkAny checks chunks against the part of the contract of Split that all chunkers keep.
func checkAny(t testing.TB, doc parse.Document, chunks []assay.Chunk, target int) {
	t.Helper()
	covered := make([]bool, len(doc.Text))
	byID := map[string]assay.Chunk{}
	end := 0
	for i, c := range chunks {
		text := doc.Text[c.Start:c.End]
		if !utf8.ValidString(text) || strings.TrimSpace(text) != text && c.Kind == assay.ChunkProse && strings.TrimSpace(text) == "" {
			t.Fatalf("chunk %d is %q", i, text)
		}
		if c.Ordinal != i || c.ID != assay.ChunkID("doc", "v1", i) || c.Tokens != Tokens(text) || c.Headings == nil {
			t.Fatalf("chunk %d is %+v", i, c)
		}
		byID[c.ID] = c
		if c.Kind == assay.ChunkSection {
			continue
		}
		if c.Tokens > 2*target && strings.ContainsAny(text, " \n\t") {
			t.Fatalf("chunk %d has %d tokens, twice the target of %d", i, c.Tokens, target)
		}
		if c.End <= end {
			t.Fatalf("chunk %d ends at %d, not after the one before at %d", i, c.End, end)
		}
		end = c.End
		if p, ok := byID[c.Parent]; c.Parent != "" && (!ok || p.Start > c.Start || p.End < c.End) {
			t.Fatalf("chunk %d [%d, %d) has the parent %+v", i, c.Start, c.End, p)
		}
		for k := c.Start; k < c.End; k++ {
			covered[k] = true
		}
	}
	for _, b := range doc.Blocks {
		for k := b.Start; k < b.End && b.Kind != parse.Heading; k++ {
			if !covered[k] && strings.IndexByte(" \t\n", doc.Text[k]) < 0 {
				t.Fatalf("byte %d of block %q is in no chunk", k, doc.Text[b.Start:b.End])
			}
		}
	}
}

func options(name string, target, overlap int) Options {
	return Options{Chunker: name, TargetTokens: target, OverlapTokens: overlap, Embed: wordVectors, Model: "words"}
}

// TestChunkers checks that every chunker keeps the contract on real folders.
func TestChunkers(t *testing.T) {
	docs, _ := parseFolder(t, goRoot(t, "doc"))
	code, _ := parseFolder(t, goRoot(t, "src", "net", "mail"))
	docs = append(docs, code...)
	for _, by := range Chunkers() {
		t.Run(by.Name, func(t *testing.T) {
			for _, sizes := range [][2]int{{200, 40}, {32, 8}, {400, -1}} {
				opts := options(by.Name, sizes[0], sizes[1])
				if err := opts.Check(); err != nil {
					t.Fatal(err)
				}
				leaves, tokens := 0, 0
				for _, doc := range docs {
					chunks := mustSplit(t, doc, opts)
					checkAny(t, doc, chunks, sizes[0])
					if diff := cmp.Diff(chunks, mustSplit(t, doc, opts)); diff != "" {
						t.Fatalf("the same document gives other chunks:\n%s", diff)
					}
					for _, c := range chunks {
						if c.Kind != assay.ChunkSection {
							leaves, tokens = leaves+1, tokens+c.Tokens
						}
					}
				}
				t.Logf("target %d: %d leaves of %d tokens on average", sizes[0], leaves, tokens/leaves)
			}
		})
	}
}

// TestChunkersDiffer checks what each chunker is for, on one document.
func TestChunkersDiffer(t *testing.T) {
	text := "# Manual\n\n## Cats\n\n" + strings.Repeat("Cats sleep on warm sofas. ", 10) + "\n\n## Ships\n\n" + strings.Repeat("Ships carry steel over oceans. ", 12) + "\n"
	doc := mustParse(t, "a.md", text)
	leaves := func(name string) (spans []string, chunks []assay.Chunk) {
		for _, c := range mustSplit(t, doc, options(name, 40, 10)) {
			if c.Kind != assay.ChunkSection {
				spans, chunks = append(spans, doc.Text[c.Start:c.End]), append(chunks, c)
			}
		}
		return spans, chunks
	}
	mixed := func(spans []string) bool {
		return slices.ContainsFunc(spans, func(s string) bool { return strings.Contains(s, "sofas") && strings.Contains(s, "steel") })
	}
	for name, want := range map[string]struct{ mixed, overlap, headings, parents bool }{
		"structure":    {headings: true, parents: true, overlap: true},
		"fixed":        {mixed: true},
		"sliding":      {mixed: true, overlap: true},
		"sentence":     {mixed: true, overlap: true},
		"recursive":    {mixed: true, overlap: true},
		"semantic":     {},
		"hierarchical": {mixed: true, parents: true},
		"contextual":   {headings: true, overlap: true},
	} {
		spans, chunks := leaves(name)
		overlap, headings, parents := false, false, false
		for i, c := range chunks {
			overlap = overlap || i > 0 && c.Start < chunks[i-1].End
			headings = headings || len(c.Headings) > 0
			parents = parents || c.Parent != ""
		}
		got := struct{ mixed, overlap, headings, parents bool }{mixed(spans), overlap, headings, parents}
		if got != want {
			t.Errorf("%s: mixed, overlap, headings, parents = %v, want %v\n%s", name, got, want, strings.Join(spans, "\n--\n"))
		}
	}
}

func TestOptionsCheck(t *testing.T) {
	for _, tt := range []struct {
		opts Options
		ok   bool
	}{
		{Options{}, true},
		{Options{Chunker: "fixed", TargetTokens: 16, OverlapTokens: 8}, true},
		{Options{Chunker: "unknown"}, false},
		{Options{TargetTokens: 15}, false},
		{Options{TargetTokens: 2001}, false},
		{Options{TargetTokens: 100, OverlapTokens: 51}, false},
		{Options{OverlapTokens: -1}, true},
	} {
		if err := tt.opts.Check(); (err == nil) != tt.ok || err != nil && !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("Check(%v) = %v", tt.opts, err)
		}
	}
	if a, b := (Options{}).String(), (Options{Chunker: "fixed"}).String(); a == b {
		t.Errorf("two chunkers have one identity: %s", a)
	}
}

// TestSemanticErrors checks that an encoder's failure is the split's.
func TestSemanticErrors(t *testing.T) {
	doc := mustParse(t, "a.md", prose(20))
	if _, err := Split(t.Context(), doc, "doc", "v1", Options{Chunker: "semantic"}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("without an encoder: %v", err)
	}
	down := errors.New("down")
	_, err := Split(t.Context(), doc, "doc", "v1", Options{Chunker: "semantic", Embed: func(context.Context, []string) ([][]float32, error) { return nil, down }})
	if !errors.Is(err, down) {
		t.Errorf("the encoder's error: %v", err)
	}
	few := func(context.Context, []string) ([][]float32, error) { return make([][]float32, 1), nil }
	if _, err := Split(t.Context(), doc, "doc", "v1", Options{Chunker: "semantic", Embed: few}); err == nil {
		t.Error("too few vectors are accepted")
	}
}

func FuzzChunkers(f *testing.F) {
	f.Add(1, "# T\n\n"+prose(12)+"\n\n- a\n- b\n\n```\nx\n\ny\n```\n\n|a|b|\n|-|-|\n|c|d|\n\n## S\n", 20, 6)
	f.Add(4, strings.Repeat("語", 300)+" "+strings.Repeat("x1", 300)+"\n\nb. C.", 16, 8)
	f.Fuzz(func(t *testing.T, which int, text string, target, overlap int) {
		if which < 0 || target < MinTarget || target > MaxTarget || overlap > target/2 {
			return
		}
		doc, err := parse.Parse(context.Background(), parse.Input{Name: "a.md", Data: []byte(text)})
		if err != nil {
			return
		}
		opts := options(chunkers[which%len(chunkers)].Name, target, overlap)
		checkAny(t, doc, mustSplit(t, doc, opts), target)
	})
}
