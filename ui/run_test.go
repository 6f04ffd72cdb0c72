package ui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// ask asks a question as a user, waits for its end and returns the path of its page.
func (x *site) ask(user, question string, more ...string) string {
	x.t.Helper()
	form := url.Values{"question": {question}}
	for i := 0; i < len(more); i += 2 {
		form.Add(more[i], more[i+1])
	}
	r := x.post(user, "/ask", form)
	path := r.Header.Get("Location")
	if r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(path, "/runs/") {
		x.t.Fatalf("ask %q as %s: status %d to %q: %s", question, user, r.StatusCode, path, r.body)
	}
	for range x.session(user).Follow(x.t.Context(), strings.TrimPrefix(path, "/runs/"), -1) {
	}
	return path
}

func TestAnswered(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	path := x.ask("ann", "How many days of annual leave does every employee have?")
	body := x.page("ann", path)
	for _, want := range []string{
		`class="badge good"`, `Every employee has 28 days of annual leave.</a>`, `supported claim, Source 1: `, `<mark>Every employee has 28 days of annual leave.</mark>`,
		`href="#source-1"`, `id="source-1"`, `Annual leave`, `1 search`, `claim checked`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}
