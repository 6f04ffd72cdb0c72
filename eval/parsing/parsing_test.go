package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestReadMarkdown(t *testing.T) {
	tests := []struct {
		name, text string
		want       contents
	}{
		{"escapes of docling", "## A\\_b &amp; C\n\n<!-- image -->\n\nx &lt; y", contents{words: []string{"a", "b", "c", "x", "y"}, headings: []string{"a b c"}}},
		{"the same of others", "# **A\\_b** & C\n\n![](i.png)\n\nx \\< y", contents{words: []string{"a", "b", "c", "x", "y"}, headings: []string{"a b c"}}},
		{"items and links", "- one\n2. [two](http://x.y)\n   * [3]\n\n![Four](a.png)", contents{words: []string{"one", "two", "3", "four"}}},
		{"table", "|  | A\\|b |\n| - | :-: |\n| c<br>d | |\n\n| no | table |", contents{
			words: []string{"a", "b", "c", "d", "no", "table"}, cells: []string{"a b", "c d"}}},
		{"code", "```\n# no heading\n| a |\n| - |\n```", contents{words: []string{"no", "heading", "a"}}},
		{"letters", "ﬁne \ufeb3\u0640 東京 a\u00adb *it*alic don't", contents{words: []string{"fine", "سـ", "東", "京", "ab", "italic", "don", "t"}}},
	}
	for _, test := range tests {
		got := readMarkdown(test.text)
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(contents{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestF1(t *testing.T) {
	tests := []struct {
		a, b string
		want float64
	}{
		{"", "", 1}, {"a", "", 0}, {"a b", "b a", 1}, {"a a b", "a c", 0.4},
	}
	for _, test := range tests {
		if got := f1(strings.Fields(test.a), strings.Fields(test.b)); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("f1(%q, %q) = %v, want %v", test.a, test.b, got, test.want)
		}
	}
}

func TestLCS(t *testing.T) {
	long := strings.Repeat("abcde fghij ", 40)
	for _, test := range []struct{ a, b string }{
		{"", "a"}, {"abc", "abc"}, {"abc", "cab"}, {long, long[100:] + long[:100]}, {long, "zz" + strings.ReplaceAll(long, "e", "")}, {"ab", long},
	} {
		if got, want := lcs([]rune(test.a), []rune(test.b)), slowLCS(test.a, test.b); got != want {
			t.Errorf("lcs(%.20q, %.20q) = %d, want %d", test.a, test.b, got, want)
		}
	}
}

// slowLCS is the textbook algorithm.
func slowLCS(a, b string) int {
	row := make([]int, len(b)+1)
	for i := range len(a) {
		diagonal := 0
		for k := range len(b) {
			up := row[k+1]
			if a[i] == b[k] {
				row[k+1] = diagonal + 1
			} else {
				row[k+1] = max(up, row[k])
			}
			diagonal = up
		}
	}
	return row[len(b)]
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"data/md/sources/a.md":            "# Head\n\nword\n",
		"data/md/groundtruth/a.md.md":     "# Head\n\nword other\n",
		"data/md/sources/none.md":         "x",
		"data/text/sources/b.txt":         "  ",
		"data/text/groundtruth/b.md":      "b",
		"tools/plain/md/a.md.txt":         "head word other",
		"tools/plain/seconds.tsv":         "md/a.md\t1.5\n",
		"tools/silent/md/unrelated.md.md": "x",
	} {
		if err := writeFile(filepath.Join(dir, name), text); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	if err := command(t.Context(), []string{"-verbose", "-tools", filepath.Join(dir, "tools"), "-out", filepath.Join(dir, "out"), filepath.Join(dir, "data")}, &out, &errs); err != nil {
		t.Fatal(err, errs.String())
	}
	for _, want := range []string{
		"md      assay    1      0       0.800  0.750  1.000 (1)",
		"md      plain    1      0       1.000  1.000  0.000 (1)  -      1.50",
		"md      silent   1      1       0.000  0.000",
		"text    assay    1      1       0.000  0.000",
		"no result", "no text",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, out.String())
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "out", "md", "a.md.md")); err != nil || string(text) != "# Head\n\nword\n" {
		t.Errorf("the Markdown is %q, %v", text, err)
	}
}

// TestPDF keeps the quality of parsed PDFs: that of PDFium's own text, and headings and cells.
func TestPDF(t *testing.T) {
	data := os.Getenv("ASSAY_TESTDATA")
	if data == "" || testing.Short() {
		t.Skip("it parses the PDFs in ASSAY_TESTDATA, and not with -short")
	}
	results, err := Measure(t.Context(), filepath.Join(data, "data", "parsing"), Options{Format: "pdf"})
	if err != nil {
		t.Fatal(err)
	}
	m := meanOf(results)
	var headings, cells float64
	fmt.Sscanf(m.headings, "%f", &headings)
	fmt.Sscanf(m.cells, "%f", &cells)
	for _, figure := range []struct {
		name       string
		got, least float64
	}{{"words", m.words, 0.96}, {"order", m.order, 0.955}, {"headings", headings, 0.75}, {"cells", cells, 0.6}} {
		if figure.got < figure.least {
			t.Errorf("%s is %.3f, want %.3f and more", figure.name, figure.got, figure.least)
		}
	}
	if m.failed > 0 {
		t.Errorf("%d files failed", m.failed)
	}
}
