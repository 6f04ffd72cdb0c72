package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/server"
)

// hostileNumbers are values for parameters that pages read as numbers, places and names.
var hostileNumbers = []string{
	"-1", "9223372036854775807", "368934881474191033", "-9223372036854775808", "1e309", "\x00", "\xff", "0-9223372036854775807", "bnVsbA",
}

// TestHostileParameters loads every page with wrong parameters: no page fails, and none makes the server
// panic.
func TestHostileParameters(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it loads every page many times")
	}
	x, acme, _ := newWorld(t, wordsOf)
	names := []string{
		"page", "from", "to", "start", "end", "open", "before", "after", "width", "boxes", "limit", "days", "with", "other", "version", "kind", "show", "only",
		"strategy", "set", "verdict", "filter", "mode", "status", "user", "object", "subject", "collection", "name", "q", "gate", "checks", "policy", "part", "id",
	}
	for _, r := range Routes() {
		if r.Method != http.MethodGet || r.Stream || strings.HasPrefix(r.Path, "/sign-in") {
			continue
		}
		user := "bob"
		if !x.allows(user, r.Call) {
			user = "root"
		}
		for _, value := range hostileNumbers {
			all := url.Values{}
			for _, name := range names {
				all.Set(name, value)
			}
			for _, query := range []url.Values{all, {"page": {value}}, {"from": {value}}, {"after": {value}}} {
				target := targetOf(r, acme) + "?" + query.Encode()
				reply := x.get(user, target)
				if reply.StatusCode >= http.StatusInternalServerError && reply.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("GET %.200s as %s: status %d", target, user, reply.StatusCode)
				}
			}
		}
	}
}

// TestListedOrigin sends every form as a page of an origin that may call the API, which begins and ends no
// session: otherwise it could sign people in as somebody else.
func TestListedOrigin(t *testing.T) {
	t.Parallel()
	const origin = "https://chat.example.com"
	x := newSite(t, func(_ *engine.HostConfig, c *server.Config) { c.Origins = []string{origin} })
	x.client("root")
	for _, r := range Routes() {
		if r.Method != http.MethodPost {
			continue
		}
		form := url.Values{"key": {x.keys["root"]}, "reason": {"x"}, "confirm": {"yes"}}
		req, err := http.NewRequestWithContext(t.Context(), r.Method, x.url+pathVariable.ReplaceAllString(r.Path, "none"), strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", origin)
		res, err := x.client("root").Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden || len(res.Cookies()) > 0 {
			t.Errorf("%s %s: status %d, cookies %v", r.Method, r.Path, res.StatusCode, res.Cookies())
		}
	}
	x.page("root", "/")
}

// TestHiddenDocumentIsNone checks that no page and no form tells a hidden document from one that does not
// exist.
func TestHiddenDocumentIsNone(t *testing.T) {
	t.Parallel()
	x, acme, _ := newWorld(t, wordsOf)
	none := strings.Repeat("0", len(acme.hidden))
	text := func(path, id string, post bool) string {
		path = strings.ReplaceAll(path, "{document}", id)
		r := reply{}
		if post {
			r = x.post("ann", path, url.Values{"confirm": {"yes"}})
		} else {
			r = x.get("ann", path)
		}
		return fmt.Sprint(r.StatusCode, " ", strings.ReplaceAll(r.body, id, "ID"))
	}
	for _, r := range Routes() {
		if !strings.Contains(r.Path, "{document}") {
			continue
		}
		path := strings.NewReplacer("{version}", "v1", "{page}", "1").Replace(r.Path)
		post := r.Method == http.MethodPost
		if hidden, missing := text(path, acme.hidden, post), text(path, none, post); hidden != missing {
			t.Errorf("%s %s: a hidden document is %s\n\none that does not exist %s", r.Method, r.Path, hidden, missing)
		}
	}
}

// TestSessionsOfOne checks that one user cannot end the sessions of others by signing in again and again.
func TestSessionsOfOne(t *testing.T) {
	t.Parallel()
	s := newSessions()
	var c identity.Credential
	request := func(word string) *http.Request {
		r, _ := http.NewRequest(http.MethodGet, "/", nil)
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: word})
		return r
	}
	other, first, last := s.begin("bob", c, nil), s.begin("ann", c, nil), ""
	for range maxSessions {
		last = s.begin("ann", c, nil)
	}
	if _, ok := s.credential(request(other)); !ok {
		t.Error("the session of another user has ended")
	}
	if _, ok := s.credential(request(last)); !ok {
		t.Error("the newest session is dropped")
	}
	if _, ok := s.credential(request(first)); ok || len(s.all) != maxSessionsOfOne+1 {
		t.Errorf("%d sessions, and the oldest one stays: %t", len(s.all), ok)
	}
}
