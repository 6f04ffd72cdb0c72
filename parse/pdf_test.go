package parse

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pdftest"
)

func parsePDFFile(t testing.TB, f *pdftest.File, passwords ...string) (Document, error) {
	t.Helper()
	return Parse(t.Context(), Input{Name: "a.pdf", Data: f.Bytes(), Passwords: passwords})
}

func TestPDF(t *testing.T) {
	f := pdftest.File{Info: map[string]string{"Title": "Leave policy", "Author": "Ada", "CreationDate": "D:20240102030405Z", "Keywords": "leave, days"}}
	first := f.Page(400, 300)
	first.Text(50, 100, 12, false, "Employees have five days of leave that they may carry over to the next year, and inter-")
	first.Text(50, 114, 12, false, "ruptions of it count in full.")
	first.Note(300, 20, 320, 40, "Ask the works council")
	second := f.Page(400, 300)
	second.Hidden(50, 100, 12, "Recognised by a scanner")
	second.Field(50, 150, 150, 170, "Name", "Ada Lovelace")
	f.Page(400, 300).Image(0, 0, 400, 300)
	f.Page(400, 300)
	f.Attach("rates.csv", []byte("country,rate\nFR,5\nDE,6\n"))
	doc, err := parsePDFFile(t, &f)
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, doc, doc.Text)
	if doc.Type != "pdf" || doc.Title != "Leave policy" {
		t.Errorf("type %q, title %q", doc.Type, doc.Title)
	}
	metadata := assay.Metadata{"author": assay.StringValue("Ada"), "keywords": assay.StringValue("leave, days"),
		"created": assay.TimeValue(time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC))}
	if diff := cmp.Diff(metadata, doc.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	pages := []assay.Page{
		{Number: 1, Outcome: assay.PageText, Width: 400, Height: 300},
		{Number: 2, Outcome: assay.PageText, Width: 400, Height: 300},
		{Number: 3, Outcome: assay.PageNoText, Width: 400, Height: 300, Detail: "only images"},
		{Number: 4, Outcome: assay.PageNoText, Width: 400, Height: 300, Detail: "blank"},
	}
	if diff := cmp.Diff(pages, doc.Pages); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	full := assay.Document{Text: doc.Text, Anchors: doc.Anchors}
	for _, want := range []struct {
		text string
		page int
	}{
		{"and interruptions of it count in full.", 1}, {"Ask the works council", 1},
		{"Recognised by a scanner", 2}, {"Name: Ada Lovelace", 2},
	} {
		at := strings.Index(doc.Text, want.text)
		if at < 0 {
			t.Errorf("%q is not in %q", want.text, doc.Text)
			continue
		}
		if line, page := full.Position(at); line != 0 || page != want.page {
			t.Errorf("%q is on line %d, page %d", want.text, line, page)
		}
		block := slices.IndexFunc(doc.Blocks, func(b Block) bool { return b.Start <= at && at < b.End })
		if !slices.ContainsFunc(doc.Boxes, func(b assay.Box) bool { return b.Block == block && b.Page == want.page }) {
			t.Errorf("%q has no box on page %d", want.text, want.page)
		}
	}
	if len(doc.Parts) != 1 || doc.Parts[0].Name != "rates.csv" {
		t.Errorf("parts %v", doc.Parts)
	}
}

