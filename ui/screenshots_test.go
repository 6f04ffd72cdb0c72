package ui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/browsertest"
	"github.com/assay-rag/assay/review"
)

// varying are the parts of pages that differ from run to run.
var varying = []browsertest.Mask{
	browsertest.Times,
	{Selector: ".step-time", Text: "12 ms"},
	{Selector: ".elapsed, [data-elapsed]", Text: "12 ms"},
	{Selector: "code.id, .run-id", Text: "aaaaaaaaaaaaaaaa"},
}

// languages are documents that are hard to show.
var languages = map[string]string{
	"urlaub.md": "# Urlaubsregelung der Straßenbahngesellschaft\n\nDie Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverordnung gilt für alle Beschäftigten. " +
		"Der Jahresurlaub beträgt 30 Tage.\n\n## Übertragung\n\nNicht genommener Urlaub verfällt am 31. März.\n",
	"ijaza.md": "# سياسة الإجازات\n\nمدة الإجازة السنوية ثلاثون يوما لكل موظف. يوافق مدير القسم على الإجازة.\n\n## السفر\n\nيسافر الموظفون في الدرجة الثانية، انظر Handbook 2024, section 4.2.\n",
	"words.md": "# " + strings.Repeat("unbreakable", 30) + "\n\nThe checksum of the archive is " + strings.Repeat("0123456789abcdef", 40) + ".\n",
}

// gallery opens a site with documents in several languages and a question of each outcome, and returns the
// paths of its pages by name.
func gallery(t *testing.T) (x *site, paths map[string]string) {
	t.Helper()
	x = newSite(t)
	admin := x.session("root")
	upload := func(collection, name, text string) {
		up, err := admin.Upload(t.Context(), engine.Upload{Collection: collection, Name: name, Body: strings.NewReader(text), Type: "text/markdown"})
		if err != nil {
			t.Fatal(err)
		}
		paths[name] = "/documents/" + up.Documents[0].ID
	}
	paths = map[string]string{"ask": "/", "runs": "/runs", "documents": "/documents", "search": "/search?q=leave", "reviews": "/reviews", "admin": "/admin", "unknown": "/no-such-page"}
	for name, text := range languages {
		upload("international", name, text)
	}
	var lines strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&lines, "Line %d of the log says that pump %d is in order.\n\n", i+1, i%97)
	}
	upload("logs", "long.md", "# A long log\n\n"+lines.String())
	upload("allowance", "old.md", "# Allowance\n\nThe daily allowance is 40 euros.\n")
	upload("allowance", "new.md", "# Allowance\n\nThe daily allowance is 55 euros.\n")
	for _, q := range []struct{ name, question, collection string }{
		{"answered", "How many days of annual leave does every employee have?", "handbook"},
		{"not found", "Who painted the ceiling of the canteen?", "handbook"},
		{"conflicting", "How high is the daily allowance?", "allowance"},
		{"german", "Wie viele Tage beträgt der Jahresurlaub?", "international"},
		{"arabic", "ما هي مدة الإجازة السنوية لكل موظف؟", "international"},
		{"long words", "What is the checksum of the archive?", "international"},
	} {
		paths[q.name] = x.ask("ann", q.question, "collection", q.collection)
	}
	if err := admin.SetPolicy(t.Context(), review.Policy{Name: "staff", Groups: []string{"staff"}}, "a test"); err != nil {
		t.Fatal(err)
	}
	paths["pending"] = x.ask("ann", "May leave be carried over to the next year?", "collection", "handbook")
	run, _, err := x.session("ann").Run(t.Context(), strings.TrimPrefix(paths["pending"], "/runs/"))
	if err != nil {
		t.Fatal(err)
	}
	if run.Answer == nil || run.Answer.Status != assay.PendingReview {
		t.Fatalf("the run does not wait for a review: %v", run.Answer)
	}
	paths["trace"] = paths["answered"] + "/trace"
	paths["review"] = "/reviews/" + strings.TrimPrefix(paths["pending"], "/runs/")
	return x, paths
}

// TestChromiumScreens compares pictures of the pages with the golden ones, which show the main states in the
// light and in the dark, on a desk and on a telephone.
func TestChromiumScreens(t *testing.T) {
	t.Parallel()
	browsertest.Start(t)
	x, paths := gallery(t)
	for _, s := range []struct {
		page, user string
		dark       bool
		width      int
	}{
		{"ask", "ann", false, 1280}, {"ask", "ann", true, 1280}, {"ask", "ann", false, 360},
		{"answered", "ann", false, 1280}, {"answered", "ann", true, 1280}, {"answered", "ann", false, 360},
		{"not found", "ann", false, 1280}, {"conflicting", "ann", false, 1280}, {"pending", "ann", false, 1280},
		{"german", "ann", false, 1280}, {"arabic", "ann", true, 1280}, {"arabic", "ann", false, 360}, {"long words", "ann", false, 360},
		{"documents", "ann", false, 1280}, {"documents", "ann", false, 360}, {"search", "ann", true, 1280}, {"long.md", "root", false, 1280}, {"ijaza.md", "ann", false, 1280},
		{"reviews", "rae", false, 1280}, {"admin", "root", false, 1280}, {"unknown", "ann", false, 1280},
	} {
		name := strings.ReplaceAll(strings.TrimSuffix(s.page, ".md"), " ", "-")
		if s.dark {
			name += "-dark"
		}
		if s.width < 600 {
			name += "-narrow"
		}
		t.Run(name, func(t *testing.T) {
			p := x.browser(t, s.user, browsertest.Options{Dark: s.dark, Width: s.width, ReducedMotion: true})
			p.Expect("status of 404")
			p.Go(x.url + paths[s.page])
			p.Shot(t, name, varying...)
		})
	}
}
