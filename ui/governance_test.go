package ui

import (
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/browsertest"
	"github.com/assay-rag/assay/internal/plot"
	"github.com/assay-rag/assay/store"
)

func TestGovernancePage(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	asked := time.Now().UTC().Format(time.DateOnly)
	id := x.answer("ann", tracedQuestion)
	body := x.page("aud", "/governance")
	hasTexts(t, body, "Outcomes", `class="plot"`, "Override rate", "Iterations, 99th percentile", "No figure is beyond its alert", `id="figure-complete_traces"`, "EU AI Act", "/governance/runs/"+id, "/api/v1/governance/report.html")
	if strings.Contains(body, tracedQuestion) {
		t.Error("the report has a question")
	}
	today := time.Now().UTC().Format(time.DateOnly) // which may have begun since then
	hasTexts(t, x.page("aud", "/governance?from="+asked+"&to="+today), "1 question", "report?from="+asked)
	hasTexts(t, x.page("aud", "/governance?to=2020-01-01"), "0 questions")
	for _, query := range []string{"from=yesterday", "from=2026-02-01&to=2026-01-01"} {
		r := x.get("aud", "/governance?"+query)
		if r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", query, r.StatusCode)
		}
		hasTexts(t, r.body, `id="period-error"`)
	}
	for _, user := range []string{"ann", "rob", "rae"} {
		for _, path := range []string{"", "/log", "/runs", "/runs/" + id, "/checkpoints", "/stop"} {
			if r := x.get(user, "/governance"+path); r.StatusCode != http.StatusForbidden {
				t.Errorf("%s of %s: status %d, want 403", path, user, r.StatusCode)
			}
		}
	}
	if r := x.get("zed", "/governance/runs/"+id); r.StatusCode != http.StatusNotFound {
		t.Errorf("a run of another tenant: status %d", r.StatusCode)
	}
	for _, path := range []string{"", "/log", "/runs"} {
		if strings.Contains(x.page("zed", "/governance"+path), id) {
			t.Errorf("%s shows a run of another tenant", path)
		}
	}
}

func TestAuditLogPage(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	id := x.answer("ann", tracedQuestion)
	if err := x.session("root").Stop(t.Context(), `a <b>test`); err != nil {
		t.Fatal(err)
	}
	if err := x.session("root").Start(t.Context(), "done"); err != nil {
		t.Fatal(err)
	}
	body := x.page("aud", "/governance/log")
	hasTexts(t, body, "A question was asked", "A run ended", "Everything was stopped", "a &lt;b&gt;test", id)
	for query, want := range map[string][2]string{
		"kind=stop.":          {"Everything was stopped", "A run ended"},
		"user=ann":            {"A question was asked", "Everything was stopped"},
		"object=" + id:        {"A run ended", "Everything was stopped"},
		"kind=record":         {"A step of a run was recorded", "A question was asked"},
		"to=2020-01-01":       {"No entry matches.", "A run ended"},
		"user=ann&kind=stop.": {"No entry matches.", "A run ended"},
	} {
		got := x.page("aud", "/governance/log?"+query)
		table, _, _ := strings.Cut(got[strings.Index(got, "</form>"):], "</main>")
		if !strings.Contains(table, want[0]) || strings.Contains(table, want[1]) {
			t.Errorf("%s: want %q and not %q", query, want[0], want[1])
		}
	}
	for range 60 {
		if err := x.session("root").SetCollection(t.Context(), store.Collection{Name: "handbook"}); err != nil {
			t.Fatal(err)
		}
	}
	first := x.page("aud", "/governance/log")
	at := strings.Index(first, `rel="next" href="`)
	if at < 0 {
		t.Fatal("a long log has no next page")
	}
	next, _, _ := strings.Cut(first[at+len(`rel="next" href="`):], `"`)
	hasTexts(t, x.page("aud", strings.ReplaceAll(next, "&amp;", "&")), "Newest entries", "A run ended")
}

func TestAuditRunsPage(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	id := x.answer("ann", tracedQuestion)
	x.answer("bob", "Who approves travel to a customer?")
	body := x.page("aud", "/governance/runs")
	hasTexts(t, body, "ann", "bob", id)
	if strings.Contains(body, "annual leave") {
		t.Error("the list has a question")
	}
	if only := x.page("aud", "/governance/runs?user=bob"); strings.Contains(only, id) {
		t.Error("the filter by user does not filter")
	}
	run := x.page("aud", "/governance/runs/"+id)
	hasTexts(t, run, "No checkpoint published", "Search", "ann")
	if strings.Contains(run, "annual leave") {
		t.Error("the run of another user has a text")
	}
}