func TestPDFAttachment(t *testing.T) {
	f := pdftest.File{Password: "secret"}
	f.Page(400, 300)
	f.Attach("notes.txt", []byte("Notes on the contract"))
	var got []string
	err := Walk(t.Context(), Input{Name: "a.pdf", Data: f.Bytes(), Passwords: []string{"secret"}}, func(p Parsed) error {
		got = append(got, p.Document.Type+": "+p.Document.Text)
		return p.Err
	})
	if diff := cmp.Diff([]string{"pdf: ", "text: Notes on the contract"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestPDFErrors(t *testing.T) {
	locked, scanned, broken, empty := pdftest.File{Password: "secret"}, pdftest.File{}, pdftest.File{}, pdftest.File{}
	locked.Page(400, 300).Text(50, 100, 12, false, "Confidential")
	scanned.Page(400, 300).Image(0, 0, 400, 300)
	broken.Page(400, 300).Broken = true
	for _, tt := range []struct {
		name string
		data []byte
		kind error
		says string
	}{
		{"locked", locked.Bytes(), ErrPassword, "parse a.pdf: the PDF is encrypted, and no given password opens it"},
		{"scanned", scanned.Bytes(), ErrNeedsProgram, "none of its 1 pages has a text layer"},
		{"broken", broken.Bytes(), ErrDamaged, "page 1: the page is damaged"},
		{"no pages", empty.Bytes(), ErrEmpty, "it has no pages"},
		{"not a PDF", []byte("%PDF-1.4 and no more"), ErrDamaged, "not a readable PDF"},
	} {
		_, err := Parse(t.Context(), Input{Name: "a.pdf", Data: tt.data, Passwords: []string{"wrong"}})
		if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}
}

func TestPDFDetection(t *testing.T) {
	var f pdftest.File
	f.Page(400, 300).Text(50, 100, 12, false, "Text")
	pdf := string(f.Bytes())
	for _, tt := range []struct{ name, data, want string }{
		{"a.bin", pdf, "pdf"},
		{"", pdf, "pdf"},
		{"a.txt", pdf, "pdf"},
		{"a.pdf", "HTTP/1.1 200 OK\n\n" + pdf, "pdf"},
		{"a.md", "# PDF\n\nA file starts with %PDF-1.7.", "markdown"},
		{"a.pdf", "No PDF at all", "text"},
	} {
		if got := parseString(t, tt.name, tt.data).Type; got != tt.want {
			t.Errorf("%s, %.20q: %s, want %s", tt.name, tt.data, got, tt.want)
		}
	}
}

// TestPDFBadPage checks that a damaged page costs that page only.
func TestPDFBadPage(t *testing.T) {
	var f pdftest.File
	f.Page(400, 300).Text(50, 100, 12, false, "Before")
	f.Page(400, 300).Broken = true
	f.Page(400, 300).Text(50, 100, 12, false, "After")
	doc, err := parsePDFFile(t, &f)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Text != "Before\n\nAfter" {
		t.Errorf("text %q", doc.Text)
	}
	if p := doc.Pages[1]; p.Outcome != assay.PageFailed || p.Detail != "the page is damaged" {
		t.Errorf("second page: %+v", p)
	}
}

func TestPDFLetters(t *testing.T) {
	var f pdftest.File
	f.Page(400, 300).Unicode(50, 100, 12, "e\ufb03cient\u200b x\u00b2 so\u00adft")
	doc, err := parsePDFFile(t, &f)
	if err != nil || !strings.HasPrefix(doc.Text, "efficient x² so") {
		t.Errorf("%q, %v", doc.Text, err)
	}
}

func TestPDFTitle(t *testing.T) {
	for title, want := range map[string]bool{
		"Leave policy": true, "Urlaub 2024": true, "Report on Form 10-K": true, "코로나-19 관련 보험약관상": true,
		"Microsoft Word - leave.doc": false, "leave_final_v2.docx": false, "untitled": false, "Untitled-1": false, "": false,
		"PowerPoint Presentation": false, "Slide 1": false, "C:\\docs\\leave": false, "https://example.com/a": false, "12345": false, "Handbook": false,
		"scan0001": false, "doc1.pdf": false,
	} {
		if got := isPDFTitle(title, "handbook.pdf"); got != want {
			t.Errorf("isPDFTitle(%q) = %v", title, got)
		}
	}
}

// TestPDFHeadingTitle checks that the only heading of the first level is the title of a PDF whose
// properties have none.
func TestPDFHeadingTitle(t *testing.T) {
	f := pdftest.File{Info: map[string]string{"Title": "Microsoft Word - leave.doc"}}
	page := f.Page(400, 300)
	page.Text(50, 60, 24, true, "Leave policy")
	page.Text(50, 100, 12, false, "Employees have five days of leave that they may carry over to the next year.")
	page.Text(50, 140, 16, true, "Scope")
	page.Text(50, 170, 12, false, "The policy holds for all employees of the company, also for those in training.")
	doc, err := parsePDFFile(t, &f)
	if err != nil || doc.Title != "Leave policy" {
		t.Errorf("title %q of %q, error %v", doc.Title, blockLines(doc), err)
	}
}

func TestPDFCancel(t *testing.T) {
	var f pdftest.File
	p := f.Page(400, 300)
	p.Raw(strings.Repeat("0 0 m 100 100 l S\n", 2_000_000))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Parse(ctx, Input{Name: "a.pdf", Data: f.Bytes()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Parse: %v", err)
	}
}

// TestPDFWords measures how much of the words of real files is found.
func TestPDFWords(t *testing.T) {
	floors := map[string]float64{
		"2305.03393v1-pg9": 0.96, "multi_page": 0.97, "redp5110_sampled": 0.9, "picture_classification": 0.95, "right_to_left_01": 0.95, "amt_handbook_sample": 0.9,
	}
	for name, floor := range floors {
		data, err := os.ReadFile(filepath.Join(testData(t, "parsing"), "pdf", "sources", name+".pdf"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(testData(t, "parsing"), "pdf", "groundtruth", name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Parse(t.Context(), Input{Name: name + ".pdf", Data: data})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkDocument(t, doc, string(data))
		again, err := Parse(t.Context(), Input{Name: name + ".pdf", Data: data})
		if diff := cmp.Diff(doc, again); err != nil || diff != "" {
			t.Errorf("%s: parsed again, %v (-first +second):\n%s", name, err, diff)
		}
		f1 := wordF1(doc.Text, string(want))
		t.Logf("%s: F1 of words %.3f", name, f1)
		if f1 < floor {
			t.Errorf("%s: F1 of words %.3f, want at least %.3f", name, f1, floor)
		}
	}
}

// wordF1 returns the harmonic mean of the shares of words that two texts have in common.
func wordF1(got, want string) float64 {
	words := func(s string) map[string]int {
		counts := map[string]int{}
		for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
			counts[w]++
		}
		return counts
	}
	a, b := words(got), words(want)
	common, total := 0, 0
	for w, n := range a {
		common += min(n, b[w])
		total += n
	}
	for _, n := range b {
		total += n
	}
	return 2 * float64(common) / float64(max(total, 1))
}

// TestPDFDamaged parses damaged variants of a real file.
func TestPDFDamaged(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testData(t, "parsing"), "pdf", "sources", "picture_classification.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 24 {
		damaged := bytes.Clone(data)
		if i%2 == 0 {
			damaged = damaged[:len(data)*i/24]
		}
		for k := i * 37; k < len(damaged); k += 500 + 101*i {
			damaged[k] ^= 4
		}
		doc, err := Parse(t.Context(), Input{Name: "a.pdf", Data: damaged})
		switch {
		case err == nil:
			checkDocument(t, doc, doc.Text)
			if len(doc.Pages) == 0 {
				t.Error("no pages")
			}
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrEmpty) && !errors.Is(err, ErrPassword) && !errors.Is(err, ErrLimit):
			t.Error(err)
		}
	}
}

func FuzzPDF(f *testing.F) {
	var file pdftest.File
	p := file.Page(400, 300)
	p.Text(50, 50, 18, true, "Leave")
	p.Text(50, 80, 10, false, "Five days may be carried over.")
	p.Table(50, 100, 80, [][]string{{"Name", "Days"}, {"Ada", "5"}})
	p.Unicode(50, 200, 10, "\ufb01 םולש")
	p.Note(10, 10, 20, 20, "Note")
	file.Attach("a.txt", []byte("attached"))
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Parse(t.Context(), Input{Name: "a.pdf", Data: data})
		if err == nil && doc.Type == "pdf" && doc.Text != "" {
			checkDocument(t, doc, doc.Text)
		}
	})
}
