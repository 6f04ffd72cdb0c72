package chunk

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/parse"
	"github.com/google/go-cmp/cmp"
)

func mustParse(t testing.TB, name, text string) parse.Document {
	t.Helper()
	doc, err := parse.Parse(context.Background(), parse.Input{Name: name, Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func mustSplit(t testing.TB, doc parse.Document, opts Options) []assay.Chunk {
	t.Helper()
	chunks, err := Split(context.Background(), doc, "doc", "v1", opts)
	if err != nil {
		t.Fatal(err)
	}
	return chunks
}

// checkChunks checks chunks against the contract of Split.
func checkChunks(t testing.TB, doc parse.Document, chunks []assay.Chunk, opts Options) {
	t.Helper()
	target := opts.TargetTokens
	if target == 0 {
		target = 200
	}
	section := sectionsOf(doc)
	covered := make([]bool, len(doc.Text))
	byID := map[string]assay.Chunk{}
	end := 0
	for i, c := range chunks {
		if c.Ordinal != i || c.Document != "doc" || c.Version != "v1" || c.ID != assay.ChunkID("doc", "v1", i) {
			t.Fatalf("chunk %d is %+v", i, c)
		}
		if c.Start < 0 || c.Start >= c.End || c.End > len(doc.Text) {
			t.Fatalf("chunk %d is [%d, %d) of %d bytes", i, c.Start, c.End, len(doc.Text))
		}
		text := doc.Text[c.Start:c.End]
		if !utf8.ValidString(text) || strings.TrimSpace(text) == "" {
			t.Fatalf("chunk %d is %q", i, text)
		}
		if c.Tokens != Tokens(text) {
			t.Fatalf("chunk %d says %d tokens, has %d", i, c.Tokens, Tokens(text))
		}
		byID[c.ID] = c
		if c.Kind == assay.ChunkSection {
			if c.Parent != "" {
				t.Fatalf("section %d has a parent", i)
			}
			continue
		}
		if c.Tokens > 2*target && strings.ContainsAny(text, " \n\t") {
			t.Fatalf("chunk %d has %d tokens, over the limit of %d", i, c.Tokens, 2*target)
		}
		if section[c.Start] != section[c.End-1] {
			t.Fatalf("chunk %d crosses a heading: %q", i, text)
		}
		if c.End <= end {
			t.Fatalf("chunk %d ends at %d, not after the one before at %d", i, c.End, end)
		}
		end = c.End
		if c.Parent != "" {
			p, ok := byID[c.Parent]
			if !ok || p.Kind != assay.ChunkSection || p.Start > c.Start || p.End < c.End || len(c.Headings) < len(p.Headings) || !slices.Equal(p.Headings, c.Headings[:len(p.Headings)]) {
				t.Fatalf("chunk %d [%d, %d) has the parent %+v", i, c.Start, c.End, p)
			}
		}
		for k := c.Start; k < c.End; k++ {
			covered[k] = true
		}
	}
	for _, b := range doc.Blocks {
		if b.Kind == parse.Heading {
			continue
		}
		for k := b.Start; k < b.End; k++ {
			if !covered[k] && strings.IndexByte(" \t\n", doc.Text[k]) < 0 {
				t.Fatalf("byte %d of block %q is in no chunk", k, doc.Text[b.Start:b.End])
			}
		}
	}
}

// sectionsOf returns for each byte of the text the number of headings before it.
func sectionsOf(doc parse.Document) []int {
	section := make([]int, len(doc.Text))
	n, at := 0, 0
	for _, b := range doc.Blocks {
		if b.Kind != parse.Heading {
			continue
		}
		for ; at < b.Start; at++ {
			section[at] = n
		}
		n++
	}
	for ; at < len(section); at++ {
		section[at] = n
	}
	return section
}

// goRoot returns a folder of this Go installation, or skips the test.
func goRoot(t testing.TB, parts ...string) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("no go command: %v", err)
	}
	dir := filepath.Join(append([]string{strings.TrimSpace(string(root))}, parts...)...)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("this Go installation lacks it: %v", err)
	}
	return dir
}

