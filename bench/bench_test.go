package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMain lets the test binary run as the child process that a benchmark starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childCommand {
		if err := beChild(context.Background(), os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// texts writes a folder in the layout of ASSAY_TESTDATA, with n paragraphs of about 120 random
// words, and returns its path.
func texts(t *testing.T, n int) string {
	t.Helper()
	words := strings.Fields("index query posting chunk segment merge vector filter reader writer snapshot manifest term score block list table file server request handler context error value number string time metadata")
	random := rand.New(rand.NewPCG(1, 1))
	var rows bytes.Buffer
	for i := range n {
		var text strings.Builder
		for w := range 120 {
			fmt.Fprintf(&text, "%s ", words[random.IntN(len(words))])
			if w%10 == 9 {
				fmt.Fprintf(&text, "word%c%c%c\n", 'a'+i%26, 'a'+i/26%26, 'a'+w/10)
			}
		}
		row, err := json.Marshal(map[string]string{"title": fmt.Sprintf("Text %d", i), "text": "# A heading\n\n" + text.String()})
		if err != nil {
			t.Fatal(err)
		}
		rows.Write(append(row, '\n'))
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"data/corpora/made.jsonl":           rows.Bytes(),
		"data/retrieval/made/corpus.jsonl":  nil,
		"data/retrieval/made/queries.jsonl": []byte(`{"text": "what does the writer do when a segment is merged?"}` + "\n"),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestMeasure runs the whole benchmark on a very small corpus. It checks only the output that does
// not depend on the machine.
func TestMeasure(t *testing.T) {
	o, err := parse([]string{"-chunks", "500", "-queries", "8", "-rounds", "1", "-dimensions", "64", "-quick", "-cache", t.TempDir(), "-dir", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r, err := measure(t.Context(), o, texts(t, 500))
	if err != nil {
		t.Fatal(err)
	}
	value := func(title, row, column string) float64 {
		t.Helper()
		for _, p := range r.Parts {
			for _, v := range p.Values {
				if strings.HasPrefix(p.Title, title) && v.Row == row && v.Column == column {
					return v.Value
				}
			}
		}
		t.Errorf("the report has no %q, %q, %q", title, row, column)
		return 0
	}
	if got := value("Text", "overlap of the best ten with assay's, short", "accumulator"); got < 0.95 {
		t.Errorf("the accumulator finds %.3f of what assay finds, with the same terms and formula", got)
	}
	if got := value("Vectors", "recall@10, 8 queries", assayName); got < 0.9 {
		t.Errorf("assay's recall@10 is %.3f", got)
	}
	for _, engine := range []string{"chromem-go 0.7.0", "sqlite-vec"} {
		if got := value("Vectors", "recall@10, a filter keeps 50 %", engine); got < 0.99 {
			t.Errorf("recall@10 of %s, which is exact, is %.3f", engine, got)
		}
	}
	for _, column := range []string{"assay, text", "assay, text and vectors", "bleve, text", "FTS5, text", "sqlite-vec"} {
		if value("Building", "size on disk", column) <= 0 {
			t.Errorf("%s has no files", column)
		}
	}
	value("Growth", "500", "short queries")
	value("Opening", "a document changed, until a search finds it", assayName)
	var out bytes.Buffer
	if err := r.markdown(&out); err != nil || !strings.Contains(out.String(), "| 8 short queries |") {
		t.Errorf("Markdown, %v:\n%s", err, out.String())
	}
}

// TestMeasureInterrupted checks that an interrupted run ends and leaves no files.
func TestMeasureInterrupted(t *testing.T) {
	dir := t.TempDir()
	o, err := parse([]string{"-chunks", "500", "-quick", "-cache", t.TempDir(), "-dir", dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure(ctx, o, texts(t, 10)); err == nil {
		t.Error("a cancelled run gave a report")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("a cancelled run left %v, %v", left, err)
	}
}

func TestParse(t *testing.T) {
	tests := []struct {
		args string
		want string // in the error; "": none
	}{
		{"-quick", ""},
		{"-engines none", ""},
		{"-engines bleve,lucene", `no "lucene"`},
		{"-chunks 10", "at least 500"},
		{"-vectors a.f32", "belong together"},
		{"fast", `unexpected argument "fast"`},
	}
	for _, tt := range tests {
		o, err := parse(append(strings.Fields(tt.args), "-cache", "x"))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("parse(%q) = %v, want %q", tt.args, err, tt.want)
		}
		if tt.args == "-quick" && o.chunks != 20_000 {
			t.Errorf("-quick takes %d chunks", o.chunks)
		}
	}
}

// TestSizes checks that growth goes up to the corpus's size, and beyond it on request.
func TestSizes(t *testing.T) {
	tests := []struct {
		o    options
		want []int
	}{
		{options{chunks: 20_000}, []int{10_000, 20_000}},
		{options{chunks: 200_000}, []int{10_000, 50_000, 200_000}},
		{options{chunks: 200_000, growth: 1_000_000}, []int{10_000, 50_000, 200_000, 1_000_000}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.o.sizes()); diff != "" {
			t.Errorf("sizes of %d chunks, growth %d (-want +got):\n%s", tt.o.chunks, tt.o.growth, diff)
		}
	}
}

func TestCorpus(t *testing.T) {
	cache, testdata := t.TempDir(), texts(t, 60)
	c, err := openCorpus(t.Context(), cache, 50, testdata, false)
	if err != nil {
		t.Fatal(err)
	}
	if c.chunks != 50 || c.origin[0].Chunks != 50 {
		t.Errorf("the corpus has %d chunks from %v, want 50 from one place", c.chunks, c.origin)
	}
	again, err := openCorpus(t.Context(), cache, 50, testdata, true)
	if err != nil {
		t.Fatal(err)
	}
	if again.hash != c.hash {
		t.Errorf("made again, the corpus is %x, before %x", again.hash, c.hash)
	}
	seen := make(map[string]bool)
	for d := range c.documents() {
		document := c.document(d)
		if got := int(c.first[d+1] - c.first[d]); got != len(document.Chunks) || got == 0 {
			t.Errorf("document %d has %d chunks, the table says %d", d, len(document.Chunks), got)
		}
		for _, chunk := range document.Chunks {
			if n := len(strings.Fields(chunk.Text)); n < 50 || n > 200 {
				t.Errorf("a chunk of %d words", n)
			}
			if chunk.Heading != "A heading" || seen[chunk.Text] {
				t.Errorf("chunk with the heading %q, seen before: %v", chunk.Heading, seen[chunk.Text])
			}
			seen[chunk.Text] = true
		}
	}
	p := c.prefix(20)
	if p.chunks < 20 || p.chunks >= 28 || p.documents() >= c.documents() {
		t.Errorf("the prefix of 20 chunks has %d in %d documents", p.chunks, p.documents())
	}
	for _, q := range shortQueries(c, 10) {
		if n := len(strings.Fields(q)); n < 3 || n > 8 {
			t.Errorf("short query %q has %d terms", q, n)
		}
	}
}

// TestMakeCorpusSplices checks that missing text is made by splicing, and that the origins report
// it.
func TestMakeCorpusSplices(t *testing.T) {
	from := []place{{"here", jsonLines(filepath.Join(texts(t, 10), "data", "corpora", "*.jsonl"))}}
	documents, origins, err := makeCorpus(t.Context(), 25, from)
	if err != nil {
		t.Fatal(err)
	}
	chunks := 0
	for _, d := range documents {
		chunks += len(d.Chunks)
	}
	if chunks != 25 || len(origins) != 2 || origins[1].Chunks != 15 {
		t.Errorf("%d chunks of %v, want 10 found and 15 spliced", chunks, origins)
	}
	if _, _, err := makeCorpus(t.Context(), 25, nil); err == nil {
		t.Error("a corpus was made of nothing")
	}
}

// TestSearchWhole makes a data directory of a small corpus and searches it, in this process and in
// others.
func TestSearchWhole(t *testing.T) {
	o, err := parse([]string{"-search", "-chunks", "500", "-queries", "2", "-cache", t.TempDir(), "-dir", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r, err := measure(t.Context(), o, texts(t, 400))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.markdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| all |", "| embed |", "| graph |", "| as by default |", "| words alone (`--mode text`) |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, out.String())
		}
	}
}

func TestReaders(t *testing.T) {
	tests := []struct {
		name string
		got  foundText
		want foundText
	}{
		{"manual", readManual("/m/ls.1", ".TH LS 1\n.\\\" comment\n.SH \"THE NAME\"\nls \\- list \\fIfiles\\fR\n.PP\n.B \\-a\nall\n"), foundText{"ls.1", "\n# THE NAME\n\nls - list files\n\n-a\nall\n"}},
		{"page", readHTML("x", "<title>A  page</title><script>no()</script><h2>Head</h2><p>Words &amp; more"), foundText{"A page", "\n\n# Head\n\n\n\nWords & more"}},
		{"comments", readComments("/go/src/net/http/server.go", "// Package http\n//go:build unix\nvar x = 1 // no\n// serves.\n"), foundText{"net/http server.go", "Package http\n\nserves.\n"}},
		{"code", readCode("/go/src/net/http/server.go", "// Package http\nvar x = 1\n"), foundText{"net/http server.go", "var x = 1\n"}},
		{"document", readDocument("/d/pkg/README.md", "text"), foundText{"pkg README", "text"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestWordsHash(t *testing.T) {
	a, ok := wordsHash("The same, words.")
	if b, _ := wordsHash("the SAME\nwords 12"); a != b || !ok {
		t.Errorf("%x, %v and %x: want the same", a, ok, b)
	}
	for _, text := range []string{"0x12 0x13 == 44 {} [] ()", "a b c d", strings.Repeat("again ", 20)} {
		if _, ok := wordsHash(text); ok {
			t.Errorf("%q reads like text", text)
		}
	}
}

// TestSource checks that a source returns each document's latest state, with the vectors of its
// current chunks.
func TestSource(t *testing.T) {
	c, err := openCorpus(t.Context(), t.TempDir(), 40, texts(t, 60), false)
	if err != nil {
		t.Fatal(err)
	}
	v, _, _, err := chunkVectors(t.TempDir(), "", 8, 40)
	if err != nil {
		t.Fatal(err)
	}
	s := newSource(c, v)
	s.update("once", 2)
	s.remove(0)
	s.update("twice", 2)
	var got []string
	for change, err := range s.Changes(t.Context(), int64(c.documents())-1) {
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		if change.Document != nil {
			text = change.Document.Text
		}
		got = append(got, fmt.Sprint(change.Sequence-int64(c.documents()), change.ID == documentID(2), change.Deleted, strings.Contains(text, " twice")))
	}
	if diff := cmp.Diff([]string{"0 false false false", "2 false true false", "3 true false true"}, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	vectors := 0
	for _, err := range s.Vectors(t.Context(), benchModel, 0) {
		if err != nil {
			t.Fatal(err)
		}
		vectors++
	}
	if want := 40 - len(c.document(0).Chunks); vectors != want {
		t.Errorf("%d vectors, want %d: one for each chunk of what is not removed", vectors, want)
	}
}

func TestOverlap(t *testing.T) {
	want := [][]int{{1, 2}, {3, 4}, {}, {9}}
	if got := overlap(want, [][]int{{2, 1}, {4, 5}, {7}}); got != 0.75 {
		t.Errorf("overlap %v, want 0.75: two of two, one of two, one query without an answer, one not asked", got)
	}
}

// TestCompare checks that compare repeats a fast contender's queries and answers only some of a
// slow one's.
func TestCompare(t *testing.T) {
	asked := 0
	fast := contender{"fast", func(context.Context, int) (answer, error) {
		asked++
		return func() []int { return []int{asked} }, nil
	}}
	slow := contender{"slow", func(context.Context, int) (answer, error) {
		for began := cpuTime(); cpuTime()-began < 2*time.Millisecond; {
		}
		return func() []int { return nil }, nil
	}}
	p := protocol{rounds: 2, queries: 100, least: time.Millisecond, most: 5 * time.Millisecond}
	costs, err := p.compare(t.Context(), []contender{fast, slow})
	if err != nil {
		t.Fatal(err)
	}
	if costs[0].queries != 100 || len(costs[0].answers) != 100 || asked <= 300 {
		t.Errorf("fast: %d queries, %d answers, asked %d times", costs[0].queries, len(costs[0].answers), asked)
	}
	if costs[1].queries != 5 || len(costs[1].rounds) != 2 {
		t.Errorf("slow: %d queries in %d rounds, want 5 in 2", costs[1].queries, len(costs[1].rounds))
	}
}

func TestPercentile(t *testing.T) {
	var values []time.Duration
	for i := range 100 {
		values = append(values, time.Duration(100-i))
	}
	if got := percentile(values, 0.99); got != 100 {
		t.Errorf("99th percentile of 1 to 100 is %d", got)
	}
	if got := median(slices.Clone(values)); got != 51 {
		t.Errorf("median of 1 to 100 is %d", got)
	}
}
