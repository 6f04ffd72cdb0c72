package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/job"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/browsertest"
	"github.com/assay-rag/assay/store"
)

const (
	gardenQuestion = "What is the budget of the garden?"
	boardQuestion  = "What is the price of the tower?"
)

// addTower adds a document that everyone sees, and one that the board sees.
func (x *site) addTower() {
	x.t.Helper()
	for name, acl := range map[string]assay.ACL{"garden.md": {}, "price.md": {Restricted: true, Allow: []string{"group:board"}}} {
		text := map[string]string{
			"garden.md": "# Garden\n\nThe budget of the garden of <b>Yusuf is 512 crowns.",
			"price.md":  "# Price\n\nThe price of the tower is 88123 crowns.",
		}[name]
		d := assay.Document{ID: assay.DocumentID("tower", name), Collection: "tower", URI: name, Version: assay.DocumentVersion(text, nil, "test"), Text: text, Title: name, ACL: acl}
		c := assay.Chunk{ID: assay.ChunkID(d.ID, d.Version, 0), Document: d.ID, Version: d.Version, Kind: assay.ChunkProse, End: len(text), Tokens: len(text)}
		if err := x.session("root").Put(x.t.Context(), []store.Entry{{Document: d, Chunks: []assay.Chunk{c}}}); err != nil {
			x.t.Fatal(err)
		}
	}
}

// askTower asks a question as a user, whose answer must have a word, and returns the run.
func (x *site) askTower(user, question, want string) string {
	x.t.Helper()
	a, err := x.session(user).Answer(x.t.Context(), engine.Request{Question: question, Collections: []string{"tower"}})
	if err != nil || !strings.Contains(a.Text, want) {
		x.t.Fatalf("Answer(%s) = %s %q, %v", question, a.Status, a.Text, err)
	}
	return a.Run
}

var linkPattern = regexp.MustCompile(`value="(http://[^"]*/shared/[A-Z2-7]{26})"`)

// link makes a link to a run on its page and returns its path.
func (x *site) link(user, run string) string {
	x.t.Helper()
	r := x.post(user, "/runs/"+run+"/shares", url.Values{"days": {"7"}})
	m := linkPattern.FindStringSubmatch(r.body)
	if r.StatusCode != http.StatusOK || m == nil || !strings.HasPrefix(m[1], x.url) {
		x.t.Fatalf("make a link: status %d: %s", r.StatusCode, r.body)
	}
	return strings.TrimPrefix(m[1], x.url)
}

func (x *site) wantStatus(what string, r reply, status int, texts ...string) {
	x.t.Helper()
	if r.StatusCode != status {
		x.t.Errorf("%s: status %d, want %d: %.400s", what, r.StatusCode, status, r.body)
	}
	for _, text := range texts {
		if !strings.Contains(r.body, text) {
			x.t.Errorf("%s: the page lacks %q: %s", what, text, r.body)
		}
	}
}