func parseFolder(t testing.TB, dir string) (docs []parse.Document, size int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "testdata") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		doc, err := parse.Parse(context.Background(), parse.Input{Name: d.Name(), Data: data})
		if err != nil {
			t.Logf("%s: %v", path, err)
			return nil
		}
		docs = append(docs, doc)
		size += len(data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return docs, size
}

func TestSplitRealFolders(t *testing.T) {
	for _, dir := range []string{goRoot(t, "doc"), goRoot(t, "src", "net", "http")} {
		docs, _ := parseFolder(t, dir)
		leaves, small, cut := 0, 0, 0
		tokens := 0
		for _, doc := range docs {
			for _, opts := range []Options{{}, {TargetTokens: 64, OverlapTokens: 16}, {TargetTokens: 400, OverlapTokens: -1}} {
				chunks := mustSplit(t, doc, opts)
				checkChunks(t, doc, chunks, opts)
				if diff := cmp.Diff(chunks, mustSplit(t, doc, opts)); diff != "" {
					t.Fatalf("the same document gives other chunks:\n%s", diff)
				}
			}
			for _, c := range mustSplit(t, doc, Options{}) {
				if c.Kind == assay.ChunkSection {
					continue
				}
				leaves++
				tokens += c.Tokens
				if c.Tokens < 20 {
					small++
				}
				if c.Kind == assay.ChunkProse && cutsSentence(doc, c) {
					cut++
				}
			}
		}
		t.Logf("%s: %d leaves of %d tokens on average, %d under 20 tokens, %d cut a sentence", dir, leaves, tokens/leaves, small, cut)
		if cut*200 > leaves {
			t.Errorf("%s: %d of %d chunks cut a sentence", dir, cut, leaves)
		}
	}
}

// cutsSentence reports whether c starts or ends inside a sentence of a block.
func cutsSentence(doc parse.Document, c assay.Chunk) bool {
	for _, b := range doc.Blocks {
		if b.End <= c.Start || b.Start >= c.End || b.Kind != parse.Paragraph {
			continue
		}
		for _, s := range sentence.Spans(doc.Text[b.Start:b.End]) {
			from, to := b.Start+s.Start, b.Start+s.End
			if from < c.Start && c.Start < to || from < c.End && c.End < to {
				return true
			}
		}
	}
	return false
}

// prose returns n sentences of ten words.
func prose(n int) string {
	return strings.Repeat("Here are ten words that make up one plain sentence. ", n)
}

