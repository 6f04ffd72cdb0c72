package ui

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/limit"
	"github.com/assay-rag/assay/review"
	"github.com/assay-rag/assay/store"
)

// adminPages are the pages of the area.
var adminPages = []string{
	"/admin", "/admin?checks=all", "/admin/vectors", "/admin/keys", "/admin/keys?all=1", "/admin/keys/new", "/admin/access", "/admin/limits",
	"/admin/limits/edit?subject=tenant", "/admin/policies", "/admin/policies/edit", "/admin/egress", "/admin/retention", "/admin/retention?try=1",
	"/admin/webhooks", "/admin/webhooks/edit", "/admin/webhooks/dead", "/admin/canaries", "/admin/backup",
}

// TestAdminPages checks that an administrator sees each page, and that others see neither the pages nor
// links to them.
func TestAdminPages(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	for _, path := range adminPages {
		body := x.page("root", path)
		if path != "/admin/vectors" && strings.Count(body, "<h1") != 1 {
			t.Errorf("%s has %d headings of the first level", path, strings.Count(body, "<h1"))
		}
		for _, user := range []string{"ann", "rob", "rae", "aud"} {
			if r := x.get(user, path); r.StatusCode != http.StatusForbidden || strings.Contains(r.body, `href="/admin`) {
				t.Errorf("%s as %s: status %d, want 403 and no links", path, user, r.StatusCode)
			}
		}
	}
	if body := x.page("ann", "/"); strings.Contains(body, "/admin") {
		t.Error("an editor sees a link to the area")
	}
	if tabs := strings.Count(x.page("root", "/admin"), `<a href="/admin`); tabs < len(adminAreas) {
		t.Errorf("the overview has %d links to the area", tabs)
	}
}

// TestAdminForms checks that nobody but an administrator sends the forms.
func TestAdminForms(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	n := 0
	for _, r := range adminRoutes() {
		if r.Method != http.MethodPost {
			continue
		}
		n++
		path := strings.NewReplacer("{id}", "aaaaaaaaaaaaaaaa").Replace(r.Path)
		for _, user := range []string{"ann", "rae", "aud"} {
			if got := x.post(user, path, url.Values{"reason": {"x"}}); got.StatusCode != http.StatusForbidden {
				t.Errorf("POST %s as %s: status %d", path, user, got.StatusCode)
			}
		}
	}
	if n < 15 {
		t.Errorf("there are %d forms", n)
	}
}

// wrote sends a form as root that must lead to a page with a notice, and returns that page.
func (x *site) wrote(path string, form url.Values, notice string) string {
	x.t.Helper()
	r := x.post("root", path, form)
	if r.StatusCode != http.StatusSeeOther {
		x.t.Fatalf("POST %s: status %d: %s", path, r.StatusCode, r.body)
	}
	body := x.page("root", r.Header.Get("Location"))
	if notice != "" && !strings.Contains(html.UnescapeString(body), notice) {
		x.t.Errorf("POST %s: the page does not say %q: %s", path, notice, body)
	}
	return body
}

// wrong sends a form as root that must be refused with a text and with what was typed.
func (x *site) wrong(path string, form url.Values, texts ...string) {
	x.t.Helper()
	r := x.post("root", path, form)
	if r.StatusCode < 400 || r.StatusCode >= 500 {
		x.t.Errorf("POST %s: status %d", path, r.StatusCode)
	}
	body := html.UnescapeString(r.body)
	for _, text := range texts {
		if !strings.Contains(body, text) {
			x.t.Errorf("POST %s: the page lacks %q: %s", path, text, body)
		}
	}
}

var keyText = regexp.MustCompile(`assay_[a-z2-7]{16}_[a-z2-7]{59}`)

