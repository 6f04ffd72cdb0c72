package ui

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/pdftest"
)

// putDocument stores a document as a user, and returns it.
func (x *site) putDocument(user, name, text, sidecar string) assay.Document {
	x.t.Helper()
	u := engine.Upload{Collection: "shelf", Name: name, Body: strings.NewReader(text)}
	if sidecar != "" {
		u.Sidecar = []byte(sidecar)
	}
	done, err := x.session(user).Upload(x.t.Context(), u)
	if err != nil {
		x.t.Fatal(err)
	}
	d, err := x.session(user).Document(x.t.Context(), done.Documents[0].ID)
	if err != nil {
		x.t.Fatal(err)
	}
	return d
}

// samplePDF returns a PDF of two pages with text and one without.
func samplePDF(word string) string {
	f := pdftest.File{}
	for n := 1; n <= 2; n++ {
		p := f.Page(300, 400)
		p.Text(30, 360, 18, true, fmt.Sprintf("Chapter %d", n))
		p.Text(30, 320, 11, false, fmt.Sprintf("The boiler of house %d is called %s.", n, word))
		p.Text(30, 280, 11, false, "It was built last year.")
	}
	f.Page(300, 400)
	return string(f.Bytes())
}

// wantTexts reports the texts that a page lacks.
func wantTexts(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q", text)
		}
	}
}

func TestDocumentPage(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	d := x.putDocument("ann", "notes.md", "# Notes on the boiler\n\nIt is *green*.\n\n## Parts\n\n- valve\n- pump\n\n1. drain\n\n```go\nfmt.Println(1)\n```\n\n"+
		"| Part | Price |\n|---|---|\n| valve | 7 |\n| pump | 12 |\n", `{"team": "heating", "acl": ["group:staff"]}`)
	page := x.page("ann", "/documents/"+d.ID)
	wantTexts(t, page, "<h1 dir=\"auto\">Notes on the boiler</h1>", "Restricted", "the group staff", "heating", "<li class=\"d1 bullet\" dir=\"auto\">valve</li>",
		"1. drain", "fmt.Println(1)", `<th scope="col" dir="auto">Part</th>`, `<td dir="auto">12</td>`, "None of your answers cites", "Delete this document")
	if strings.Contains(page, "```") {
		t.Error("the page shows the fence of code")
	}
	for user, status := range map[string]int{"bob": 404, "rob": 404, "zed": 404, "rae": 200, "root": 200} {
		if r := x.get(user, "/documents/"+d.ID); r.StatusCode != status || status == 404 && strings.Contains(r.body, "boiler") {
			t.Errorf("%s gets status %d, want %d", user, r.StatusCode, status)
		}
	}
	if page := x.page("rae", "/documents/"+d.ID); strings.Contains(page, "Delete this document") {
		t.Error("a reviewer is offered to delete")
	}
	hidden, none := x.get("bob", "/documents/"+d.ID), x.get("bob", "/documents/"+assay.DocumentID("shelf", "none"))
	if a, b := strings.ReplaceAll(hidden.body, d.ID, ""), strings.ReplaceAll(none.body, assay.DocumentID("shelf", "none"), ""); a != b {
		t.Errorf("a hidden document differs from none:\n%s\n%s", a, b)
	}
}

func TestDocumentQuote(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "Paragraph %d is about Größe and الماء.\n\n", i)
	}
	d := x.putDocument("ann", "long.md", text.String(), "")
	at := strings.Index(d.Text, "Paragraph 1500")
	path := fmt.Sprintf("/documents/%s?start=%d&end=%d", d.ID, at, at+len("Paragraph 1500"))
	page := x.page("ann", path)
	wantTexts(t, page, `<mark id="span" tabindex="-1">Paragraph 1500</mark>`, "part 8 of 10", "Paragraph 1401")
	if n := strings.Count(page, "is about"); n > partBlocks || strings.Contains(page, "Paragraph 7 ") {
		t.Errorf("the page shows %d paragraphs", n)
	}
	first := x.page("ann", path+"&from=0")
	wantTexts(t, first, "The quoted place is in another part", "Paragraph 7 ")
	for _, wrong := range []string{"start=1&end=999999999", "start=5&end=5", "start=-1&end=3", "start=x&end=y",
		fmt.Sprintf("start=%d&end=%d", strings.Index(d.Text, "ö")+1, at)} {
		wantTexts(t, x.page("ann", "/documents/"+d.ID+"?"+wrong), "is not in this version")
	}
	for _, wrong := range []string{"from=x", "from=-1", "from=999999999"} {
		if r := x.get("ann", "/documents/"+d.ID+"?"+wrong); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", wrong, r.StatusCode)
		}
	}
}

