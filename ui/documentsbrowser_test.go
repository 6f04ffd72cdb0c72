package ui

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/browsertest"
)

// variants are the windows in which pages are checked.
var variants = map[string]browsertest.Options{"light": {}, "dark": {Dark: true, Width: 360, Height: 740}}

// checkLayout checks that a page is not wider than its window, and its accessibility.
func checkLayout(t *testing.T, p *browsertest.Page, path string) {
	t.Helper()
	checkWidth(t, p, path)
	p.Axe(t)
}

// checkWidth checks that a page is not wider than its window.
func checkWidth(t *testing.T, p *browsertest.Page, path string) {
	t.Helper()
	var wide bool
	p.Eval("document.documentElement.scrollWidth > innerWidth", &wide)
	if wide {
		t.Errorf("%s is wider than the window", path)
	}
}

func TestChromiumDocuments(t *testing.T) {
	t.Parallel()
	x, folder := folderSite(t, 20)
	x.put("root", "handbook", "دليل الموظفين ٢٠٢٦ "+fmt.Sprintf("%0120d", 7)+".md", "# دليل الموظفين\n\nمدة الإجازة ثلاثون يوما في السنة.\n", `{"acl": ["user:root", "group:a-group-with-a-very-long-name-that-does-not-end"]}`)
	x.upload("ann", "/documents/upload", []file{{"broken.pdf", "%PDF-1.7 and no more"}}, "collection", "handbook", "access", "everyone")
	if err := x.session("root").AddSource(t.Context(), engine.NewSource{Name: "notes", Kind: "folder", Target: folder, Collection: "team"}); err != nil {
		t.Fatal(err)
	}
	x.post("root", "/sources/notes/sync", nil)
	for i := range 12 {
		if err := os.Remove(filepath.Join(folder, fmt.Sprintf("note-%02d.md", i))); err != nil {
			t.Fatal(err)
		}
	}
	x.post("root", "/sources/notes/sync", nil) // deletes nothing
	for name, o := range variants {
		t.Run(name, func(t *testing.T) {
			p := x.browser(t, "root", o)
			p.Expect("status of 400")
			for _, path := range []string{
				"/documents", "/documents?collection=handbook", "/documents?collection=handbook&name=none", "/documents/failed", "/documents/upload?collection=handbook",
				"/search", "/search?q=" + url.QueryEscape("days of leave"), "/search?q=xylophone", "/search?q=leave&filter=" + url.QueryEscape("team ="),
				"/sources", "/sources/notes", "/source-kinds", "/source-kinds/git",
			} {
				p.Go(x.url + path)
				p.Eval(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`, nil)
				checkLayout(t, p, path)
				if o.Width != 0 {
					p.Resize(320, 640)
					checkWidth(t, p, path)
					p.Resize(o.Width, o.Height)
				}
				if dir := os.Getenv("ASSAY_PICTURES"); dir != "" {
					p.Save(filepath.Join(dir, name+"-"+url.PathEscape(path)+".png"))
				}
			}
		})
	}
}

// sample returns a file of a folder of the shared documents.
func sample(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(os.Getenv("ASSAY_TESTDATA"), "data", "parsing", name)
	if _, err := os.Stat(file); err != nil {
		t.Skip("ASSAY_TESTDATA has no documents")
	}
	return file
}

// TestChromiumUpload drops documents and a folder on the page, and sees the progress and the outcome of
// each.
func TestChromiumUpload(t *testing.T) {
	t.Parallel()
	pdf, word := sample(t, "pdf/sources/normal_4pages.pdf"), sample(t, "docx/sources/word_sample.docx")
	folder := filepath.Join(t.TempDir(), "minutes")
	for i := range 5 {
		name := filepath.Join(folder, "year", fmt.Sprintf("%d.md", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, name, fmt.Sprintf("# Minutes %d\n\nDecision number %d.\n", i, i))
	}
	exe := filepath.Join(t.TempDir(), "<img src=x onerror=alert(1)>.exe")
	writeFile(t, exe, "MZ\x00\x01\x02")
	x := newSite(t)
	p := x.browser(t, "ann", browsertest.Options{})
	p.Go(x.url + "/documents/upload?collection=reports")
	p.Drop("#drop", pdf, word, exe, folder)
	p.WaitText("#summary", "7 of 8 stored, 1 refused.")
	checkLayout(t, p, "/documents/upload")
	if got := p.Text("[data-state=refused] .result"); got == "" || p.Count(".upload-row") != 8 {
		t.Errorf("%d rows, the refused one says %q", p.Count(".upload-row"), got)
	}
	contains(t, x.page("ann", "/documents?collection=reports"), "minutes/year/4.md", "normal_4pages.pdf", "word_sample.docx")
	if dir := os.Getenv("ASSAY_PICTURES"); dir != "" {
		p.Save(filepath.Join(dir, "upload.png"))
	}

	p.Drop("#drop", filepath.Join(folder, "year"), word) // word_sample.docx is taken, year/… is new
	p.WaitText("#summary", "12 of 14 stored, 1 would replace a stored document, 1 refused.")
	p.Click("[data-state=asking] [data-do=replace]")
	p.WaitText("#summary", "13 of 14 stored, 1 refused.")
	if got := p.Attr("[data-state=stored] .result a", "href"); !strings.HasPrefix(got, "/documents/") {
		t.Errorf("the outcome leads to %q", got)
	}
}

// TestChromiumUploadOffline checks that a file whose connection breaks can be sent again, and that one
// which waits for a confirmation can be cancelled.
func TestChromiumUploadOffline(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	plan := filepath.Join(t.TempDir(), "plan.md")
	writeFile(t, plan, "# Plan\n\nThe plan of the team.\n")
	p := x.browser(t, "ann", browsertest.Options{})
	p.Expect("ERR_INTERNET_DISCONNECTED")
	p.Go(x.url + "/documents/upload?collection=team")
	p.Offline(true)
	p.Drop("#drop", plan)
	p.WaitText("#summary", "0 of 1 stored, 1 refused.")
	if got := p.Text("[data-state=refused] .progress-state"); !strings.Contains(got, "The connection broke.") {
		t.Errorf("without a connection: %q", got)
	}
	p.Offline(false)
	p.Click("[data-do=retry]")
	p.WaitText("#summary", "1 of 1 stored.")
	p.Drop("#drop", plan)
	p.WaitText("[data-state=asking] .progress-state", "Replaces version")
	p.Click("[data-state=asking] [data-do=cancel]")
	p.WaitText("[data-state=cancelled] .progress-state", "Cancelled")
}

// TestChromiumUploadMany drops a folder of many files.
func TestChromiumUploadMany(t *testing.T) {
	t.Parallel()
	n := 60
	if os.Getenv("ASSAY_LONG") != "" {
		n = 1000
	}
	folder := filepath.Join(t.TempDir(), "many")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		writeFile(t, filepath.Join(folder, fmt.Sprintf("%04d.md", i)), fmt.Sprintf("# Note %d\n\nText of the note %d.\n", i, i))
	}
	x := newSite(t)
	p := x.browser(t, "ann", browsertest.Options{})
	p.Go(x.url + "/documents/upload?collection=team")
	p.Drop("#drop", folder)
	done := fmt.Sprintf("%d of %d stored.", n, n)
	for deadline := time.Now().Add(5 * time.Minute); p.Text("#summary") != done; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 5 minutes: %s", p.Text("#summary"))
		}
	}
}

func TestChromiumUploadForm(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	first, second := filepath.Join(t.TempDir(), "first.md"), filepath.Join(t.TempDir(), "second.md")
	writeFile(t, first, "# First\n\nThe first document.\n")
	writeFile(t, second, "# Second\n\nThe second document.\n")
	p := x.browser(t, "ann", browsertest.Options{NoScript: true})
	p.Expect("status of 400")
	p.Go(x.url + "/documents/upload?collection=plain")
	p.Click("#upload button[type=submit]")
	p.WaitText("#files-error", "Choose at least one file.")
	p.SetFiles("#files", first, second)
	p.Click("#upload button[type=submit]")
	p.WaitText("#outcomes", "2 files stored")
	if got := p.Attr(".outcome a", "href"); !strings.HasPrefix(got, "/documents/") {
		t.Errorf("the outcome leads to %q", got)
	}
}

// TestChromiumSearch searches by keyboard and follows a passage into its document.
func TestChromiumSearch(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	both(t, func(t *testing.T, o browsertest.Options) {
		p := x.browser(t, "ann", o)
		p.Go(x.url + "/search")
		p.Fill("#q", "days of leave")
		p.Press("Enter")
		p.WaitText("h2 a", "Leave")
		if got := p.Text("mark"); got == "" {
			t.Error("no word is marked")
		}
		if o.NoScript {
			return
		}
		p.Press("j")
		var at string
		p.Eval("document.activeElement.closest('.hit')?.id ?? ''", &at)
		if at != "hit-1" {
			t.Errorf("the key j leads to %q", at)
		}
		p.Click("#hit-1 summary")
		if p.Count("#hit-1 meter") < 3 {
			t.Error("the scores are not explained")
		}
	})
}

// TestChromiumSync syncs a source, and deletes what a sync has held back.
func TestChromiumSync(t *testing.T) {
	t.Parallel()
	x, folder := folderSite(t, 20)
	p := x.browser(t, "root", browsertest.Options{})
	p.Go(x.url + "/source-kinds/folder")
	p.Fill("#name", "notes")
	p.Fill("#target", folder)
	p.Fill("#collection", "team")
	p.Click("form.card button")
	p.WaitText("h1", "notes")
	p.Click("form.card button.main")
	p.WaitText("table td:last-child", "20")
	for i := range 12 {
		if err := os.Remove(filepath.Join(folder, fmt.Sprintf("note-%02d.md", i))); err != nil {
			t.Fatal(err)
		}
	}
	p.Click("form.card button.main")
	p.WaitText(".syncing p", "nothing was deleted")
	p.Click(".syncing a")
	p.WaitText("#held", "Nothing was deleted")
	p.Axe(t)
	p.Click(".notice input[type=checkbox]")
	p.Click(".notice button")
	p.WaitGone("#held")
	p.WaitText("table td:last-child", "8")
}