// TestAdminKeys makes a key, uses it, replaces it and revokes it.
func TestAdminKeys(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.wrong("/admin/keys", url.Values{"expires": {"2099-99-99"}, "group": {"staff"}}, "Choose at least one role.", "not a date", `value="2099-99-99"`, `value="staff" checked`)
	x.wrong("/admin/keys", url.Values{"role": {"reader"}}, "Choose the last day")
	x.wrong("/admin/keys", url.Values{"role": {"reader"}, "never": {"yes"}, "group": {"crew"}}, "your own groups only")
	r := x.post("root", "/admin/keys", url.Values{"role": {"editor"}, "in-editor": {"handbook, other"}, "group": {"staff"}, "never": {"yes"}})
	if r.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d: %s", r.StatusCode, r.body)
	}
	made := r.Header.Get("Location")
	if zed := x.get("zed", made); zed.StatusCode != http.StatusGone {
		t.Errorf("another session sees the key: status %d", zed.StatusCode)
	}
	shown := x.get("root", made)
	text := keyText.FindString(shown.body)
	if text == "" || shown.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("the key is not shown, or may be stored: %v %s", shown.Header, shown.body)
	}
	if again := x.get("root", made); again.StatusCode != http.StatusGone || keyText.MatchString(again.body) {
		t.Errorf("the key is shown twice: status %d", again.StatusCode)
	}
	list := x.page("root", "/admin/keys")
	id := identity.KeyID(text)
	if strings.Contains(list, text) || !strings.Contains(list, id) || !strings.Contains(list, "editor:handbook,other") {
		t.Errorf("the list: %s", list)
	}
	x.keys["new"] = text
	if r := x.get("new", "/"); r.StatusCode != http.StatusOK {
		t.Errorf("the new key: status %d", r.StatusCode)
	}
	x.wrong("/admin/keys/"+id+"/rotate", url.Values{"grace": {"soon"}, "expires": {""}}, "not a whole number", `value="soon"`)
	body := x.wrote("/admin/keys/"+id+"/rotate", url.Values{"grace": {"1"}, "expires": {time.Now().AddDate(0, 6, 0).Format(time.DateOnly)}}, "")
	if next := keyText.FindString(body); next == "" || next == text {
		t.Errorf("the key that replaces it is not shown: %s", body)
	}
	if body := x.page("root", "/admin/keys/"+id); !strings.Contains(body, "Ending") {
		t.Errorf("the old key does not end: %s", body)
	}
	x.wrong("/admin/keys/"+id+"/revoke", url.Values{"reason": {" "}}, "A reason is missing")
	x.wrote("/admin/keys/"+id+"/revoke", url.Values{"reason": {"left in a <b>repository</b>"}}, "The key "+id+" is revoked.")
	if r := x.get("new", "/"); r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(r.Header.Get("Location"), "/sign-in") {
		t.Errorf("a session of a revoked key: status %d", r.StatusCode)
	}
	if body := x.page("root", "/admin/keys/"+id); !strings.Contains(body, "left in a &lt;b&gt;repository&lt;/b&gt;") {
		t.Errorf("the reason is not shown as text: %s", body)
	}
	if r := x.get("zed", "/admin/keys/"+id); r.StatusCode != http.StatusNotFound {
		t.Errorf("another tenant sees the key: status %d", r.StatusCode)
	}
	if r := x.post("zed", "/admin/keys/"+identity.KeyID(x.keys["ann"])+"/revoke", url.Values{"reason": {"x"}}); r.StatusCode != http.StatusNotFound {
		t.Errorf("another tenant revokes a key: status %d", r.StatusCode)
	}
}

// TestAdminAccess checks that the page counts the names in ACLs of one tenant.
func TestAdminAccess(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	for _, user := range []string{"root", "zed"} {
		body := x.page(user, "/admin/access")
		if has := strings.Contains(body, "<bdi>handbook</bdi>"); has != (user == "root") {
			t.Errorf("%s sees the collection of acme: %t", user, has)
		}
		if has := strings.Contains(body, "<bdi>ann</bdi>"); has != (user == "root") {
			t.Errorf("%s sees the key of ann: %t", user, has)
		}
	}
}