func TestCheckpointsPage(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	hasTexts(t, x.page("aud", "/governance/checkpoints"), "No checkpoint was published yet", "assay audit key new audit.key --data DATA --tenant acme", "assay audit checkpoint --data DATA --tenant acme --key audit.key")
	signed := x.publish()
	hasTexts(t, x.page("aud", "/governance/checkpoints"), strconv.FormatInt(signed.Size, 10), "yes", "covers all but the entry that says that it was published")
	post := func(note, key string) reply {
		return x.post("aud", "/governance/checkpoints", url.Values{"note": {strings.ReplaceAll(note, "\n", "\r\n")}, "key": {key}})
	}
	hasTexts(t, post(string(signed.Note), signed.Keys[0]).body, "under this checkpoint are unaltered")
	for name, r := range map[string]reply{
		"no note":     post("", signed.Keys[0]),
		"no key":      post(string(signed.Note), "not a key"),
		"another":     post("not <b>a note", signed.Keys[0]),
		"a wrong one": post(strings.Replace(string(signed.Note), "assay-audit", "other-audit", 1), signed.Keys[0]),
	} {
		if r.StatusCode != http.StatusBadRequest || !strings.Contains(r.body, `id="compare-error"`) || strings.Contains(r.body, "not <b>a note") {
			t.Errorf("%s: status %d", name, r.StatusCode)
		}
	}
	x.alter(`UPDATE tree SET hash = zeroblob(32)`)
	hasTexts(t, x.page("aud", "/governance/checkpoints"), "another root")
	hasTexts(t, post(string(signed.Note), signed.Keys[0]).body, "unaltered") // the entries are
	x.alter(`UPDATE acts SET payload = replace(payload, 'root', 'ruth') WHERE payload LIKE '%root%'`)
	hasTexts(t, post(string(signed.Note), signed.Keys[0]).body, "The log does not hold what the checkpoint fixes.")
	for _, path := range []string{"", "/log"} {
		if r := x.get("aud", "/governance"+path); r.StatusCode == http.StatusOK || !strings.Contains(r.body, "The audit log was altered.") {
			t.Errorf("%s of an altered log: status %d", path, r.StatusCode)
		}
	}
}

func TestStopPage(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	hasTexts(t, x.page("root", "/governance/stop"), "This tenant runs", "end at their next step")
	r := x.post("root", "/governance/stop", nil)
	if r.StatusCode != http.StatusBadRequest {
		t.Errorf("without a reason: status %d", r.StatusCode)
	}
	hasTexts(t, r.body, `id="reason-error"`, `class="stop-switch" open`)
	for _, user := range []string{"ann", "aud", "rae"} {
		if r := x.post(user, "/governance/stop", url.Values{"reason": {"no"}}); r.StatusCode != http.StatusForbidden {
			t.Errorf("a stop of %s: status %d", user, r.StatusCode)
		}
	}
	if r = x.post("root", "/governance/stop", url.Values{"reason": {"a <i>leak"}}); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d: %s", r.StatusCode, r.body)
	}
	hasTexts(t, x.page("root", "/governance/stop"), "This tenant is stopped", "a &lt;i&gt;leak", "Start again")
	hasTexts(t, x.page("root", "/governance/log"), "This tenant is stopped", "a &lt;i&gt;leak")
	if _, err := x.session("ann").Begin(t.Context(), engine.Request{Question: "Who?"}); err == nil {
		t.Error("a question is accepted while the tenant is stopped")
	}
	if body := x.page("zed", "/governance/stop"); !strings.Contains(body, "This tenant runs") || strings.Contains(body, "leak") {
		t.Error("the stop of one tenant is shown to another")
	}
	if r = x.post("root", "/governance/start", url.Values{"reason": {"mended"}}); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d: %s", r.StatusCode, r.body)
	}
	if r = x.post("root", "/governance/start", url.Values{"reason": {"again"}}); r.StatusCode != http.StatusBadRequest {
		t.Errorf("a start without a stop: status %d", r.StatusCode)
	}
}

// TestDuties checks that the mapping has the words of the document.
func TestDuties(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/governance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range duties {
		for _, text := range []string{d.Demand, d.By} {
			if !strings.Contains(string(doc), text) {
				t.Errorf("docs/governance.md lacks %q", text)
			}
		}
	}
}

// TestPlotStyle checks that the style sheet has the rules of package plot.
func TestPlotStyle(t *testing.T) {
	t.Parallel()
	data, err := files.ReadFile("assets/css/40-plot.css")
	if err != nil || string(data) != plot.CSS {
		t.Errorf("40-plot.css differs from plot.CSS, %v", err)
	}
}

// TestEntryWords checks that each kind of act in docs/audit.md that a tenant's log can have is in words.
func TestEntryWords(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "<!-- acts -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	n := 0
	for line := range strings.Lines(table) {
		kinds, says, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !ok || !strings.HasPrefix(kinds, "`") || strings.Contains(says, "●") && strings.Contains(kinds, "key.") || strings.Contains(kinds, "tenant.") || strings.Contains(kinds, "index.") {
			continue
		}
		for kind := range strings.SplitSeq(kinds, ", ") {
			if kind = strings.Trim(kind, "`"); actWords(kind) == kind {
				t.Errorf("%s has no words", kind)
			}
			n++
		}
	}
	if n < 30 {
		t.Errorf("only %d kinds of acts were found", n)
	}
}

// TestChromiumGovernance stops and starts a tenant, and looks at the pages of the area.
func TestChromiumGovernance(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.answer("ann", tracedQuestion)
	x.publish()
	both(t, func(t *testing.T, o browsertest.Options) {
		p := x.browser(t, "root", o)
		for _, path := range []string{"", "/log", "/runs", "/checkpoints", "/stop"} {
			p.Go(x.url + "/governance" + path)
			if !o.NoScript {
				p.Axe(t)
			}
		}
		p.Click(".stop-switch summary")
		p.Fill("#reason", "a test")
		p.Click(".stop-switch button")
		p.WaitText(".stop-state", "This tenant is stopped")
		p.Go(x.url + "/governance")
		p.WaitText(".notice.bad", "This tenant is stopped")
		p.Go(x.url + "/governance/stop")
		p.Fill("#reason", "the test is over")
		p.Click(".card button.main")
		p.WaitText(".stop-state", "This tenant runs")
	})
}
