package parse

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// textF1 returns the harmonic mean of the recall and the precision of got's words.
func textF1(got, want string) float64 {
	r, p := overlap(words(norm.NFKC.String(got)), words(norm.NFKC.String(want)))
	if r+p == 0 {
		return 0
	}
	return 2 * r * p / (r + p)
}

// outline returns a document's blocks, one on a line, for comparison in tests.
func outline(doc Document) string {
	var out strings.Builder
	for _, b := range doc.Blocks {
		level := ""
		if b.Level > 0 {
			level = fmt.Sprint(b.Level)
		}
		fmt.Fprintf(&out, "%s%s %q\n", b.Kind, level, doc.Text[b.Start:b.End])
	}
	return out.String()
}

// TestTextReferences compares the words of real files with those of their reference texts.
func TestTextReferences(t *testing.T) {
	for _, tt := range []struct {
		format, glob string
		floor        float64
	}{
		{"odf", "*.odt", .90},
		{"odf", "*.odp", .90},
		{"odf", "*.ods", .90},
		{"epub", "*.epub", .92},
		{"asciidoc", "*.asciidoc", .90},
	} {
		dir := testData(t, "parsing", tt.format)
		paths, err := filepath.Glob(filepath.Join(dir, "sources", tt.glob))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", tt.glob, err)
		}
		sum := 0.0
		for _, path := range paths {
			truth, err := os.ReadFile(filepath.Join(dir, "groundtruth", filepath.Base(path)+".md"))
			if err != nil {
				t.Fatal(err)
			}
			doc, source := parseFile(t, path)
			checkDocument(t, doc, source)
			f1 := textF1(doc.Text, markdownWords(string(truth)))
			t.Logf("%-40s F1 %.3f", filepath.Base(path), f1)
			if os.Getenv("ASSAY_SHOW") != "" {
				t.Log("\n" + outline(doc))
			}
			sum += f1
		}
		if mean := sum / float64(len(paths)); mean < tt.floor {
			t.Errorf("%s: mean F1 %.3f, want %.2f", tt.glob, mean, tt.floor)
		}
	}
}

// fuzzBytes checks that inputs give an error of one of the kinds that Parse documents, or a
// well-formed document, and the same one again.
func fuzzBytes(f *testing.F, name string, seeds ...[]byte) {
	for _, s := range seeds {
		f.Add(s)
	}
	kinds := Kinds()
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Parse(t.Context(), Input{Name: name, Data: data})
		if err != nil {
			if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		checkDocument(t, doc, string(data))
		again, err := Parse(t.Context(), Input{Name: name, Data: data})
		if err != nil || fmt.Sprint(again) != fmt.Sprint(doc) {
			t.Fatalf("the same input gives another document: %v", err)
		}
	})
}

// checkTables checks that the tables are in order and that their cells lie in them, in the order of
// the rows, and hold no separator.
func checkTables(t testing.TB, doc Document) {
	t.Helper()
	end := 0
	for i, table := range doc.Tables {
		if table.Start < end || table.End <= table.Start || table.End > len(doc.Text) {
			t.Fatalf("table %d is [%d, %d) after %d", i, table.Start, table.End, end)
		}
		end = table.End
		at, row, col := table.Start, 0, -1
		for _, c := range table.Cells {
			if c.Start < at || c.End < c.Start || c.End > table.End {
				t.Fatalf("table %d: cell %+v after %d", i, c, at)
			}
			if c.Row < row || c.Row == row && c.Col <= col {
				t.Fatalf("table %d: cell %+v after row %d, column %d", i, c, row, col)
			}
			at, row, col = c.End, c.Row, c.Col
		}
	}
}

// TestMarkedCells checks the places of the cells of HTML and Markdown.
func TestMarkedCells(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a.html", "<table><tr><th>A<th colspan=2>B</tr><tr><td rowspan=2>c <b>d</b><td><td>e</tr><tr><td>f<td>g</tr></table>",
			`0,0 "A" 0,1+2 "B" 1,0 "c d" 1,1 "" 1,2 "e" 2,1 "f" 2,2 "g"`},
		{"a.md", "| A | B |\n|---|---|\n| *c* | |\n| | d |\n", `0,0 "A" 0,1 "B" 1,0 "c" 1,1 "" 2,0 "" 2,1 "d"`},
	} {
		doc := parseString(t, tt.name, tt.text)
		checkDocument(t, doc, tt.text)
		var got []string
		for _, c := range doc.Tables[0].Cells {
			span := ""
			if c.ColSpan > 1 {
				span = fmt.Sprintf("+%d", c.ColSpan)
			}
			got = append(got, fmt.Sprintf("%d,%d%s %q", c.Row, c.Col, span, doc.Text[c.Start:c.End]))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: cells %s, want %s", tt.name, s, tt.want)
		}
	}
}