func TestDocumentVersions(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	old := x.putDocument("ann", "plan.md", "# Plan\n\nThe old budget is 7.", "")
	d := x.putDocument("ann", "plan.md", "# Plan\n\nThe new budget is 9.", "")
	page := x.page("ann", "/documents/"+d.ID)
	wantTexts(t, page, "new budget", "Until ", "?version="+old.Version)
	before := x.page("ann", "/documents/"+d.ID+"?version="+old.Version)
	wantTexts(t, before, "old budget", "This is an earlier version")
	if r := x.get("ann", "/documents/"+d.ID+"/text?version="+old.Version); r.body != old.Text ||
		!strings.HasPrefix(r.Header.Get("Content-Disposition"), "attachment") || r.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the text is %q, header %v", r.body, r.Header)
	}
	if r := x.post("ann", "/documents/"+d.ID+"/delete", url.Values{}); r.StatusCode != http.StatusSeeOther || x.get("ann", "/documents/"+d.ID).StatusCode != 200 {
		t.Errorf("deleted without confirmation: status %d", r.StatusCode)
	}
	for _, user := range []string{"rob", "zed"} {
		if r := x.post(user, "/documents/"+d.ID+"/delete", url.Values{"confirm": {"yes"}}); r.StatusCode < 400 {
			t.Errorf("%s deletes: status %d", user, r.StatusCode)
		}
	}
	if r := x.post("ann", "/documents/"+d.ID+"/delete", url.Values{"confirm": {"yes"}}); r.StatusCode != http.StatusSeeOther {
		t.Errorf("delete: status %d: %s", r.StatusCode, r.body)
	}
	if r := x.get("ann", "/documents/"+d.ID); r.StatusCode != http.StatusNotFound {
		t.Errorf("a deleted document has status %d", r.StatusCode)
	}
	wantTexts(t, x.page("ann", "/documents/"+d.ID+"?version="+d.Version), "This document was deleted", "new budget")
}

func TestDocumentPictures(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	file := samplePDF("Hestia")
	d := x.putDocument("ann", "house.pdf", file, `{"acl": ["group:staff"]}`)
	page := x.page("ann", "/documents/"+d.ID)
	wantTexts(t, page, "1 of 3 pages has no text", `id="picture-3"`, `loading="lazy"`, "Original", "No text", `id="page-2"`)
	at := strings.Index(d.Text, "The boiler of house 2")
	picture := fmt.Sprintf("/documents/%s/versions/%s/pages/2", d.ID, d.Version)
	plain := x.get("ann", picture)
	marked := x.get("ann", fmt.Sprintf("%s?boxes=%d-%d", picture, at, at+10))
	for name, r := range map[string]reply{"plain": plain, "marked": marked} {
		img, err := png.Decode(strings.NewReader(r.body))
		if err != nil || img.Bounds().Dx() != engine.DefaultPageWidth || r.Header.Get("Content-Type") != "image/png" || r.Header.Get("Cache-Control") != "private, no-cache" {
			t.Fatalf("%s: %v, status %d, header %v", name, err, r.StatusCode, r.Header)
		}
	}
	if plain.body == marked.body {
		t.Error("the picture with a mark is the same")
	}
	if wide := x.get("ann", picture+"?width=2001"); wide.StatusCode != http.StatusBadRequest {
		t.Errorf("a picture of 2001 pixels: status %d", wide.StatusCode)
	}
	for path, status := range map[string]int{picture + "?boxes=x": 400, picture + "?boxes=9-1": 400, strings.TrimSuffix(picture, "2") + "4": 404, strings.TrimSuffix(picture, "2") + "x": 404} {
		if r := x.get("ann", path); r.StatusCode != status {
			t.Errorf("%s: status %d, want %d", path, r.StatusCode, status)
		}
	}
	for _, user := range []string{"bob", "rob", "zed"} {
		for _, path := range []string{picture, "/documents/" + d.ID + "/original", "/documents/" + d.ID + "/text"} {
			if r := x.get(user, path); r.StatusCode != http.StatusNotFound {
				t.Errorf("%s gets %s: status %d", user, path, r.StatusCode)
			}
		}
	}
	original := x.get("rae", "/documents/"+d.ID+"/original")
	if original.body != file || !strings.Contains(original.Header.Get("Content-Disposition"), "house.pdf") || original.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the original has %d bytes of %d, header %v", len(original.body), len(file), original.Header)
	}
	if r := x.get("", picture); r.StatusCode == http.StatusOK {
		t.Error("a picture needs no credential")
	}
	x.putDocument("ann", "house.pdf", file, `{"acl": ["user:ann"]}`) // the same version with another ACL
	if r := x.get("rae", picture); r.StatusCode != http.StatusNotFound {
		t.Errorf("a picture after its ACL changed: status %d", r.StatusCode)
	}
}

var scriptTag = regexp.MustCompile(`(?i)<(script|img|svg|iframe|a)[^>]*(alert|onerror|onload|javascript:)`)