func TestSplit(t *testing.T) {
	rows := "| A | B |\n|---|---|\n" + strings.Repeat("| one cell | another cell of the row |\n", 60)
	type chunk struct {
		Kind     assay.ChunkKind
		Headings string
		Starts   string // with
		Child    bool
	}
	tests := []struct {
		what, name, text string
		want             []chunk
	}{
		{
			"headings are the path, the title is not repeated", "a.md", "# Top\n\nIntro.\n\n## Sub\n\nText.\n\n### Deep\n\nMore.\n\n## Empty\n",
			[]chunk{{"prose", "", "Intro.", false}, {"prose", "Sub", "Text.", false}, {"prose", "Sub/Deep", "More.", false}, {"prose", "Empty", "Empty", false}},
		},
		{
			"two tops stay in the path", "a.md", "# One\n\na\n\n# Two\n\nb\n",
			[]chunk{{"prose", "One", "a", false}, {"prose", "Two", "b", false}},
		},
		{
			"a long section has a parent and overlaps by a sentence", "a.md", "# T\n\n## S\n\n" + prose(40),
			[]chunk{{"section", "S", "Here", false}, {"prose", "S", "Here", true}, {"prose", "S", "Here", true}, {"prose", "S", "Here", true}},
		},
		{
			"code stays whole and with what introduces it", "a.md", "# T\n\n" + prose(17) + "\n\nFor example:\n\n```\n" + strings.Repeat("a := b(c)\n", 22) + "```\n",
			[]chunk{{"section", "", "Here", false}, {"prose", "", "Here", true}, {"prose", "", "Here are ten words that make up one plain sentence.\n\nFor example:", true}},
		},
		{
			"rows stay whole", "a.md", rows,
			[]chunk{{"section", "", "A | B", false}, {"table", "", "A | B", true}, {"table", "A | B", "one cell |", true}, {"table", "A | B", "one cell |", true}},
		},
		{
			"a doc comment stays with its signature, the body follows", "a.go",
			"package a\n\n// F is here. " + prose(20) + "\nfunc F() {\n" + strings.Repeat("\tf(1, 2, 3)\n", 40) + "}\n",
			[]chunk{{"code", "package a", "package a", false}, {"section", "func F", "F is here.", false}, {"prose", "func F", "F is here.", true}, {"code", "func F", "\tf(1", true}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			doc := mustParse(t, tt.name, tt.text)
			chunks := mustSplit(t, doc, Options{})
			checkChunks(t, doc, chunks, Options{})
			var got []chunk
			for i, c := range chunks {
				starts := "?"
				if i < len(tt.want) && strings.HasPrefix(doc.Text[c.Start:c.End], tt.want[i].Starts) {
					starts = tt.want[i].Starts
				}
				got = append(got, chunk{c.Kind, strings.Join(c.Headings, "/"), starts, c.Parent != ""})
			}
			if tt.name == "a.go" {
				for i := range got {
					if chunks[i].Kind == assay.ChunkProse && i == 2 && !strings.HasSuffix(doc.Text[chunks[i].Start:chunks[i].End], "func F() {") {
						t.Errorf("the doc comment's chunk does not end with the signature")
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("chunks (-want +got)\n%s", diff)
				for _, c := range chunks {
					t.Logf("%s %d: %.60q … %q", c.Kind, c.Tokens, doc.Text[c.Start:c.End], doc.Text[max(c.Start, c.End-30):c.End])
				}
			}
		})
	}
}

func TestOverlap(t *testing.T) {
	doc := mustParse(t, "a.md", prose(60))
	overlapping := func(opts Options) (n int) {
		last := assay.Chunk{}
		for _, c := range mustSplit(t, doc, opts) {
			if c.Kind == assay.ChunkSection {
				continue
			}
			if c.Start < last.End {
				n++
				if got := Tokens(doc.Text[c.Start:last.End]); got > 40 {
					t.Errorf("chunk %d repeats %d tokens", c.Ordinal, got)
				}
			}
			last = c
		}
		return n
	}
	if n := overlapping(Options{}); n == 0 {
		t.Error("no chunk overlaps the one before")
	}
	if n := overlapping(Options{OverlapTokens: -1}); n != 0 {
		t.Errorf("%d chunks overlap, want none", n)
	}
}

// TestSplitLinear splits long runs of one unit. It passes if it terminates in time.
func TestSplitLinear(t *testing.T) {
	size := 1 << 18
	if testing.Short() {
		size = 1 << 16
	}
	for name, units := range map[string][]string{
		"a.txt": {"a", "a ", "a. ", "語", "a\n", "a.\n\n", "1. a\n", "!"},
		"a.md":  {"# a\n", "# a\n\nb\n\n", "- a\n", "```\na\n```\n", "> a\n\n"},
		"a.csv": {"a,b\n", "\"a b\",c\n"},
		"a.c":   {"a();\n", "a();\n\n", "a(); "},
	} {
		for _, u := range units {
			doc := mustParse(t, name, strings.Repeat(u, size/len(u)))
			checkChunks(t, doc, mustSplit(t, doc, Options{}), Options{})
		}
	}
}

func TestTokensAddUp(t *testing.T) {
	for _, pair := range [][2]string{{"one two", "three"}, {"ListenAndServe(x)", "12345"}, {"für", "日本語"}, {"a.b", "…"}} {
		if got, want := Tokens(pair[0]+" \n"+pair[1]), Tokens(pair[0])+Tokens(pair[1]); got != want {
			t.Errorf("Tokens(%q) = %d, want %d", pair, got, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("a.md", "# T\n\n"+prose(12)+"\n\n- a\n- b\n\n```\nx\n\ny\n```\n\n|a|b|\n|-|-|\n|c|d|\n\n## S\n", 20, 6)
	f.Add("a.go", "// P p.\npackage p\n\n// F f.\nfunc F() {\n"+strings.Repeat("\tg()\n", 20)+"}\n", 16, 4)
	f.Add("a.txt", strings.Repeat("語", 300)+" "+strings.Repeat("x1", 300)+"\n\nb. C.", 5, 0)
	f.Add("a.csv", "a,b\n"+strings.Repeat("1,two words\n", 30), 12, -1)
	f.Fuzz(func(t *testing.T, name, text string, target, overlap int) {
		if target < 8 || target > 2000 {
			target = 0
		}
		doc, err := parse.Parse(context.Background(), parse.Input{Name: name, Data: []byte(text)})
		if err != nil {
			return
		}
		opts := Options{TargetTokens: target, OverlapTokens: overlap}
		chunks := mustSplit(t, doc, opts)
		checkChunks(t, doc, chunks, opts)
	})
}

func BenchmarkSplit(b *testing.B) {
	docs, size := parseFolder(b, goRoot(b, "src", "net", "http"))
	b.SetBytes(int64(size))
	for b.Loop() {
		for _, doc := range docs {
			mustSplit(b, doc, Options{})
		}
	}
}

// TestProvenance checks that no chunk, and no section chunk, mixes text of the source with
// recognised or described text.
func TestProvenance(t *testing.T) {
	sentence := strings.Repeat("Some words of a sentence that is long enough. ", 12)
	var doc parse.Document
	add := func(kind assay.ProvenanceKind, confidence float32, model string) {
		if doc.Text != "" {
			doc.Text += "\n\n"
		}
		b := parse.Block{Kind: parse.Paragraph, Start: len(doc.Text), End: len(doc.Text) + len(sentence)}
		doc.Text += sentence
		doc.Blocks = append(doc.Blocks, b)
		if kind != "" {
			doc.Provenance = append(doc.Provenance, assay.Provenance{Start: b.Start, End: b.End, Kind: kind, Confidence: confidence, Model: model})
		}
	}
	add("", 0, "")
	add("", 0, "")
	add(assay.ProvenanceRecognized, 0.9, "")
	add(assay.ProvenanceRecognized, 0.6, "")
	add(assay.ProvenanceDescribed, 0, "a/1")
	add(assay.ProvenanceDescribed, 0, "b/1")
	add("", 0, "")
	var kinds []string
	for _, c := range mustSplit(t, doc, Options{}) {
		want := doc.ProvenanceOf(c.Start, c.End)
		if c.Provenance != want.Kind || c.Confidence != want.Confidence || c.Model != want.Model {
			t.Errorf("chunk %d: %q %v %q, want %q %v %q", c.Ordinal, c.Provenance, c.Confidence, c.Model, want.Kind, want.Confidence, want.Model)
		}
		for _, p := range doc.Provenance {
			if inside := p.Start <= c.Start && c.End <= p.End; p.Kind == assay.ProvenanceDescribed && !inside && p.Start < c.End && c.Start < p.End {
				t.Errorf("chunk %d contains a description and other text", c.Ordinal)
			}
		}
		described := len(c.Headings) == 1 && c.Headings[0] == DescribedBy(c.Model)
		if described != (c.Provenance == assay.ProvenanceDescribed) {
			t.Errorf("chunk %d: headings %q", c.Ordinal, c.Headings)
		}
		kinds = append(kinds, string(c.Provenance)+c.Model)
	}
	if got := slices.Compact(kinds); !slices.Equal(got, []string{"", "recognized", "describeda/1", "describedb/1", ""}) {
		t.Errorf("provenance of the chunks: %q", got)
	}
}
