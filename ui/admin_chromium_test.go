package ui

import (
	"net/url"
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/browsertest"
)

// TestChromiumAdminKey makes a key in the browser, which shows it once, and revokes it.
func TestChromiumAdminKey(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	both(t, func(t *testing.T, o browsertest.Options) {
		p := x.browser(t, "root", o)
		p.Expect("status of 400")
		p.Expect("status of 410")
		p.Go(x.url + "/admin/keys")
		p.Click("a[href='/admin/keys/new']")
		p.Click("input[value=reader]")
		p.Fill("#key-in-editor", "handbook")
		p.Click("button.main[type=submit]")
		p.WaitText(".wrong", "Choose at least one role.")
		if got := p.Value("#key-in-editor"); got != "handbook" {
			t.Errorf("what was typed is lost: %q", got)
		}
		p.Click("input[value=editor]")
		p.Click("button.main[type=submit]")
		p.Wait("#made-key")
		text := p.Value("#made-key")
		if !keyText.MatchString(text) {
			t.Fatalf("the key is not shown: %q", text)
		}
		if !o.NoScript {
			p.Axe(t)
		}
		p.Reload()
		p.WaitText("h1", "not shown again")
		p.Go(x.url + "/admin/keys/" + strings.Split(text, "_")[1])
		p.Fill("#revoke-reason", "left in a repository")
		p.Click("button.bad")
		p.WaitText(".notice", "is revoked")
	})
}

// TestChromiumAdminLimits sets a limit and sees its bar.
func TestChromiumAdminLimits(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	p := x.browser(t, "root", browsertest.Options{Dark: true})
	p.Go(x.url + "/admin/limits")
	p.Fill("#limit-kind", "user")
	p.Fill("#limit-name", "ann")
	p.Click("form.card button[type=submit]")
	p.Fill("#limits-requests-day", "5")
	p.Fill("#limits-reason", "a pilot")
	p.Click("button.main[type=submit]")
	p.WaitText(".notice", "The limits are changed: User ann.")
	p.Wait("meter")
	p.Axe(t)
}

// TestChromiumAdminPolicies makes a policy and tests it with a question.
func TestChromiumAdminPolicies(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	p := x.browser(t, "root", browsertest.Options{})
	p.Go(x.url + "/admin/policies/edit")
	p.Fill("#policy-name", "legal")
	p.Fill("#policy-collections", "handbook")
	p.Click("button.main[type=submit]")
	p.WaitText(".notice", "The policy legal holds")
	p.Fill("#test-question", "Who approves travel?")
	p.Click("#test button[type=submit]")
	p.WaitText(".tried", "These policies match")
	p.Axe(t)
}

// TestChromiumAdminPages checks every page of the area with axe in light and dark and on a phone, where
// no page may be wider than the window.
func TestChromiumAdminPages(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	long := strings.Repeat("unbreakable", 20)
	for path, form := range map[string]url.Values{
		"/admin/limits":    {"subject": {"user:" + long}, "requests/day": {"2"}, "cost/month": {"12.5"}},
		"/admin/policies":  {"name": {"قانون"}, "always": {"yes"}, "approvals": {"1"}},
		"/admin/retention": {"kind": {"runs"}, "days": {"30"}},
		"/admin/holds":     {"name": {"case"}, "kind": {"all"}, "reason": {long}},
		"/admin/egress":    {"mode": {"list"}, "allow": {"api.example.com"}},
	} {
		x.wrote(path, form, "")
	}
	if r := x.post("root", "/admin/canaries", url.Values{"collection": {"handbook"}}); r.StatusCode != 303 {
		t.Fatalf("canary: status %d", r.StatusCode)
	}
	for name, o := range map[string]browsertest.Options{"light": {}, "dark": {Dark: true}, "phone": {Width: 360, Height: 740}} {
		t.Run(name, func(t *testing.T) {
			p := x.browser(t, "root", o)
			for _, path := range adminPages {
				if path == "/admin/vectors" {
					continue // a part of a page
				}
				p.Go(x.url + path)
				p.Axe(t)
				var over int
				p.Eval("document.documentElement.scrollWidth - document.documentElement.clientWidth", &over)
				if over > 0 {
					t.Errorf("%s is %d px wider than the window", path, over)
				}
			}
		})
	}
}
