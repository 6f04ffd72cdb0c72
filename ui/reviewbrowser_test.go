package ui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/browsertest"
	"github.com/assay-rag/assay/review"
)

// looks checks a page with axe in light and dark and at the width of a phone, where it must not scroll
// sideways. The pictures are written to the folder ASSAY_PICTURES, if it is set.
func looks(t *testing.T, p *browsertest.Page, name string) {
	t.Helper()
	for _, theme := range []string{"light", "dark"} {
		p.SetCookie("assay-theme", theme)
		p.Reload()
		p.Axe(t)
	}
	p.Resize(360, 800)
	var wide int
	p.Eval("document.documentElement.scrollWidth", &wide)
	if wide > 360 {
		t.Errorf("%s: the page is %d pixels wide on a screen of 360", name, wide)
	}
	p.Axe(t)
	p.Resize(1280, 900)
}

// TestChromiumReview claims, edits and approves an answer by the keyboard, and without scripts by clicks.
func TestChromiumReview(t *testing.T) {
	t.Parallel()
	x, _ := reviewSite(t, review.Policy{})
	both(t, func(t *testing.T, o browsertest.Options) {
		run := x.askWaiting("ann", waitingQuestion)
		p := x.browser(t, "rae", o)
		p.Go(x.url + "/reviews/" + run)
		if o.NoScript {
			p.Click("form[action$='/claim'] button")
			p.Wait("[data-act=edit]")
			p.Click("[data-act=edit]")
		} else {
			p.Axe(t)
			p.Click("form[action$='/claim'] button")
			p.Wait("[data-act=edit]")
			p.Press("j")
			p.Wait("#claim-1.current")
			p.Press("a")
			p.Wait("[data-act=approve][open] button")
			p.Go(x.url + "/reviews/" + run)
			p.Press("e")
		}
		p.Wait("#text")
		p.Fill("#text", "Travel to a customer is approved by the head of the department. [1] Ask early. <img src=x onerror=alert(1)>")
		p.Click("form[action$='/edit'] button[type=submit]")
		p.WaitText("#checked-title", "Verified again")
		if got := p.Text(".review-diff ins"); !strings.Contains(got, "Ask early.") || !strings.Contains(got, "<img src=x") {
			t.Errorf("the addition is %q", got)
		}
		if n := p.Count("main img"); n != 0 {
			t.Errorf("%d images", n)
		}
		if !o.NoScript {
			p.Axe(t)
		}
		p.Click(".save button")
		p.WaitText(".notice", "The edited answer is approved. Its asker sees it now.")
		if a, err := x.session("ann").Await(t.Context(), run); err != nil || a.Oversight.Decision != assay.DecisionEdited {
			t.Errorf("the answer is %+v, %v", a, err)
		}
	})
}

// TestChromiumReject rejects an answer while another reviewer looks at it.
func TestChromiumReject(t *testing.T) {
	t.Parallel()
	x, _ := reviewSite(t, review.Policy{})
	both(t, func(t *testing.T, o browsertest.Options) {
		run := x.askWaiting("ann", waitingQuestion)
		p, other := x.browser(t, "rae", o), x.browser(t, "root", o)
		p.Go(x.url + "/reviews/" + run)
		p.Click("form[action$='/claim'] button")
		p.WaitText(".decide .badge", "yours until")
		other.Go(x.url + "/reviews/" + run)
		other.WaitText(".decide", "Another reviewer holds this review.")
		p.Click("[data-act=reject] summary")
		p.Fill("#reason", "It is out of date. <b>bold</b>")
		p.Click("[data-act=reject] button")
		p.WaitText(".notice", "The answer is rejected.")
		other.Reload()
		other.WaitText("blockquote", "It is out of date. <b>bold</b>")
	})
}

// TestChromiumReviewLooks looks at each state of the pages of reviews.
func TestChromiumReviewLooks(t *testing.T) {
	t.Parallel()
	x, run := reviewSite(t, review.Policy{Name: "travel-policy", Always: true, Approvals: 2})
	x.reviewer("sam", "staff")
	path := "/reviews/" + run
	p := x.browser(t, "rae", browsertest.Options{})
	p.Go(x.url + "/reviews")
	looks(t, p, "reviews")
	p.Go(x.url + path)
	looks(t, p, "review")
	x.post("rae", path+"/claim", nil).must(t, http.StatusSeeOther)
	p.Go(x.url + path)
	p.Click("[data-act=reject] summary")
	p.Axe(t)
	p.Go(x.url + path)
	looks(t, p, "review-claimed")
	base := x.get("rae", path+"/edit").hidden(t, "base")
	p.Go(x.url + path + "/edit")
	looks(t, p, "review-edit")
	p.Fill("#text", "Travel to a client is approved by the head of the department. [1] Fragen Sie früh. اسأل مبكرا.")
	p.Click("form[action$='/edit'] button[type=submit]")
	p.Wait("#checked-title")
	p.Axe(t)
	p.Resize(360, 800)
	p.Resize(1280, 900)
	const text = "Travel to a client is approved by the head of the department. [1] Ask early."
	x.post("rae", path+"/save", url.Values{"base": {base}, "text": {text}}).must(t, http.StatusSeeOther)
	p.Go(x.url + path)
	looks(t, p, "review-half")
	x.post("sam", path+"/claim", nil).must(t, http.StatusSeeOther)
	p.Go(x.url + path)
	looks(t, p, "review-taken")
	x.post("sam", path+"/reject", url.Values{"reason": {"It is out of date."}}).must(t, http.StatusSeeOther)
	p.Go(x.url + path)
	looks(t, p, "review-decided")
	p.Go(x.url + "/reviews?show=decided")
	looks(t, p, "reviews-decided")
}

// TestChromiumEvaluation starts an evaluation, reads its result and compares it with another.
func TestChromiumEvaluation(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	good := strings.Replace(handbookSet, "9999 dollars", "140 euros", 1)
	x.start(url.Values{"name": {"before"}, "questions": {good}, "strategy": {"static"}})
	both(t, func(t *testing.T, o browsertest.Options) {
		p := x.browser(t, "root", o)
		p.Go(x.url + "/evaluations")
		p.Fill("#name", "after the change")
		p.Fill("#questions", handbookSet)
		p.Click("input[value=auto]")
		p.Click("input[value=static]")
		p.Click("form[enctype] button[type=submit]")
		p.Wait("[data-evaluation]")
		id := p.URL()[strings.LastIndex(p.URL(), "/")+1:]
		x.evaluated("root", id)
		if o.NoScript {
			p.Reload()
		}
		p.Wait("#questions") // with scripts, the page shows the result by itself
		if n := p.Count("svg.plot"); n < 3 {
			t.Errorf("%d plots", n)
		}
		if !o.NoScript {
			looks(t, p, "evaluation")
		}
		p.Click("input[name=only]")
		p.Click("form.filters button")
		p.WaitText("#questions ~ .scroll", "How much may a hotel cost?")
		p.Click("a[href*='/compare']")
		p.WaitText("#gate-title", "Gate")
		if !o.NoScript {
			looks(t, p, "compare")
			p.Go(x.url + "/evaluations")
			looks(t, p, "evaluations")
		}
	})
}
