package parse

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/assay-rag/assay/internal/visible"
)

// officeFloors are the least means of word F1 over the real files of a format. The references leave out
// hidden sheets, alternative texts, notes and the titles of axes, which count as errors here.
var officeFloors = map[string]float64{"docx": .93, "pptx": .90, "xlsx": .96}

// TestOfficeWords compares the words of real files with references made by another program.
func TestOfficeWords(t *testing.T) {
	root := os.Getenv("ASSAY_TESTDATA")
	if root == "" {
		t.Skip("ASSAY_TESTDATA is not set")
	}
	for format, floor := range officeFloors {
		t.Run(format, func(t *testing.T) {
			files, _ := filepath.Glob(filepath.Join(root, "data", "parsing", format, "sources", "*"))
			if len(files) == 0 {
				t.Skip("no files")
			}
			sum, n := 0.0, 0
			for _, file := range files {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(filepath.Join(root, "data", "parsing", format, "groundtruth", filepath.Base(file)+".md"))
				if os.IsNotExist(err) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				doc, err := Parse(context.Background(), Input{Name: filepath.Base(file), Data: data})
				if err != nil {
					t.Error(err)
					continue
				}
				checkOffice(t, doc)
				f1, missing, extra := comparedWords(spanned(doc), string(want))
				sum, n = sum+f1, n+1
				t.Logf("%.3f %s missing %.300q extra %.300q", f1, filepath.Base(file), missing, extra)
			}
			if mean := sum / float64(n); mean < floor {
				t.Errorf("mean word F1 %.4f of %d files, less than %.2f", mean, n, floor)
			} else {
				t.Logf("mean word F1 %.4f of %d files", mean, n)
			}
		})
	}
}

// spanned returns the text of a document with each cell as often as it spans places, as in Markdown.
func spanned(doc Document) string {
	var out strings.Builder
	out.WriteString(doc.Text)
	for _, table := range doc.Tables {
		for _, c := range table.Cells {
			n := max(c.RowSpan, 1)*max(c.ColSpan, 1) - 1
			out.WriteString(strings.Repeat("\n"+doc.Text[c.Start:c.End], n))
		}
	}
	return out.String()
}

var markdownMark = regexp.MustCompile(`(?m)<!--[^>]*-->|^\s*#+ |^\s*[-*] |^\s*\d+\. |^[ |:-]+$|\]\([^)]*\)|\[[x ]\]|\\_`)

// comparedWords returns the F1 of the words of got against those of a reference in Markdown, with the
// words that are missing and extra.
func comparedWords(got, want string) (f1 float64, missing, extra []string) {
	g, w := wordBag(got), wordBag(want)
	both, ng, nw := 0, 0, 0
	for k, n := range g {
		both, ng = both+min(n, w[k]), ng+n
		if n > w[k] {
			extra = append(extra, k)
		}
	}
	for k, n := range w {
		nw += n
		if n > g[k] {
			missing = append(missing, k)
		}
	}
	if ng+nw == 0 {
		return 1, nil, nil
	}
	return 2 * float64(both) / float64(ng+nw), missing, extra
}

func wordBag(s string) map[string]int {
	s = markdownMark.ReplaceAllString(strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s), " ")
	bag := map[string]int{}
	for _, w := range strings.FieldsFunc(strings.ToLower(norm.NFKC.String(s)), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		bag[w]++
	}
	return bag
}

// checkOffice fails the test if a document with text breaks a promise of Document.
func checkOffice(t testing.TB, doc Document) {
	t.Helper()
	if !utf8.ValidString(doc.Text) || !norm.NFC.IsNormalString(doc.Text) || visible.Text(doc.Text) != doc.Text {
		t.Fatal("the text is not normalised")
	}
	if len(doc.Anchors) > 0 && doc.Anchors[0].Start != 0 {
		t.Fatal("the text has no anchor at its start")
	}
	end := 0
	for i, b := range doc.Blocks {
		if b.Start < end || b.End <= b.Start || b.End > len(doc.Text) || !isBlank(doc.Text[end:b.Start]) {
			t.Fatalf("block %d is [%d, %d) after %d of %d bytes", i, b.Start, b.End, end, len(doc.Text))
		}
		if (b.Kind == Heading) != (b.Label != "") || b.Level > 0 && b.Kind != Heading && b.Kind != ListItem {
			t.Fatalf("block %d is a %s of level %d with label %q", i, b.Kind, b.Level, b.Label)
		}
		end = b.End
	}
	if !isBlank(doc.Text[end:]) {
		t.Fatal("text after the last block is in none")
	}
	for i, a := range doc.Anchors {
		if i > 0 && a.Start <= doc.Anchors[i-1].Start || a.Start >= len(doc.Text) || a.Line != 0 {
			t.Fatalf("anchor %d is %+v", i, a)
		}
	}
	end = 0
	for i, table := range doc.Tables {
		if table.Start < end || table.End <= table.Start || table.End > len(doc.Text) {
			t.Fatalf("table %d is [%d, %d)", i, table.Start, table.End)
		}
		for _, c := range table.Cells {
			if c.Start < table.Start || c.End < c.Start || c.End > table.End {
				t.Fatalf("table %d has the cell %+v", i, c)
			}
		}
		end = table.End
	}
	for i, box := range doc.Boxes {
		if box.Block < 0 || box.Block >= len(doc.Blocks) || box.Page < 1 || box.X0 >= box.X1 || box.Y0 >= box.Y1 {
			t.Fatalf("box %d is %+v", i, box)
		}
	}
}
