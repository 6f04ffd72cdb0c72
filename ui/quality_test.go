package ui

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/browsertest"
)

// notLinked are pages that no page links to: see their reasons.
var notLinked = map[string]string{
	"admin.keys.made":      "it shows a new key once",
	"admin.canaries.made":  "it shows a new canary once",
	"sign-in.provider":     "it needs an identity provider",
	"sign-in.callback":     "the identity provider leads to it",
	"run.share":            "a form leads to it",
	"shared":               "it needs a share",
	"labels.set":           "it needs a labelled question",
	"labels.export":        "it needs a labelled question",
	"document.original":    "it needs a document whose file is kept",
	"document.page":        "it needs a document with pages",
	"documents.upload.job": "it needs a queue",
	"run.diff":             "a form leads to it",
	"review.edit":          "a reviewer takes the draft first",
	"admin.vectors":        "a part of a page that a module loads",
	"evaluation.progress":  "a part of a page that a module loads",
	"evaluation.compare":   "it needs two evaluations",
}

// TestPagesAreReached follows the links of an administrator, a reviewer and an auditor: every page can be
// reached, none fails, and each keeps the rules of the Content-Security-Policy.
func TestPagesAreReached(t *testing.T) {
	t.Parallel()
	x, _, _ := newWorld(t, plain)
	reached := map[string]int{}
	for _, user := range []string{"root", "bob", "rae", "aud", "rob", ""} {
		for _, v := range x.crawl(user, 10) {
			reached[v.route.Name]++
			want := v.status == http.StatusOK || v.status == http.StatusSeeOther
			if user == "" && v.route.Call != "" { // to the page that signs in
				want = v.status == http.StatusSeeOther
			}
			if !want {
				t.Errorf("%s as %q: status %d: %s %s", v.path, user, v.status, notice(v.body), x.failure(v.status))
			}
			checkPolicy(t, v)
		}
	}
	for _, r := range Routes() {
		if r.Method == http.MethodGet && !r.Stream && reached[r.Name] == 0 && notLinked[r.Name] == "" {
			t.Errorf("no link leads to %s (%s)", r.Name, r.Path)
		}
	}
	t.Logf("%d pages of %d routes", sum(reached), len(reached))
}

func sum(m map[string]int) (n int) {
	for v := range maps.Values(m) {
		n += v
	}
	return n
}

// failure returns the end of the log after a failure of the server.
func (x *site) failure(status int) string {
	if status < http.StatusInternalServerError {
		return ""
	}
	text := x.log.String()
	return text[max(0, len(text)-1000):]
}

// notice returns the start of a page's text for a message.
func notice(body string) string {
	_, main, _ := strings.Cut(body, "<main")
	return strings.Join(strings.Fields(main[:min(len(main), 600)]), " ")
}

// checkPolicy checks the headers of a page, and that it has nothing that its policy forbids.
func checkPolicy(t *testing.T, v visit) {
	t.Helper()
	if got := v.header.Get("Content-Security-Policy"); got != policy {
		t.Errorf("%s: Content-Security-Policy %q", v.path, got)
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin"} {
		if got := v.header.Get(name); got != want {
			t.Errorf("%s: %s %q, want %q", v.path, name, got, want)
		}
	}
	if !strings.HasPrefix(v.header.Get("Content-Type"), "text/html") {
		return
	}
	if got := v.header.Get("Cache-Control"); v.status == http.StatusOK && got != "no-store" {
		t.Errorf("%s: Cache-Control %q", v.path, got)
	}
	ids := map[string]bool{}
	for n := range elements(t, v.body) {
		switch n.Data {
		case "script":
			if n.FirstChild != nil || !strings.HasPrefix(attribute(n, "src"), assetsPath) {
				t.Errorf("%s: a script in the page", v.path)
			}
		case "style", "base", "iframe", "object", "embed", "math", "foreignObject":
			t.Errorf("%s: an element <%s>", v.path, n.Data)
		}
		for _, a := range n.Attr {
			name, value := strings.ToLower(a.Key), strings.ToLower(strings.TrimSpace(a.Val))
			switch {
			case name == "style" || strings.HasPrefix(name, "on") || name == "srcdoc":
				t.Errorf("%s: <%s %s=%q>", v.path, n.Data, a.Key, a.Val)
			case (name == "href" || name == "src" || name == "action" || name == "formaction") && !ownOrWeb(n.Data, name, value):
				t.Errorf("%s: <%s %s=%q>", v.path, n.Data, a.Key, a.Val)
			case name == "id" && ids[a.Val]:
				t.Errorf("%s: two elements with the id %q", v.path, a.Val)
			case name == "id":
				ids[a.Val] = true
			}
		}
	}
}

// ownOrWeb reports whether an address leads to this server, or a link to the web.
func ownOrWeb(element, attribute, value string) bool {
	if strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "//") || strings.HasPrefix(value, "#") || strings.HasPrefix(value, "?") {
		return true
	}
	return element == "a" && attribute == "href" && (strings.HasPrefix(value, "https://") || strings.HasPrefix(value, "http://"))
}

// inParallel runs a check of pages in a few browsers of one user.
func inParallel(t *testing.T, x *site, user string, o browsertest.Options, visits []visit, check func(t *testing.T, p *browsertest.Page, v visit)) {
	t.Helper()
	const browsers = 2
	for i := range browsers {
		t.Run(fmt.Sprint(user, i), func(t *testing.T) {
			t.Parallel()
			p := x.browser(t, user, o)
			for j := i; j < len(visits); j += browsers {
				p.Go(x.url + visits[j].path)
				check(t, p, visits[j])
			}
		})
	}
}

