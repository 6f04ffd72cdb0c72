package ui

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

func newJar() http.CookieJar {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // it never fails
	}
	return jar
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	if r := x.get("", "/"); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/sign-in" {
		t.Errorf("without a session: status %d to %q, want the page that asks for a key", r.StatusCode, r.Header.Get("Location"))
	}
	if r := x.get("", "/?q=leave"); r.Header.Get("Location") != "/sign-in?to=%2F%3Fq%3Dleave" {
		t.Errorf("the page to return to is lost: %q", r.Header.Get("Location"))
	}
	r := x.post("", "/sign-in", url.Values{"key": {"wrong"}})
	if r.StatusCode != http.StatusUnauthorized || !strings.Contains(r.body, `role="alert"`) {
		t.Errorf("a wrong key: status %d: %s", r.StatusCode, r.body)
	}
	if body := x.page("ann", "/"); !strings.Contains(body, "<bdi>ann</bdi>") || strings.Contains(body, ">Admin<") {
		t.Errorf("the page of ann: %s", body)
	}
	if r := x.post("ann", "/sign-out", nil); r.StatusCode != http.StatusSeeOther {
		t.Errorf("sign out: status %d", r.StatusCode)
	}
	if r := x.get("ann", "/"); r.StatusCode != http.StatusSeeOther {
		t.Errorf("after signing out: status %d", r.StatusCode)
	}
}

// TestSignInReturns checks that a form leads to pages of this server only.
func TestSignInReturns(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"/runs/x?y=1": "/runs/x?y=1", "": "/", "//evil.example": "/", "https://evil.example": "/", "/\\evil.example": "/", "javascript:alert(1)": "/", "runs": "/",
	} {
		if got := ownPath(to); got != want {
			t.Errorf("ownPath(%q) = %q, want %q", to, got, want)
		}
	}
}

// TestCookieOfAnotherOrigin checks that a page of another origin, even of one that may call the API,
// cannot use the session of a browser.
func TestCookieOfAnotherOrigin(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	for _, origin := range []string{"https://evil.example", "null", "http://localhost:1"} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, x.url+"/api/v1/collections", nil)
		r.Header.Set("Origin", origin)
		res, err := x.client("ann").Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusUnauthorized {
			t.Errorf("origin %s: status %d", origin, res.StatusCode)
		}
	}
	if r := x.get("ann", "/api/v1/collections"); r.StatusCode != http.StatusOK {
		t.Errorf("the API with the cookie: status %d: %s", r.StatusCode, r.body)
	}
}

// TestHome opens the first page as users who may ask and as an auditor, who may not: their first page is
// that of the first area that they may see.
func TestHome(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	for user, want := range map[string]string{"rob": "", "aud": "/evaluations"} {
		r := x.get(user, "/")
		if got := r.Header.Get("Location"); got != want {
			t.Errorf("%s: status %d to %q, want %q", user, r.StatusCode, got, want)
		}
	}
	if r := x.get("aud", "/admin/keys"); r.StatusCode != http.StatusForbidden || strings.Contains(r.body, "Ask a question</a>") {
		t.Errorf("an auditor who may not ask is led to ask: status %d", r.StatusCode)
	}
}
