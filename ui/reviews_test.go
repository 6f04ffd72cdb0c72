package ui

import (
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/server"
)

const waitingQuestion = "Who approves travel to a customer?"

// reviewSite opens a site on which every answer of a policy waits, and ann's question does.
func reviewSite(t *testing.T, p review.Policy, options ...option) (*site, string) {
	t.Helper()
	x := newSite(t, options...)
	if p.Name == "" {
		p.Name, p.Always = "travel-policy", true
	}
	if err := x.session("root").SetPolicy(t.Context(), p, "a test"); err != nil {
		t.Fatal(err)
	}
	return x, x.askWaiting("ann", waitingQuestion)
}

// askWaiting asks a question whose answer must wait, and returns its run.
func (x *site) askWaiting(user, question string) string {
	x.t.Helper()
	a, err := x.session(user).Answer(x.t.Context(), engine.Request{Question: question, NoCache: true})
	if err != nil || a.Status != assay.PendingReview {
		x.t.Fatalf("the answer is %s, %v; want one that waits", a.Status, err)
	}
	return a.Run
}

// reviewer adds a reviewer to acme.
func (x *site) reviewer(name string, groups ...string) {
	x.t.Helper()
	system, err := x.store.System(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	defer closeTest(x.t, system)
	_, text, err := identity.NewKeys(system, nil).Create(x.t.Context(), assay.Local(), identity.KeySpec{
		Tenant: "acme", User: name, Groups: groups, Roles: []identity.RoleIn{{Role: identity.Reviewer}},
	})
	if err != nil {
		x.t.Fatal(err)
	}
	x.keys[name] = text
}

// must fails unless a reply has a status and all of the words.
func (r reply) must(t testing.TB, status int, words ...string) reply {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d: %s", r.Request.Method, r.Request.URL.Path, r.StatusCode, status, r.body)
	}
	for _, w := range words {
		if !strings.Contains(r.body, w) {
			t.Errorf("%s %s lacks %q: %s", r.Request.Method, r.Request.URL.Path, w, r.body)
		}
	}
	return r
}

// lacks fails if a reply has one of the words.
func (r reply) lacks(t testing.TB, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(r.body, w) {
			t.Errorf("%s %s has %q", r.Request.Method, r.Request.URL.Path, w)
		}
	}
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// hidden returns the value of a hidden field of a page.
func (r reply) hidden(t testing.TB, name string) string {
	t.Helper()
	for _, m := range hiddenField.FindAllStringSubmatch(r.body, -1) {
		if m[1] == name {
			return html.UnescapeString(m[2])
		}
	}
	t.Fatalf("no hidden field %s: %s", name, r.body)
	return ""
}

// TestReviewQueue checks who sees which reviews, and the marks of each.
func TestReviewQueue(t *testing.T) {
	t.Parallel()
	x, run := reviewSite(t, review.Policy{})
	x.get("rae", "/reviews").must(t, http.StatusOK, waitingQuestion, "/reviews/"+run, "ann", "travel-policy", "1 waiting", "Reviews (1)", "free")
	x.get("zed", "/reviews").must(t, http.StatusOK, "No answer waits for you").lacks(t, run, waitingQuestion)
	x.get("rob", "/reviews").must(t, http.StatusForbidden).lacks(t, run, waitingQuestion)
	x.get("rae", "/reviews?policy=other").must(t, http.StatusOK, "No answer waits because of this policy").lacks(t, run)
	x.get("rae", "/reviews?policy=travel-policy&page=99").must(t, http.StatusOK, run)
	x.get("rae", "/reviews?show=decided").must(t, http.StatusOK, "No review has been decided").lacks(t, run)
	x.post("rae", "/reviews/"+run+"/claim", nil).must(t, http.StatusSeeOther)
	x.get("rae", "/reviews").must(t, http.StatusOK, "yours until")
	x.get("root", "/reviews").must(t, http.StatusOK, "<bdi>rae</bdi> until")
}

