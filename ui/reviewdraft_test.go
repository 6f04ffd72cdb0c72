package ui

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/server"
)

// TestDraftPieces checks that the pieces of a text are the text, whatever spans its claims have.
func TestDraftPieces(t *testing.T) {
	t.Parallel()
	const text = "Für Züge gilt das. 🏔️ Not for flights."
	for name, claims := range map[string][]assay.Claim{
		"none":          nil,
		"one":           {{Start: 0, End: 20}},
		"overlapping":   {{Start: 0, End: 20}, {Start: 5, End: 30}},
		"in disorder":   {{Start: 22, End: 30}, {Start: 0, End: 5}},
		"in characters": {{Start: 2, End: 7}, {Start: 22, End: 24}},
		"outside":       {{Start: -1, End: 3}, {Start: 4, End: 999}, {Start: 9, End: 8}},
		"empty":         {{Start: 3, End: 3}},
		"unknown":       {{Start: 0, End: 1, Verdict: "perhaps"}},
	} {
		d := newShownDraft(assay.Answer{Text: text, Claims: claims}, nil)
		var all strings.Builder
		for _, p := range d.Pieces {
			if p.Text == "" || !utf8.ValidString(p.Text) {
				t.Errorf("%s: the piece %q", name, p.Text)
			}
			all.WriteString(p.Text)
		}
		if all.String() != text || len(d.Shown) != len(claims) || d.Lacking != len(claims) {
			t.Errorf("%s: %q, %d claims, %d lacking", name, all.String(), len(d.Shown), d.Lacking)
		}
		for _, c := range d.Shown {
			if c.Verdict.Word == "" {
				t.Errorf("%s: a claim without a verdict", name)
			}
		}
	}
}

// TestShownQuote checks that a quote is marked in its passage only where it is.
func TestShownQuote(t *testing.T) {
	t.Parallel()
	passage := strings.Repeat("ä ", 400) + "the words" + strings.Repeat(" ö", 400)
	evidence := []assay.Evidence{{Number: 1, Hit: assay.Hit{Text: passage, Chunk: assay.Chunk{Document: "d", Version: "v", Start: 100, End: 100 + len(passage)}}}}
	at := 100 + len(strings.Repeat("ä ", 400))
	good := assay.Citation{Number: 1, Document: "d", Version: "v", Start: at, End: at + 9, Quote: "the words", Title: "T", Heading: []string{"H"}}
	q := newShownQuote(good, evidence)
	if q.Mark != "the words" || !strings.HasPrefix(q.Before, "… ä") || !strings.HasSuffix(q.After, "ö …") || len(q.Before) > quoteContext+8 || q.Under != "T > H" || q.Link != "/documents/d" {
		t.Errorf("%+v", q)
	}
	for name, change := range map[string]func(*assay.Citation){
		"another number":   func(c *assay.Citation) { c.Number = 2 },
		"another version":  func(c *assay.Citation) { c.Version = "w" },
		"another place":    func(c *assay.Citation) { c.Start, c.End = c.Start+2, c.End+2 },
		"half a character": func(c *assay.Citation) { c.Start, c.End = 101, 110 },
		"before it":        func(c *assay.Citation) { c.Start, c.End = 0, 9 },
	} {
		c := good
		change(&c)
		if q := newShownQuote(c, evidence); q.Before != "" || q.After != "" || q.Mark != "the words" {
			t.Errorf("%s: %+v", name, q)
		}
	}
	web := good
	web.Origin = assay.FromWeb
	if q := newShownQuote(web, evidence); q.Link != "" {
		t.Errorf("a web page has the link %s", q.Link)
	}
}

func TestUnwrapped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 12) + "end"
	for text, want := range map[string]string{
		long + "\ngoes on":  long + " goes on",
		long + "\n- a list": long + "\n- a list",
		"a,b\nc,d":          "a,b\nc,d",
		long + "\n\nNext":   long + "\n\nNext",
	} {
		if got := unwrapped(text); got != want || len(got) != len(text) {
			t.Errorf("unwrapped(%q) = %q", text, got)
		}
	}
}

// TestReviewHostile checks that no text of a document, question or reviewer becomes markup.
func TestReviewHostile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const script = `<script>alert(1)</script>`
	text := "# Falcon " + script + "\n\n## Lead <img src=x onerror=alert(2)>\n\nThe Falcon project is led by Ada " + script + " Stern \"><svg onload=alert(3)>."
	if err := os.WriteFile(filepath.Join(folder, "falcon.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	x, _ := reviewSite(t, review.Policy{Name: `p"><script>`, Always: true}, func(h *engine.HostConfig, _ *server.Config) { h.Folders = append(h.Folders, folder) })
	if _, err := x.session("root").Ingest(t.Context(), engine.IngestRequest{Paths: []string{folder}, Collection: "x<b>y"}); err != nil {
		t.Fatal(err)
	}
	run := x.askWaiting("ann", "Who leads the Falcon project "+script+" <b>now</b>?")
	path := "/reviews/" + run
	check := func(r reply) {
		t.Helper()
		r.lacks(t, "<script>alert", "<img src=x", "<svg onload", "<b>now", "<b>y", `"><script>`)
	}
	check(x.get("rae", "/reviews").must(t, http.StatusOK, "&lt;script&gt;"))
	check(x.get("rae", path).must(t, http.StatusOK, "Ada", "&lt;script&gt;"))
	x.post("rae", path+"/claim", nil).must(t, http.StatusSeeOther)
	form := x.get("rae", path+"/edit").must(t, http.StatusOK)
	check(form)
	edit := url.Values{"base": {form.hidden(t, "base")}, "text": {"</textarea>" + script + " Ada leads it. [1]"}}
	check(x.post("rae", path+"/edit", edit).must(t, http.StatusOK, "Verified again"))
	edit.Set("base", `"><script>alert(4)</script>`)
	check(x.post("rae", path+"/edit", edit).must(t, http.StatusConflict, "Another reviewer has changed the draft"))
	check(x.get("root", "/evaluations").must(t, http.StatusOK, "x&lt;b&gt;y"))
}
