package ui

import (
	"os"
	"testing"

	"github.com/assay-rag/assay/internal/browsertest"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }

// browser returns a page of a user who has signed in; "": one who is not signed in, on an empty page.
func (x *site) browser(t testing.TB, user string, o browsertest.Options) *browsertest.Page {
	t.Helper()
	p := browsertest.Start(t).Page(t, o)
	if user == "" {
		return p
	}
	p.Go(x.url + "/sign-in")
	p.Fill("#key", x.keys[user])
	p.Click("main button[type=submit]")
	p.Wait(".user")
	return p
}

// both runs a test in a browser with scripts and in one without.
func both(t *testing.T, test func(t *testing.T, o browsertest.Options)) {
	t.Helper()
	t.Run("scripts", func(t *testing.T) { test(t, browsertest.Options{}) })
	t.Run("no scripts", func(t *testing.T) { test(t, browsertest.Options{NoScript: true}) })
}

func TestChromiumSignIn(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	both(t, func(t *testing.T, o browsertest.Options) {
		p := x.browser(t, "", o)
		p.Expect("status of 401")
		p.Go(x.url + "/")
		p.Fill("#key", "assay_wrong")
		p.Click("main button[type=submit]")
		p.Wait("[role=alert]")
		if !o.NoScript {
			p.Axe(t)
		}
		p.Fill("#key", x.keys["ann"])
		p.Press("Enter")
		if got := p.Text(".user"); got != "ann" {
			t.Errorf("signed in as %q", got)
		}
		p.Click(".who form button")
		p.WaitText("h1", "Sign in")
		p.Go(x.url + "/")
		if p.Has(".user") {
			t.Error("still signed in after signing out")
		}
	})
}