// gateUsers are the users whose pages the gates check.
var gateUsers = []string{"root", "bob", "rae", "aud"}

// TestChromiumQuality checks all pages in a browser: axe-core finds no violation of WCAG 2.2 AA in the light
// and in the dark, wide and narrow; no page scrolls sideways between 320 and 2,560 pixels and at 200 %; the
// keyboard reaches every control and shows where it is.
func TestChromiumQuality(t *testing.T) {
	t.Parallel()
	browsertest.Start(t)
	x, _, _ := newWorld(t, plain)
	for user, visits := range onlyNew(x, gateUsers, 1) {
		inParallel(t, x, user, browsertest.Options{}, visits, func(t *testing.T, p *browsertest.Page, v visit) {
			checkAxe(t, p)
			for _, width := range []int{320, 640, 1280, 2560} { // 640 is 1,280 at 200 %
				p.Resize(width, 800)
				checkSideways(t, p, v, width)
			}
			p.Resize(1280, 800)
			checkKeyboard(t, p, v)
		})
	}
}

// checkAxe checks a page in both colour schemes and two widths.
func checkAxe(t *testing.T, p *browsertest.Page) {
	t.Helper()
	for _, dark := range []bool{false, true} {
		p.SetDark(dark)
		for _, width := range []int{360, 1280} {
			p.Resize(width, 800)
			p.Axe(t)
		}
	}
}

// onlyNew returns the pages of each user that users before do not have in the same state, at most so many
// of a route with the same parameters.
func onlyNew(x *site, users []string, most int) map[string][]visit {
	seen := map[string]bool{}
	found := map[string][]visit{}
	for _, user := range users {
		for _, v := range x.crawl(user, most) {
			isPage := v.status == http.StatusOK && strings.HasPrefix(v.header.Get("Content-Type"), "text/html")
			if isPage && !seen[v.path] {
				seen[v.path] = true
				found[user] = append(found[user], v)
			}
		}
	}
	return found
}

// checkSideways checks that a page does not scroll to the side, and names the elements that are too wide.
func checkSideways(t *testing.T, p *browsertest.Page, v visit, width int) {
	t.Helper()
	var wide []string
	p.Eval(`(() => {
		const root = document.documentElement;
		if (root.scrollWidth <= root.clientWidth) return [];
		const out = [...document.body.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > root.clientWidth + 1 && !e.closest(".scroll, pre"));
		return ["the page is " + root.scrollWidth + " wide", ...out.slice(0, 3).map(e => e.outerHTML.slice(0, 160))];
	})()`, &wide)
	if len(wide) > 0 {
		t.Errorf("%s at %d pixels: %q", v.path, width, wide)
	}
}

// checkKeyboard presses Tab through a page: each control that is shown gets the focus, in the order of the
// page, and is seen to have it.
func checkKeyboard(t *testing.T, p *browsertest.Page, v visit) {
	t.Helper()
	const controls = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter(e =>
		!e.disabled && e.type !== "hidden" && e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length > 0 &&
		!(e.type === "radio" && !e.checked && document.querySelector("input[type=radio][name='" + e.name + "']:checked") !== null))`
	var want int
	p.Eval(`{ window.__reached = new Set(); window.__begun = 0; document.activeElement?.blur(); getSelection().removeAllRanges(); `+controls+`.length }`, &want)
	const most = 60 // controls per page; a longer page repeats its rows
	var dates int   // which have three parts and a button
	p.Eval(`document.querySelectorAll("input[type=date], input[type=datetime-local]").length`, &dates)
	for range min(want, most) + 2 + 6*dates {
		p.PressOnly("Tab")
		var lost string
		p.Eval(`(() => {
			const e = document.activeElement;
			if (!e || e === document.body || window.__reached.has(e)) return "";
			window.__reached.add(e);
			const s = getComputedStyle(e), before = [...window.__reached].at(-2);
			if (!e.matches(":focus-visible") || (s.outlineStyle === "none" && s.boxShadow === "none")) return "the focus is not seen on " + e.outerHTML.slice(0, 160);
			const back = before && before.isConnected && !(before.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING);
			if (back && (!e.matches(".skip") || window.__begun++ > 0)) return "the focus goes back to " + e.outerHTML.slice(0, 160);
			return "";
		})()`, &lost)
		if lost != "" {
			t.Errorf("%s: %s", v.path, lost)
		}
	}
	if want > most {
		return
	}
	var missed []string
	p.Eval(controls+`.filter(e => !window.__reached.has(e)).map(e => e.outerHTML.slice(0, 160))`, &missed)
	if len(missed) > 0 {
		t.Errorf("%s: Tab does not reach %q", v.path, missed)
	}
}

// TestChromiumNoScript opens all pages in a browser that runs no scripts: each shows the same headings and
// controls that work without scripts.
func TestChromiumNoScript(t *testing.T) {
	t.Parallel()
	browsertest.Start(t)
	x, _, _ := newWorld(t, plain)
	inParallel(t, x, "root", browsertest.Options{NoScript: true}, onlyNew(x, []string{"root"}, perState)["root"], func(t *testing.T, p *browsertest.Page, v visit) {
		if !p.Has("main h1") {
			t.Errorf("%s has no heading", v.path)
		}
		var dead []string
		p.Eval(`[...document.querySelectorAll("button")].filter(e => e.checkVisibility() && e.form === null).map(e => e.outerHTML.slice(0, 160))`, &dead)
		if len(dead) > 0 {
			t.Errorf("%s: buttons that do nothing without scripts: %q", v.path, dead)
		}
	})
}