// TestReviewPages checks that long queues have pages.
func TestReviewPages(t *testing.T) {
	t.Parallel()
	p := newListPager("/reviews", url.Values{"policy": {"a&b"}}, "2", 120, 50)
	if p.From != 50 || p.To != 100 || p.Before != "/reviews?page=1&policy=a%26b" || p.Behind != "/reviews?page=3&policy=a%26b" {
		t.Errorf("%+v", p)
	}
	for number, want := range map[string][2]int{"": {0, 50}, "-1": {0, 50}, "x": {0, 50}, "3": {100, 120}, "9": {100, 120}} {
		if p := newListPager("/", url.Values{}, number, 120, 50); p.From != want[0] || p.To != want[1] {
			t.Errorf("page %q: %+v", number, p)
		}
	}
	if p := newListPager("/", url.Values{}, "1", 0, 50); p.From != 0 || p.To != 0 || p.Behind != "" {
		t.Errorf("no entries: %+v", p)
	}
}

// TestReviewDraft checks that a draft is shown with its claims, quotes and reasons, and marked as seen.
func TestReviewDraft(t *testing.T) {
	t.Parallel()
	x, run := reviewSite(t, review.Policy{})
	page := x.get("rae", "/reviews/"+run).must(t, http.StatusOK,
		waitingQuestion, `class="claim good"`, "Supported", "score ", "<mark>Travel to a customer is approved by the head of the department.</mark>",
		"every answer waits", "travel-policy", "0 of 1", "Claim this review", `href="/documents/`, "version <code>")
	page.lacks(t, "Approve this text", "Reject this answer")
	x.get("zed", "/reviews/"+run).must(t, http.StatusNotFound).lacks(t, "customer")
	x.get("rob", "/reviews/"+run).must(t, http.StatusForbidden).lacks(t, "customer is approved")
	x.get("", "/reviews/"+run).must(t, http.StatusSeeOther)
	if loc := x.get("", "/reviews/"+run).Header.Get("Location"); loc != "/sign-in?to=%2Freviews%2F"+run {
		t.Errorf("Location = %q", loc)
	}
	own := x.askWaiting("root", waitingQuestion)
	x.get("root", "/reviews/"+own).must(t, http.StatusForbidden, "You asked this question. Another person reviews its answer.").lacks(t, "head of the department")
}