func TestAdminLimits(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.wrong("/admin/limits", url.Values{"subject": {"users"}, "requests/day": {"-3"}, "tokens/day": {"many"}, "reason": {"typed"}}, "A limit is 0 or more", "not a number", `value="many"`, `value="typed"`)
	x.wrong("/admin/limits", url.Values{"subject": {"users"}}, "Enter at least one limit.")
	x.wrong("/admin/limits", url.Values{"subject": {"nobody"}, "runs": {"1"}}, "nobody")
	if r := x.get("root", "/admin/limits/edit?kind=user&name="); r.StatusCode != http.StatusBadRequest {
		t.Errorf("no user: status %d", r.StatusCode)
	}
	x.wrote("/admin/limits", url.Values{"subject": {"user:<i>ann</i>"}, "requests/day": {"10"}, "cost/month": {"12.5"}, "reason": {"pilot"}}, "The limits are changed: User <i>ann</i>.")
	table, err := x.session("root").Limits(t.Context())
	if err != nil || table["user:<i>ann</i>"][limit.RequestsPerDay] != 10 || table["user:<i>ann</i>"][limit.CostPerMonth] != 12_500_000 {
		t.Errorf("limits: %v %v", table, err)
	}
	body := x.page("root", "/admin/limits")
	for _, text := range []string{"<bdi>&lt;i&gt;ann&lt;/i&gt;</bdi>", "0 of 10", "0 of 12.5", "<meter"} {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q: %s", text, body)
		}
	}
	if edit := x.page("root", "/admin/limits/edit?subject=user:%3Ci%3Eann%3C%2Fi%3E"); !strings.Contains(edit, `value="12.5"`) || !strings.Contains(edit, `value="10"`) {
		t.Errorf("the form lacks the limits: %s", edit)
	}
	if zed := x.page("zed", "/admin/limits"); strings.Contains(zed, "ann&lt;") {
		t.Error("another tenant sees the limits")
	}
	x.wrote("/admin/limits", url.Values{"subject": {"user:<i>ann</i>"}, "requests/day": {"11"}}, "")
	if table, _ := x.session("root").Limits(t.Context()); len(table["user:<i>ann</i>"]) != 1 {
		t.Errorf("an empty field is no limit: %v", table)
	}
	x.wrong("/admin/limits/remove", url.Values{"subject": {"user:<i>ann</i>"}}, "A reason is missing")
	x.wrote("/admin/limits/remove", url.Values{"subject": {"user:<i>ann</i>"}, "reason": {"over"}}, "The limits are removed")
}

func TestAdminPolicies(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.wrong("/admin/policies", url.Values{"name": {"legal"}, "tags": {"nonsense"}, "topics": {"dismissal"}}, "one tag on each line", "nonsense", "dismissal")
	x.wrong("/admin/policies", url.Values{"name": {"legal"}}, "it has no condition")
	x.wrote("/admin/policies", url.Values{
		"name": {"legal <script>"}, "collections": {"handbook"}, "status": {"answered", "incomplete"}, "score": {"0.9999"}, "tags": {"a = b"}, "approvals": {"2"},
		"deadline": {"1.5"}, "escalate": {"board"}, "reject": {"yes"}, "mandatory": {"yes"}, "reason": {"law"},
	}, "The policy legal <script> holds from now on.")
	x.wrote("/admin/policies", url.Values{"name": {"all"}, "always": {"yes"}, "approvals": {"1"}}, "")
	all, err := x.session("root").Policies(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("policies: %v %v", all, err)
	}
	p := all[1]
	if p.Name != "legal <script>" || p.Approvals != 2 || p.Deadline.Minutes() != 90 || !p.Reject || !p.Mandatory || p.Tags["a"] != "b" || *p.ScoreBelow != 0.9999 || len(p.Statuses) != 2 {
		t.Errorf("the policy: %+v", p)
	}
	f := newForm("policy", policyValues(p))
	if again := f.policy(); !equalPolicies(again, p) {
		t.Errorf("the form changes the policy: %+v, want %+v", again, p)
	}
	if body := x.page("root", "/admin/policies"); strings.Contains(body, "<script>") || !strings.Contains(body, "legal &lt;script&gt;") || !strings.Contains(body, "2 reviewers approve") {
		t.Errorf("the page: %s", body)
	}
	x.page("root", "/admin/policies/edit?name="+url.QueryEscape(p.Name))
	if r := x.get("root", "/admin/policies/edit?name=nothing"); r.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown policy: status %d", r.StatusCode)
	}
	x.wrong("/admin/policies/test", url.Values{"collections": {"handbook"}}, "The question is missing.", `value="handbook"`)
	r := x.post("root", "/admin/policies/test", url.Values{"question": {"Who approves travel?"}, "collections": {"handbook"}})
	if r.StatusCode != http.StatusOK || !strings.Contains(r.body, "every answer waits") || !strings.Contains(r.body, "Show the run") {
		t.Errorf("the test: status %d: %s", r.StatusCode, r.body)
	}
	x.wrote("/admin/policies/remove", url.Values{"name": {"all"}, "reason": {"over"}}, "The policy all is removed.")
}