// TestShared checks who reads a link, and that it stops when rights end.
func TestShared(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.addTower()
	run := x.askTower("bob", boardQuestion, "88123")
	path := x.link("bob", run)
	x.wantStatus("one of the board", x.get("root", path), http.StatusOK, "88123", "Shared by <bdi>bob</bdi>", boardQuestion, "supported claim, Source 1")
	if body := x.page("root", path); strings.Contains(body, `class="share"`) {
		t.Error("a reader of a link can share it")
	}
	r := x.get("ann", path)
	x.wantStatus("one who may not see the document", r, http.StatusForbidden, "This answer rests on documents that you may not see.")
	for _, secret := range []string{"88123", "price", "tower", run, "bob"} {
		if strings.Contains(r.body, secret) {
			t.Errorf("the page of one who may not see it has %q", secret)
		}
	}
	for user, status := range map[string]int{"zed": http.StatusNotFound, "": http.StatusSeeOther, "aud": http.StatusForbidden} {
		r := x.get(user, path)
		x.wantStatus("the user "+user, r, status)
		if strings.Contains(r.body, "88123") || strings.Contains(r.body, "price of") {
			t.Errorf("%q sees %s", user, r.body)
		}
	}
	x.wantStatus("another token", x.get("root", "/shared/AAAAAAAAAAAAAAAAAAAAAAAAAA"), http.StatusNotFound)
	x.wantStatus("another's run", x.post("root", "/runs/"+run+"/shares", nil), http.StatusNotFound)
	x.wantStatus("a life that is not offered", x.post("bob", "/runs/"+run+"/shares", url.Values{"days": {"9999"}}), http.StatusBadRequest)
	shares, err := x.session("bob").Shares(t.Context(), run)
	if err != nil || len(shares) != 1 {
		t.Fatal(shares, err)
	}
	if body := x.page("bob", "/runs/"+run+"/share"); strings.Contains(body, strings.TrimPrefix(path, "/shared/")) {
		t.Error("the token is shown again")
	}
	revoke := "/runs/" + run + "/shares/" + shares[0].ID + "/revoke"
	x.wantStatus("revoked by another", x.post("root", revoke, nil), http.StatusNotFound)
	x.wantStatus("revoked", x.post("bob", revoke, nil), http.StatusSeeOther)
	x.wantStatus("a revoked link", x.get("root", path), http.StatusNotFound)
}

// TestSharedMarkup checks that texts of a document are text on the page of a link.
func TestSharedMarkup(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.addTower()
	body := x.page("rob", x.link("ann", x.askTower("ann", gardenQuestion, "512")))
	if strings.Contains(body, "<b>") || !strings.Contains(body, "&lt;b&gt;Yusuf") {
		t.Errorf("the page is %s", body)
	}
}

// TestJudge judges an answer by the forms of an own run and of a link.
func TestJudge(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.addTower()
	run := x.askTower("ann", gardenQuestion, "512")
	link := x.link("ann", run)
	judge := func(user, base string, form url.Values) reply { return x.post(user, base+"/feedback", form) }
	r := judge("ann", "/runs/"+run, url.Values{"verdict": {"right"}})
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/runs/"+run+"#feedback" {
		t.Errorf("right: status %d to %s", r.StatusCode, r.Header.Get("Location"))
	}
	x.wantStatus("the own page", x.get("ann", "/runs/"+run+"/share"), http.StatusOK, `value="right" class="good" aria-pressed="true"`, "You said that this is right.")
	x.wantStatus("the link, before a judgement", x.get("rob", link), http.StatusOK, "Is this answer right?")
	x.wantStatus("wrong, by a link", judge("rob", link, url.Values{"verdict": {"wrong"}, "note": {"<i>no"}, "answer": {"513"}}), http.StatusSeeOther)
	x.wantStatus("the link", x.get("rob", link), http.StatusOK, `value="wrong" class="bad" aria-pressed="true"`, "&lt;i&gt;no", "513")
	x.wantStatus("a verdict alone keeps the note", judge("rob", link, url.Values{"verdict": {"not_asked"}}), http.StatusSeeOther)
	x.wantStatus("the link", x.get("rob", link), http.StatusOK, "&lt;i&gt;no")
	r = judge("rob", link, url.Values{"verdict": {"wrong"}, "note": {"kept"}, "answer": {"also kept"}, "document": {"garden.md"}, "quote": {"not there"}})
	x.wantStatus("words that are not there", r, http.StatusBadRequest, "does not have these words", "also kept", ">kept<", `name="quote" rows="2" dir="auto" aria-describedby="judge-quote-hint judge-problem" aria-invalid="true"`)
	r = judge("rob", link, url.Values{"verdict": {"wrong"}, "note": {""}, "document": {"price.md"}})
	x.wantStatus("a document that the user does not see", r, http.StatusBadRequest, "You see no document")
	x.wantStatus("no verdict", judge("ann", "/runs/"+run, nil), http.StatusBadRequest)
	x.wantStatus("another's run", judge("rob", "/runs/"+run, url.Values{"verdict": {"right"}}), http.StatusNotFound)
	x.wantStatus("another tenant", judge("zed", link, url.Values{"verdict": {"right"}}), http.StatusNotFound)
	x.wantStatus("withdrawn", x.post("rob", link+"/feedback/withdraw", nil), http.StatusSeeOther)
	x.wantStatus("withdrawn twice", x.post("rob", link+"/feedback/withdraw", nil), http.StatusSeeOther)
	x.wantStatus("the link, after that", x.get("rob", link), http.StatusOK, "Is this answer right?")
}