// TestReviewHidden checks that a reviewer who may not see the documents sees nothing of the draft.
func TestReviewHidden(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	x, _ := reviewSite(t, review.Policy{}, func(h *engine.HostConfig, _ *server.Config) { h.Folders = append(h.Folders, folder) })
	for name, text := range map[string]string{
		"secret.md": "# Merger\n\nThe merger with Globex is led by Ada Stern.", "secret.md.metadata.json": `{"acl": ["group:board"]}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := x.session("root").Ingest(t.Context(), engine.IngestRequest{Paths: []string{folder}, Collection: "board"}); err != nil {
		t.Fatal(err)
	}
	run := x.askWaiting("bob", "Who leads the merger with Globex?")
	x.get("rae", "/reviews/"+run).must(t, http.StatusOK, "that you may not see", "you cannot claim it").lacks(t, "Ada Stern", "Claim this review", "secret.md")
	x.post("rae", "/reviews/"+run+"/claim", nil).must(t, http.StatusForbidden, "that you may not see").lacks(t, "Ada Stern")
	x.get("root", "/reviews/"+run).must(t, http.StatusOK, "Ada Stern")
}

// TestReviewGroup checks the page for a reviewer of another group.
func TestReviewGroup(t *testing.T) {
	t.Parallel()
	x, run := reviewSite(t, review.Policy{Name: "law", Always: true, Reviewers: "legal"})
	x.reviewer("lea", "legal", "staff")
	x.get("rae", "/reviews/"+run).must(t, http.StatusForbidden, "Only members of a certain group review this answer", "legal").lacks(t, "head of the department")
	x.get("rae", "/reviews").must(t, http.StatusOK).lacks(t, run)
	x.get("lea", "/reviews/"+run).must(t, http.StatusOK, "head of the department")
}

// TestApprove claims and approves an answer, with another reviewer at the same time.
func TestApprove(t *testing.T) {
	t.Parallel()
	x, run := reviewSite(t, review.Policy{})
	x.reviewer("sam", "staff")
	path := "/reviews/" + run
	x.post("rae", path+"/approve", url.Values{"text": {""}}).must(t, http.StatusConflict, "The text has changed since you saw it")
	x.post("rae", path+"/claim", url.Values{"minutes": {"nine"}}).must(t, http.StatusBadRequest)
	x.post("rae", path+"/claim", url.Values{"minutes": {"999"}}).must(t, http.StatusBadRequest)
	r := x.post("rae", path+"/claim", url.Values{"minutes": {"60"}})
	if r.must(t, http.StatusSeeOther); r.Header.Get("Location") != path {
		t.Errorf("Location = %q", r.Header.Get("Location"))
	}
	seen := x.get("rae", path).must(t, http.StatusOK, "yours until", "Approve this text", "Reject this answer", "Give back", "Renew")
	x.get("sam", path).must(t, http.StatusOK, "Another reviewer holds this review", "<bdi>rae</bdi> until").lacks(t, "Approve this text", "Claim this review")
	for _, act := range []string{"claim", "release", "approve"} {
		x.post("sam", path+"/"+act, url.Values{"text": {seen.hidden(t, "text")}}).must(t, http.StatusConflict, "rae holds this review until")
	}
	x.post("sam", path+"/reject", url.Values{"reason": {"no, because"}}).must(t, http.StatusConflict, "rae holds this review until")
	x.post("rae", path+"/release", nil).must(t, http.StatusSeeOther)
	x.post("rae", path+"/approve", url.Values{"text": {seen.hidden(t, "text")}}).must(t, http.StatusBadRequest, "Claim the review first.")
	x.post("rae", path+"/claim", nil).must(t, http.StatusSeeOther)
	r = x.post("rae", path+"/approve", url.Values{"text": {seen.hidden(t, "text")}})
	if r.must(t, http.StatusSeeOther); r.Header.Get("Location") != "/reviews" {
		t.Errorf("Location = %q", r.Header.Get("Location"))
	}
	x.get("rae", "/reviews").must(t, http.StatusOK, "The answer is approved").lacks(t, run)
	x.get("sam", "/reviews?show=decided").must(t, http.StatusOK, run, "Approved", "rae")
	x.get("sam", path).must(t, http.StatusOK, "Approved", "by <bdi>rae</bdi>", "The asker sees the draft.").lacks(t, "Claim this review")
	x.post("sam", path+"/claim", nil).must(t, http.StatusBadRequest, "The review was decided meanwhile: approved.")
	if a, err := x.session("ann").Await(t.Context(), run); err != nil || a.Status != assay.Answered {
		t.Errorf("the answer is %s, %v", a.Status, err)
	}
}

// TestReject checks that a rejection needs a reason, which is kept when something fails.
func TestReject(t *testing.T) {
	t.Parallel()
	x, run := reviewSite(t, review.Policy{})
	path := "/reviews/" + run
	x.post("rae", path+"/reject", url.Values{"reason": {"too early <b>"}}).must(t, http.StatusBadRequest, "Claim the review first.")
	x.post("rae", path+"/claim", nil).must(t, http.StatusSeeOther)
	x.post("rae", path+"/reject", url.Values{"reason": {" "}}).must(t, http.StatusBadRequest, "Write why. The asker sees it.", `aria-invalid="true"`, "reason-bad")
	long := strings.Repeat("ü", engine.MaxReviewReason)
	x.post("rae", path+"/reject", url.Values{"reason": {long}}).must(t, http.StatusBadRequest, "more than 4.1 kB", long)
	x.post("rae", path+"/reject", url.Values{"reason": {`<script>alert(1)</script> الجواب قديم`}}).must(t, http.StatusSeeOther)
	x.get("rae", path).must(t, http.StatusOK, "Rejected", "&lt;script&gt;alert(1)&lt;/script&gt; الجواب قديم").lacks(t, "<script>alert")
	a, err := x.session("ann").Await(t.Context(), run)
	if err != nil || a.Status != assay.Rejected || !strings.Contains(a.Text, "الجواب قديم") {
		t.Errorf("the answer is %+v, %v", a, err)
	}
}

// TestEditDraft edits a draft: the text is verified, compared, and only then stored.
func TestEditDraft(t *testing.T) {
	t.Parallel()
	x, run := reviewSite(t, review.Policy{})
	path := "/reviews/" + run
	x.get("rae", path+"/edit").must(t, http.StatusBadRequest, "Claim the review first.")
	x.post("rae", path+"/claim", nil).must(t, http.StatusSeeOther)
	form := x.get("rae", path+"/edit").must(t, http.StatusOK, "Travel to a customer is approved by the head of the department. [1]", "Passages that you can cite", "Verify this text")
	base := form.hidden(t, "base")
	x.post("rae", path+"/edit", url.Values{"base": {base}, "text": {" \r\n"}}).must(t, http.StatusBadRequest, "The text is empty.", `aria-invalid="true"`)
	long := strings.Repeat("ä", engine.MaxReviewText/2) + "."
	x.post("rae", path+"/edit", url.Values{"base": {base}, "text": {long}}).must(t, http.StatusBadRequest, "are possible", long)

	const text = "Travel to a customer is approved by the head of the department. [1]\r\n\r\nFür Züge <i>gilt</i> das nicht. 🏔️"
	checked := x.post("rae", path+"/edit", url.Values{"base": {base}, "text": {text}}).must(t, http.StatusOK,
		"Verified again", "The documents do not support 1 statement.", "Changed statement", "Reviewer&#39;s statement", "<ins>", "added: ",
		"Für Züge &lt;i&gt;gilt&lt;/i&gt; das nicht. 🏔️", "Approve this text")
	checked.lacks(t, "<i>gilt")
	x.get("rae", path).must(t, http.StatusOK).lacks(t, "Züge") // nothing is stored yet
	got := checked.hidden(t, "text")
	if want := strings.ReplaceAll(text, "\r\n", "\n"); got != want {
		t.Errorf("the text to save is %q, want %q", got, want)
	}
	x.post("rae", path+"/save", url.Values{"base": {base}, "text": {got}}).must(t, http.StatusSeeOther)
	x.get("ann", "/sign-out").must(t, http.StatusMethodNotAllowed)
	a, err := x.session("ann").Await(t.Context(), run)
	if err != nil || a.Status != assay.Incomplete || !strings.Contains(a.Text, "(statement of the reviewer rae)") || !slices.Contains(a.Oversight.By, "rae") {
		t.Errorf("the answer is %+v, %v", a, err)
	}
	x.get("rae", path).must(t, http.StatusOK, "Edited", "Changes of the reviewer", "Stated by <bdi>rae</bdi>")
	x.get("rae", path+"/edit").must(t, http.StatusConflict, "The review was decided meanwhile: edited.")
}

// TestEditMeanwhile checks that no text is lost or overwritten when another reviewer is faster.
func TestEditMeanwhile(t *testing.T) {
	t.Parallel()
	clock := newClock()
	x, run := reviewSite(t, review.Policy{Name: "four-eyes", Always: true, Approvals: 2}, clock.option)
	x.reviewer("sam", "staff")
	x.reviewer("tim", "staff")
	path := "/reviews/" + run
	x.post("rae", path+"/claim", nil).must(t, http.StatusSeeOther)
	base := x.get("rae", path+"/edit").hidden(t, "base")
	const mine = "Travel to a customer is approved by the head of the department. [1] Ask rae."
	clock.add(time.Hour) // the claim expires
	x.post("rae", path+"/edit", url.Values{"base": {base}, "text": {mine}}).must(t, http.StatusOK, "Verified again", "yours until")
	clock.add(time.Hour)
	x.post("sam", path+"/claim", nil).must(t, http.StatusSeeOther)
	x.post("rae", path+"/edit", url.Values{"base": {base}, "text": {mine}}).must(t, http.StatusConflict, "sam holds this review until", "Ask rae.")
	const theirs = "Travel to a customer is approved by the head of the department. [1] Ask sam."
	checked := x.post("sam", path+"/edit", url.Values{"base": {base}, "text": {theirs}}).must(t, http.StatusOK, "Earlier approvals end")
	x.post("sam", path+"/save", url.Values{"base": {base}, "text": {checked.hidden(t, "text")}}).must(t, http.StatusSeeOther)
	x.get("sam", path).must(t, http.StatusOK, "you have approved it", "1 approval of another reviewer is missing", "Decisions so far").lacks(t, "Claim this review")
	x.post("sam", path+"/claim", nil).must(t, http.StatusForbidden, "another reviewer must")
	x.post("rae", path+"/save", url.Values{"base": {base}, "text": {mine}}).must(t, http.StatusConflict, "Another reviewer has changed the draft", "Ask rae.", "From your text to the present draft")
	x.post("tim", path+"/claim", nil).must(t, http.StatusSeeOther)
	x.get("tim", path+"/edit").must(t, http.StatusOK, "Ask sam.").lacks(t, "(statement of the reviewer sam)</textarea>")
	seen := x.get("tim", path).must(t, http.StatusOK, "1 of 2", "<bdi>sam</bdi>")
	x.post("tim", path+"/approve", url.Values{"text": {seen.hidden(t, "text")}}).must(t, http.StatusSeeOther)
	a, err := x.session("ann").Await(t.Context(), run)
	if err != nil || !slices.Equal(a.Oversight.By, []string{"sam", "tim"}) {
		t.Errorf("the answer is %+v, %v", a, err)
	}
}

// TestReviewDeadline checks what is shown when a deadline has passed.
func TestReviewDeadline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reject bool
		path   string
		want   []string
	}{
		"escalates": {false, "/reviews", []string{"overdue", "escalated"}},
		"rejects":   {true, "/reviews?show=decided", []string{"Expired"}},
	} {
		clock := newClock()
		x, run := reviewSite(t, review.Policy{Name: "fast", Always: true, Deadline: time.Hour, EscalateTo: "heads", Reject: c.reject}, clock.option)
		x.get("rae", "/reviews").must(t, http.StatusOK, run).lacks(t, "overdue")
		clock.add(2 * time.Hour)
		page := x.get("rae", c.path).must(t, http.StatusOK, run)
		if c.reject {
			page.must(t, http.StatusOK, c.want...)
			x.get("rae", "/reviews/"+run).must(t, http.StatusOK, "The deadline passed without a decision", "no reviewer decided before the deadline")
			x.post("rae", "/reviews/"+run+"/claim", nil).must(t, http.StatusBadRequest, "The review was decided meanwhile: expired.")
			continue
		}
		page.must(t, http.StatusOK, c.want...)
		t.Log(name)
	}
}

// TestReviewErased checks the page of a review whose run was erased.
func TestReviewErased(t *testing.T) {
	t.Parallel()
	x, run := reviewSite(t, review.Policy{})
	path := "/reviews/" + run
	x.post("rae", path+"/claim", nil).must(t, http.StatusSeeOther)
	x.post("rae", path+"/reject", url.Values{"reason": {"it is out of date"}}).must(t, http.StatusSeeOther)
	if _, err := x.session("root").EraseRuns(t.Context(), []string{run}, "a request", false); err != nil {
		t.Fatal(err)
	}
	r := x.get("rae", path)
	r.lacks(t, "head of the department", "out of date")
	r.must(t, http.StatusNotFound, "This review is not there", "Its run may have been erased")
	for _, act := range []string{"claim", "release", "approve", "reject", "edit", "save"} {
		x.post("rae", path+"/"+act, url.Values{"text": {"x"}, "reason": {"x"}}).must(t, http.StatusNotFound, "This review is not there").lacks(t, "head of the department")
	}
	x.get("rae", path+"/edit").must(t, http.StatusNotFound, "This review is not there")
	x.get("rae", "/reviews?show=decided").must(t, http.StatusOK).lacks(t, run)
}

// A testClock is the time of a site, which reads it in goroutines of its own too.
type testClock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *testClock { return &testClock{at: time.Now().Truncate(time.Second)} }

func (c *testClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *testClock) option(h *engine.HostConfig, _ *server.Config) { h.Now = c.now }