func equalPolicies(a, b review.Policy) bool {
	return policyValues(a).Encode() == policyValues(b).Encode()
}

func TestAdminEgress(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.wrong("/admin/egress", url.Values{"mode": {"list"}, "reason": {"typed"}}, "The list is empty", `value="typed"`)
	x.wrong("/admin/egress", url.Values{"mode": {"list"}, "allow": {"https://not a host/"}}, "https://not a host/")
	x.wrong("/admin/egress", url.Values{}, "Choose one.")
	x.wrote("/admin/egress", url.Values{"mode": {"list"}, "allow": {"api.example.com\n*.example.org"}, "reason": {"law"}}, "Only the hosts of the list")
	if rules, err := x.session("root").EgressRestriction(t.Context()); err != nil || len(rules.Allow) != 2 {
		t.Errorf("rules: %+v %v", rules, err)
	}
	if body := x.page("zed", "/admin/egress"); strings.Contains(body, "example.com") {
		t.Error("another tenant sees the rules")
	}
	x.wrote("/admin/egress", url.Values{"mode": {"offline"}}, "Nothing leaves")
	x.wrote("/admin/egress", url.Values{"mode": {"none"}}, "no rules of its own")
}

func TestAdminRetention(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.wrong("/admin/retention", url.Values{"kind": {store.RetainRuns}, "days": {"0"}, "reason": {"typed"}}, "Enter 1 to", `value="typed"`)
	x.wrong("/admin/retention", url.Values{"kind": {"nothing"}, "days": {"3"}}, "nothing")
	x.wrote("/admin/retention", url.Values{"kind": {store.RetainRuns}, "days": {"30"}, "reason": {"law"}}, "Nothing is removed before")
	if body := x.page("root", "/admin/retention?try=1"); !strings.Contains(body, "30 days") || !strings.Contains(body, "Remove it. This cannot be undone.") {
		t.Errorf("the page: %s", body)
	}
	x.wrote("/admin/retention/apply", url.Values{}, "Nothing was removed. Check the box")
	x.wrote("/admin/retention/apply", url.Values{"sure": {"yes"}}, "Removed: 0 runs")
	x.wrong("/admin/holds", url.Values{"name": {"case"}, "kind": {"user"}, "reason": {"a suit"}}, "The name of the user is missing.", `value="a suit"`)
	x.wrote("/admin/holds", url.Values{"name": {"case"}, "kind": {"user"}, "of": {"ann"}, "reason": {"<b>suit</b>"}, "until": {"2099-01-31"}}, "The hold case counts")
	if body := x.page("root", "/admin/retention"); !strings.Contains(body, "&lt;b&gt;suit&lt;/b&gt;") || !strings.Contains(body, "2099-01-31") {
		t.Errorf("the hold: %s", body)
	}
	x.wrong("/admin/holds", url.Values{"name": {"case"}, "kind": {"all"}, "reason": {"again"}}, `value="again"`)
	if body := x.page("zed", "/admin/retention"); strings.Contains(body, "30 days") || strings.Contains(body, "suit") {
		t.Error("another tenant sees the policies")
	}
	x.wrong("/admin/holds/remove", url.Values{"name": {"case"}}, "A reason is missing")
	x.wrote("/admin/holds/remove", url.Values{"name": {"case"}, "reason": {"over"}}, "The hold case is removed.")
	x.wrote("/admin/retention/remove", url.Values{"kind": {store.RetainRuns}, "reason": {"over"}}, "The retention is removed.")
}