func TestDocumentMarkup(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	evil := `<script>alert(1)</script><img src=x onerror=alert(2)> "'><svg onload=alert(3)>`
	text := "# " + evil + "\n\n" + evil + "\n\n- " + evil + "\n\n```\n" + evil + "\n```\n\n| " + evil + " | b |\n|---|---|\n| " + evil + " | javascript:alert(4) |\n"
	d := x.putDocument("ann", "evil <b>.md", text, `{"note": "<script>alert(5)</script>", "title": "<script>alert(6)</script>"}`)
	at := strings.Index(d.Text, "<script>")
	for _, path := range []string{"/documents/" + d.ID, fmt.Sprintf("/documents/%s?start=%d&end=%d", d.ID, at+3, at+30), "/documents/" + d.ID + "?version=" + url.QueryEscape(`"><script>alert(1)</script>`)} {
		if body := x.get("ann", path).body; scriptTag.MatchString(body) {
			t.Errorf("%s has markup of a document: %s", path, scriptTag.FindString(body))
		}
	}
}

func TestDocumentCitedBy(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	d := x.putDocument("ann", "vault.md", "# The vault\n\nThe colour of the vault of Hestia is vermilion.", "")
	a, err := x.session("ann").Answer(t.Context(), engine.Request{Question: "What is the colour of the vault of Hestia?"})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Citations) == 0 {
		t.Skip("the local roles have not answered")
	}
	wantTexts(t, x.page("ann", "/documents/"+d.ID), "What is the colour of the vault of Hestia?")
	if page := x.page("root", "/documents/"+d.ID); strings.Contains(page, "What is the colour") {
		t.Error("another user sees the run")
	}
}

// TestCutParts checks the parts of texts with blocks in many forms.
func TestCutParts(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("a block of text\n\n", 5000)
	var blocks []assay.Block
	for at := 0; at < len(many); at += len("a block of text\n\n") {
		blocks = append(blocks, assay.Block{Kind: assay.BlockParagraph, Start: at, End: at + len("a block of text")})
	}
	for name, c := range map[string]struct {
		text   string
		blocks []assay.Block
		parts  int
	}{
		"empty":     {"", nil, 1},
		"no blocks": {many, nil, 2},
		"many":      {many, blocks, 25},
		"one block": {strings.Repeat("ö", 100_000), []assay.Block{{Kind: assay.BlockCode, End: 200_000}}, 5},
		"lines":     {strings.Repeat("x\n", 100_000), []assay.Block{{Kind: assay.BlockCode, End: 199_999}}, 5},
	} {
		if got := checkParts(t, c.text, c.blocks); got != c.parts {
			t.Errorf("%s: %d parts, want %d", name, got, c.parts)
		}
	}
}

func checkParts(t *testing.T, text string, blocks []assay.Block) int {
	t.Helper()
	starts := cutParts(text, blocks)
	if starts[0] != 0 {
		t.Fatalf("the first part starts at %d", starts[0])
	}
	d := &assay.Document{Text: text, Structure: assay.Structure{Blocks: blocks}}
	var shown bytes.Buffer
	for i, from := range starts {
		to := len(text)
		if i+1 < len(starts) {
			to = starts[i+1]
		}
		if to <= from && text != "" || to-from > partBytes+utf8.UTFMax || from < len(text) && !utf8.RuneStart(text[from]) {
			t.Fatalf("part %d is %d to %d", i, from, to)
		}
		if partAt(starts, from) != i || to > from && partAt(starts, to-1) != i {
			t.Fatalf("part %d is not found at its offsets", i)
		}
		for _, b := range showPart(d, from, to, markedSpan{}, 0) {
			for _, r := range b.Runs {
				shown.WriteString(r.Text)
			}
			for _, item := range b.Items {
				for _, r := range item.Runs {
					shown.WriteString(r.Text)
				}
			}
			if b.Table != nil {
				for _, row := range b.Table.Body {
					for _, c := range row {
						for _, r := range c.Runs {
							shown.WriteString(r.Text)
						}
					}
				}
			}
		}
	}
	if got, want := strings.Join(strings.Fields(shown.String()), ""), strings.Join(strings.Fields(text), ""); got != want {
		t.Fatalf("the parts show %d bytes without space, want %d", len(got), len(want))
	}
	return len(starts)
}

// FuzzParts checks that the parts of a text show all of it once. Each byte of shape is the length of a
// block, of the kind of its last bits.
func FuzzParts(f *testing.F) {
	f.Add("one two three\n\nfour", []byte{5, 3, 200})
	f.Add(strings.Repeat("ä\n", 40_000), []byte{255, 255})
	f.Add("- a\n- b\n```\nx\n```", []byte{3, 0, 9})
	kinds := []assay.BlockKind{assay.BlockParagraph, assay.BlockTableRow, assay.BlockFigure, assay.BlockFootnote}
	f.Fuzz(func(t *testing.T, text string, shape []byte) {
		text = strings.ToValidUTF8(text, "?")
		var blocks []assay.Block
		at := 0
		for i, n := range shape {
			end := runeStart(text, min(len(text), at+int(n)*int(n)))
			if i%3 != 2 && end > at { // every third one is text in no block
				blocks = append(blocks, assay.Block{Kind: kinds[int(n)%len(kinds)], Start: at, End: end})
			}
			at = end
		}
		checkParts(t, text, blocks)
	})
}
