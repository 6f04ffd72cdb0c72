package parse

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
)

// testData returns a folder of the shared test data, or skips the test.
func testData(t testing.TB, parts ...string) string {
	t.Helper()
	root := os.Getenv("ASSAY_TESTDATA")
	if root == "" {
		t.Skip("ASSAY_TESTDATA is not set")
	}
	dir := filepath.Join(append([]string{root, "data"}, parts...)...)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no such test data: %v", err)
	}
	return dir
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

// files returns the paths of the files in dir and below, restricted to the extensions if any are
// given.
func files(t testing.TB, dir string, exts ...string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (len(exts) == 0 || slices.Contains(exts, filepath.Ext(path))) {
			list = append(list, path)
		}
		return err
	})
	if err != nil || len(list) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	return list
}

func parseFile(t testing.TB, path string) (Document, string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := Parse(context.Background(), Input{Name: filepath.Base(path), Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return doc, string(data)
}

// words returns the words of text in lower case.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// TestPositions checks on real files that Position returns the right line for the first words of
// each sentence and of each of its lines.
func TestPositions(t *testing.T) {
	tests := []struct {
		dir  string
		exts []string
	}{
		{goRoot(t, "src", "net", "http"), []string{".go"}},
		{goRoot(t, "doc"), []string{".html", ".md"}},
		{goRoot(t, "src", "runtime"), []string{".s", ".h", ".c", ".py"}},
	}
	for _, tt := range tests {
		checked, wrong := 0, 0
		for _, path := range files(t, tt.dir, tt.exts...) {
			doc, data := parseFile(t, path)
			checkDocument(t, doc, data)
			c, w := checkPositions(t, path, doc, data)
			checked, wrong = checked+c, wrong+w
		}
		t.Logf("%s: %d lines checked, %d wrong", tt.dir, checked, wrong)
		if checked < 100 || wrong*1000 > checked {
			t.Errorf("%s: %d of %d lines are wrong", tt.dir, wrong, checked)
		}
	}
}

// checkPositions returns the number of lines of doc's sentences, and of those whose first word is
// not on the source line that Position returns.
func checkPositions(t *testing.T, path string, doc Document, data string) (checked, wrong int) {
	source := strings.Split(data, "\n")
	full := assay.Document{Text: doc.Text, Anchors: doc.Anchors}
	for _, b := range doc.Blocks {
		if b.Kind == Heading {
			continue // for source code not always in its words
		}
		for _, s := range sentence.Spans(doc.Text[b.Start:b.End]) {
			at := b.Start + s.Start
			for l := range strings.SplitAfterSeq(doc.Text[at:b.Start+s.End], "\n") {
				if w := words(l); len(w) > 0 && len(w[0]) > 1 {
					offset := at + strings.Index(strings.ToLower(l), w[0])
					line, _ := full.Position(offset)
					checked++
					if !strings.Contains(strings.ToLower(source[line-1]), w[0]) {
						if wrong++; wrong < 5 {
							t.Logf("%s:%d: %q is not in %q", path, line, l, source[line-1])
						}
					}
				}
				at += len(l)
			}
		}
	}
	return checked, wrong
}

// overlap returns the share of want's words that are in got, and of got's words that are in want,
// counting repetitions.
func overlap(got, want []string) (recall, precision float64) {
	count := map[string]int{}
	for _, w := range got {
		count[w]++
	}
	shared := 0
	for _, w := range want {
		if count[w] > 0 {
			count[w]--
			shared++
		}
	}
	return float64(shared) / float64(max(len(want), 1)), float64(shared) / float64(max(len(got), 1))
}

// TestGroundTruth compares the words of real files with those of their reference texts. The
// thresholds are slightly below the measured values.
func TestGroundTruth(t *testing.T) {
	tests := []struct {
		format            string
		recall, precision float64 // over all words of the format's files
	}{
		{"html", 0.88, 0.99}, // 0.998 without wiki_duck, whose reference includes its navigation
		{"md", 0.98, 0.99},
		{"csv", 0.99, 0.65}, // each row repeats the column names
		{"asciidoc", 0.95, 0.93},
	}
	for _, tt := range tests {
		dir := testData(t, "parsing", tt.format)
		var got, want []string
		for _, path := range files(t, filepath.Join(dir, "sources")) {
			truth, err := os.ReadFile(filepath.Join(dir, "groundtruth", filepath.Base(path)+".md"))
			if err != nil {
				continue // an image
			}
			doc, data := parseFile(t, path)
			checkDocument(t, doc, data)
			g, w := words(doc.Text), words(markdownWords(string(truth)))
			r, p := overlap(g, w)
			t.Logf("%-45s recall %.3f precision %.3f of %d words", filepath.Base(path), r, p, len(w))
			got, want = append(got, g...), append(want, w...)
		}
		r, p := overlap(got, want)
		t.Logf("%s: recall %.3f precision %.3f of %d words", tt.format, r, p, len(want))
		if r < tt.recall || p < tt.precision {
			t.Errorf("%s: recall %.3f precision %.3f, want %.2f and %.2f", tt.format, r, p, tt.recall, tt.precision)
		}
	}
}

// markdownWords removes from reference texts the parts that are not words of the source: link
// targets and notes about images.
func markdownWords(text string) string {
	for _, note := range []string{"<!-- image -->", "<!-- missing-text -->"} {
		text = strings.ReplaceAll(text, note, " ")
	}
	var out strings.Builder
	for {
		start := strings.Index(text, "](")
		if start < 0 {
			break
		}
		end := strings.IndexByte(text[start:], ')')
		if end < 0 {
			break
		}
		out.WriteString(text[:start] + " ")
		text = text[start+end+1:]
	}
	return out.String() + text
}

// TestNothingLost checks that the Go specification, the memory model and the assembler guide keep
// every word of their source except markup.
func TestNothingLost(t *testing.T) {
	for _, path := range files(t, goRoot(t, "doc"), ".html") {
		doc, data := parseFile(t, path)
		tree := parseTree(data, 1, func() bool { return false })
		r, p := overlap(words(doc.Text), words(tree.line1()))
		t.Logf("%s: recall %.4f precision %.4f", filepath.Base(path), r, p)
		if r < 0.999 || p < 0.997 { // list numbers are not in the source
			t.Errorf("%s: recall %.4f, precision %.4f", filepath.Base(path), r, p)
		}
	}
}

// TestRealFolders parses the files of a Go installation and of the shared data. Only errors about
// the kind of file are allowed.
func TestRealFolders(t *testing.T) {
	dirs := []string{goRoot(t, "doc"), goRoot(t, "src", "net"), goRoot(t, "src", "encoding"), goRoot(t, "lib"), goRoot(t, "misc")}
	if os.Getenv("ASSAY_TESTDATA") != "" {
		dirs = append(dirs, testData(t, "parsing"))
	}
	counts := map[string]int{}
	for _, dir := range dirs {
		for _, path := range files(t, dir) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := Parse(context.Background(), Input{Name: filepath.Base(path), Data: data})
			switch {
			case errors.Is(err, ErrBinary), errors.Is(err, ErrNeedsProgram), errors.Is(err, ErrEmpty), errors.Is(err, ErrEncoding), errors.Is(err, ErrPassword):
				counts[err.Error()[strings.LastIndex(err.Error(), ": ")+2:]]++
			case err != nil:
				t.Errorf("%s: %v", path, err)
			default:
				counts[doc.Type]++
				if doc.Text == "" && len(doc.Parts) > 0 { // an archive
					continue
				}
				checkDocument(t, doc, string(data))
			}
		}
	}
	t.Logf("%v", counts)
}

func BenchmarkParse(b *testing.B) {
	for _, bb := range []struct{ name, dir, ext string }{
		{"go", goRoot(b, "src", "net", "http"), ".go"},
		{"html", goRoot(b, "doc"), ".html"},
		{"markdown", goRoot(b, "doc"), ".md"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var inputs []Input
			size := 0
			for _, path := range files(b, bb.dir, bb.ext) {
				data, err := os.ReadFile(path)
				if err != nil {
					b.Fatal(err)
				}
				inputs = append(inputs, Input{Name: filepath.Base(path), Data: data})
				size += len(data)
			}
			b.SetBytes(int64(size))
			for b.Loop() {
				for _, in := range inputs {
					if _, err := Parse(context.Background(), in); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