func TestAdminWebhooks(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.wrong("/admin/webhooks", url.Values{"name": {"ops"}, "events": {"review.*"}, "form": {"standard"}}, "The address is missing.", "review.*")
	x.wrong("/admin/webhooks", url.Values{"name": {"ops"}, "url": {"https://hooks.example.com/path"}, "form": {"standard"}}, "Name at least one event")
	x.wrong("/admin/webhooks", url.Values{"name": {"ops"}, "url": {"https://hooks.example.com/secret-path"}, "events": {"review.*"}, "form": {"standard"}, "secrets": {"env:PATH"}}, "may not use this credential")
	x.wrong("/admin/webhooks/test", url.Values{"name": {"nothing"}}, "Try again", `value="nothing"`)
	x.wrong("/admin/webhooks/remove", url.Values{"name": {"nothing"}, "reason": {"typed"}}, `value="typed"`)
	x.wrote("/admin/webhooks/retry", url.Values{}, "Choose the messages")
	x.wrote("/admin/webhooks/retry", url.Values{"all": {"yes"}}, "0 messages will be sent again.")
}

func TestAdminCanaries(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	r := x.post("root", "/admin/canaries", url.Values{"collection": {"handbook"}})
	if r.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d: %s", r.StatusCode, r.body)
	}
	made := r.Header.Get("Location")
	if body := x.page("root", made); !strings.Contains(body, "only time that the text is shown") {
		t.Errorf("the text is not shown: %s", body)
	}
	if again := x.get("root", made); again.StatusCode != http.StatusGone {
		t.Errorf("the text is shown twice: status %d", again.StatusCode)
	}
	all, err := x.session("root").Canaries(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("canaries: %v %v", all, err)
	}
	if zed := x.page("zed", "/admin/canaries"); strings.Contains(zed, all[0].Name) {
		t.Error("another tenant sees the canary")
	}
	x.wrong("/admin/canaries/remove", url.Values{"name": {all[0].Name}}, "A reason is missing")
	x.wrote("/admin/canaries/remove", url.Values{"name": {all[0].Name}, "reason": {"over"}}, "is removed")
}

// TestAdminLists checks the pages of a long list.
func TestAdminLists(t *testing.T) {
	t.Parallel()
	r, err := http.NewRequest(http.MethodGet, "/admin/keys?all=1&page=2", nil)
	if err != nil {
		t.Fatal(err)
	}
	rows, p := pageOf(&request{r: r}, make([]int, 120))
	if len(rows) != 50 || p.Pages != 3 || p.Previous != "/admin/keys?all=1&page=1" || p.Next != "/admin/keys?all=1&page=3" {
		t.Errorf("the second page: %d rows, %+v", len(rows), p)
	}
	for _, bad := range []string{"0", "-1", "x", "99999999999999999999"} {
		r.URL.RawQuery = "page=" + bad
		if rows, p := pageOf(&request{r: r}, make([]int, 120)); p.Page != 1 || len(rows) != 50 {
			t.Errorf("page %s: %+v", bad, p)
		}
	}
	r.URL.RawQuery = "page=9"
	if rows, p := pageOf(&request{r: r}, make([]int, 120)); p.Page != 3 || len(rows) != 20 || p.Next != "" {
		t.Errorf("a page after the last: %+v", p)
	}
	if rows, p := pageOf(&request{r: r}, []int(nil)); len(rows) != 0 || p.Pages != 1 {
		t.Errorf("no entries: %+v", p)
	}
}