// TestRunActions checks the part that the page of a run has.
func TestRunActions(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.addTower()
	run := x.askTower("ann", gardenQuestion, "512")
	s := x.session("ann")
	r, _, err := s.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	render := func(r assay.Run) string {
		t.Helper()
		q := &request{pages: x.pages, r: req, session: s, grant: engine.SessionGrant(s)}
		text, err := q.text("run.html", "run-actions", struct {
			Run  assay.Run
			View view
		}{r, q.view("Ask", "A run", nil)})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := render(r); !strings.Contains(text, `action="/runs/`+run+`/feedback"`) || !strings.Contains(text, `action="/runs/`+run+`/shares"`) {
		t.Errorf("the part is %s", text)
	}
	if _, err := s.EraseRuns(t.Context(), []string{run}, "a test", false); err != nil {
		t.Fatal(err)
	}
	r.State = assay.RunErased
	if text := render(r); strings.TrimSpace(text) != "" {
		t.Errorf("the part of an erased run is %s", text)
	}
}

// TestLabels makes questions of feedback, by a click and by the form, and evaluates answers with them.
func TestLabels(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.addTower()
	right, wrong, secret := x.askTower("ann", gardenQuestion, "512"), x.askTower("rob", gardenQuestion, "512"), x.askTower("bob", boardQuestion, "88123")
	for user, j := range map[string]struct{ run, verdict string }{"ann": {right, "right"}, "rob": {wrong, "not_asked"}, "bob": {secret, "right"}} {
		x.wantStatus(j.verdict, x.post(user, "/runs/"+j.run+"/feedback", url.Values{"verdict": {j.verdict}, "note": {"of " + user}}), http.StatusSeeOther)
	}
	body := x.page("aud", "/labels")
	if strings.Contains(body, "88123") || strings.Contains(body, boardQuestion) || strings.Contains(body, "of bob") || !strings.Contains(body, "documents that you may not see") {
		t.Errorf("an auditor who may not see a document sees %s", body)
	}
	x.wantStatus("filtered", x.get("aud", "/labels?verdict=right"), http.StatusOK, gardenQuestion, "This answer and its citations are right.")
	if strings.Contains(x.page("aud", "/labels?verdict=right"), "of rob") {
		t.Error("the filter shows another verdict")
	}
	x.wantStatus("a user without the right", x.get("ann", "/labels"), http.StatusForbidden)

	click := func(run, user string) url.Values {
		return url.Values{"run": {run}, "user": {user}, "set": {"feedback"}, "by": {"click"}}
	}
	filtered := click(right, "ann")
	filtered.Set("back", "?verdict=right")
	r := x.post("aud", "/labels", filtered)
	if x.wantStatus("one click", r, http.StatusSeeOther); r.Header.Get("Location") != "/labels?verdict=right" {
		t.Errorf("one click leads to %s", r.Header.Get("Location"))
	}
	x.wantStatus("a second click", x.post("aud", "/labels", click(right, "ann")), http.StatusBadRequest, "has a question from it")
	x.wantStatus("a click without a label", x.post("aud", "/labels", click(wrong, "rob")), http.StatusBadRequest, "Say what is right", " open>")
	x.wantStatus("a click on what may not be seen", x.post("aud", "/labels", click(secret, "bob")), http.StatusForbidden)
	form := click(wrong, "rob")
	form.Del("by")
	form.Set("answers", "Nobody\nIt is not said")
	form.Set("document", "nowhere.md")
	x.wantStatus("a document that is not there", x.post("aud", "/labels", form), http.StatusBadRequest, "You see no document", "It is not said", "nowhere.md")
	form.Del("document")
	x.wantStatus("by the form", x.post("aud", "/labels", form), http.StatusSeeOther)
	x.wantStatus("one click of one who may see it", x.post("root", "/labels", click(secret, "bob")), http.StatusSeeOther)

	body = x.page("aud", "/labels/feedback")
	if strings.Contains(body, "88123") || !strings.Contains(body, "and 1 from documents that you may not see") || !strings.Contains(body, "It is not said") {
		t.Errorf("the set is %s", body)
	}
	x.wantStatus("another tenant", x.get("zed", "/labels/feedback"), http.StatusNotFound)
	x.wantStatus("labels of another tenant", x.post("zed", "/labels/feedback/"+right, url.Values{"answers": {"x"}}), http.StatusNotFound)
	x.wantStatus("labels changed to nothing", x.post("aud", "/labels/feedback/"+right, nil), http.StatusBadRequest, "tell the right outcome")
	x.wantStatus("labels changed", x.post("aud", "/labels/feedback/"+wrong, url.Values{"unanswerable": {"yes"}}), http.StatusSeeOther)

	r = x.get("root", "/labels/feedback/export")
	if got := r.Header.Get("Content-Disposition"); !strings.Contains(got, "questions.jsonl") {
		t.Errorf("Content-Disposition: %s", got)
	}
	var lines []json.RawMessage
	for line := range strings.Lines(r.body) {
		lines = append(lines, json.RawMessage(line))
	}
	set, err := testset.ParseCases("feedback", lines)
	if err != nil || len(set.Cases) != 3 || set.Labelled(0) != 3 {
		t.Fatalf("the set is read as %+v, %v: %s", set, err, r.body)
	}
	file := filepath.Join(t.TempDir(), "questions.jsonl") // as assay eval reads it
	if err := os.WriteFile(file, []byte(r.body), 0o600); err != nil {
		t.Fatal(err)
	}
	if set, err = testset.ReadDataset(file); err != nil || len(set.Cases) != 3 || set.Unseen != 0 {
		t.Errorf("the file is read as %+v, %v", set, err)
	}
	x.wantStatus("without the right to ask", x.post("aud", "/labels/feedback/evaluate", nil), http.StatusForbidden)
	x.evaluate("root", "/labels/feedback/evaluate")
	x.wantStatus("removed", x.post("aud", "/labels/feedback/"+right+"/remove", nil), http.StatusSeeOther)
	if body := x.page("aud", "/labels/feedback"); strings.Contains(body, right) {
		t.Error("the removed question is there")
	}
}

// evaluate starts an evaluation with a set of three questions, of which two answers are right, and checks
// its result.
func (x *site) evaluate(user, path string) {
	x.t.Helper()
	r := x.post(user, path, nil)
	id, ok := strings.CutPrefix(r.Header.Get("Location"), "/evaluations/")
	if r.StatusCode != http.StatusSeeOther || !ok {
		x.t.Fatalf("evaluate: status %d to %s: %s", r.StatusCode, r.Header.Get("Location"), r.body)
	}
	s := x.session(user)
	e, err := s.Evaluation(x.t.Context(), id)
	for err == nil && e.State == engine.EvaluationRunning {
		e, err = s.Evaluation(x.t.Context(), id)
	}
	var result job.Result
	if err == nil {
		err = json.Unmarshal(e.Result, &result)
	}
	if err != nil || e.State != engine.EvaluationDone {
		x.t.Fatalf("the evaluation: %+v, %v", e, err)
	}
	right := 0
	for _, q := range result.Questions {
		if q.Right {
			right++
		}
	}
	if len(result.Questions) != 3 || right != 2 { // the third was labelled as one without an answer
		x.t.Errorf("of the questions %d are right: %+v", right, result.Questions)
	}
}

// TestChromiumShare judges and shares an answer on its page, and makes a question of it.
func TestChromiumShare(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.addTower()
	both(t, func(t *testing.T, o browsertest.Options) {
		run := x.askTower("ann", gardenQuestion, "512")
		p := x.browser(t, "ann", o)
		p.Go(x.url + "/runs/" + run)
		p.Click(`[data-actions] button[value="right"]`)
		p.Wait(`[data-actions] button[value="right"][aria-pressed="true"]`)
		p.Click(`[data-actions] .share > summary`)
		p.Click(`[data-actions] .share-add button`)
		p.Wait("[data-link]")
		link := p.Value("[data-link]")
		if !o.NoScript {
			p.Axe(t)
			if p.URL() != x.url+"/runs/"+run {
				t.Errorf("making a link leads to %s", p.URL())
			}
		}
		reader := x.browser(t, "rob", o)
		reader.Expect("status of 404")
		reader.Expect("status of 400")
		reader.Go(link)
		reader.WaitText(".answer", "512")
		reader.Click(`[data-actions] button[value="wrong"]`)
		reader.Wait(`[data-actions] button[value="wrong"][aria-pressed="true"]`)
		if !reader.Has("#judge-quote") {
			reader.Click(".judge-more > summary")
		}
		reader.Fill("#judge-document", "garden.md")
		reader.Fill("#judge-quote", "not there")
		reader.Click(".judge-form button")
		reader.WaitText("#judge-problem", "does not have these words")
		if !o.NoScript {
			reader.Axe(t)
		}
		p.Click(`[data-actions] .confirm > summary`)
		p.Click(`[data-actions] .confirm button`)
		p.WaitGone(".share-list")
		reader.Go(link)
		reader.WaitText("h1", "Not found")

		labels := x.browser(t, "root", o)
		labels.Go(x.url + "/labels?verdict=right&unlabelled=yes")
		labels.Click(".label-make button")
		labels.WaitText("main .notice", "The question is in the set")
		labels.WaitText(".empty", "No feedback matches")
		labels.Go(x.url + "/labels/feedback")
		labels.WaitText(".label-entry", "512")
		if !o.NoScript {
			labels.Axe(t)
		}
	})
}

// TestChromiumSharedHidden checks the page of a link whose answer the user may not see.
func TestChromiumSharedHidden(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.addTower()
	link := x.link("bob", x.askTower("bob", boardQuestion, "88123"))
	for _, o := range []browsertest.Options{{}, {Dark: true, Width: 360}} {
		p := x.browser(t, "ann", o)
		p.Expect("status of 403")
		p.Go(x.url + link)
		p.WaitText("main", "documents that you may not see")
		p.Axe(t)
	}
}

// TestLongSet checks that the page of a set shows a part of many questions, and the part of a form that is
// wrong.
func TestLongSet(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	tenant, err := x.store.Tenant(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer closeTest(t, tenant)
	const n = questionsPerPage + 7
	for i := range n {
		run := fmt.Sprintf("run%03d", i)
		lease, err := tenant.Runs().Create(t.Context(), assay.Run{ID: run, Question: "?", Principal: assay.Principal{User: "ann"}})
		if err != nil {
			t.Fatal(err)
		}
		closeTest(t, lease)
		line := fmt.Appendf(nil, `{"id":%q,"question":"Question %03d?","unanswerable":true}`, run, i)
		q := store.Question{Set: "many", Run: run, Line: line}
		if err := tenant.Questions().Add(t.Context(), q, store.Act{Kind: "question.added", Actor: assay.Local()}); err != nil {
			t.Fatal(err)
		}
	}
	body := x.page("aud", "/labels/many")
	if shown := strings.Count(body, "label-entry"); shown != questionsPerPage || !strings.Contains(body, fmt.Sprint(n, " questions")) {
		t.Errorf("the page shows %d questions: %.500s", shown, body)
	}
	if body := x.page("aud", "/labels/many?page=2"); strings.Count(body, "label-entry") != 7 {
		t.Errorf("the second page shows %d questions", strings.Count(body, "label-entry"))
	}
	x.wantStatus("a form of the second page", x.post("aud", "/labels/many/run055", nil), http.StatusBadRequest, "Question 055?", "tell the right outcome")
}
