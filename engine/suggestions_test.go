package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
)

// texts of the suggestions of a session.
func suggested(t *testing.T, s *Session, n int, collections ...string) []string {
	t.Helper()
	list, err := s.Suggestions(t.Context(), collections, n)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for _, one := range list {
		texts = append(texts, one.Text)
		d, err := s.Document(t.Context(), one.Document)
		if err != nil {
			t.Fatalf("suggestion %q: its document: %v", one.Text, err)
		}
		if d.Version != one.Version || d.Title != one.Title || !strings.Contains(d.Text[one.Start:one.End], one.Text) {
			t.Errorf("suggestion %q is not literally at its place in %q", one.Text, d.Title)
		}
	}
	return texts
}

func uploadTo(t *testing.T, s *Session, collection, name, text string, allow ...string) {
	t.Helper()
	sidecar := []byte(nil)
	if len(allow) > 0 {
		sidecar = fmt.Appendf(nil, `{"acl": ["%s"]}`, strings.Join(allow, `", "`))
	}
	if _, err := s.Upload(t.Context(), Upload{Collection: collection, Name: name, Body: strings.NewReader(text), Sidecar: sidecar}); err != nil {
		t.Fatal(err)
	}
}

// TestSuggestions checks that suggestions are headings of documents that their reader may see, questions
// first, and that they follow the content.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme", "globex")
	editor := mustSession(t, h, roleGrant("acme", assay.Principal{User: "eve", Groups: []string{"staff", "board"}}, identity.Editor))
	uploadTo(t, editor, "faq", "leave.md", "# Leave\n\n## Annual leave\n\nIt has 28 days.\n\n## Who approves my leave?\n\nYour lead does.\n\n## 3.1\n\nA number.\n\n## Table 2\n\nNone.\n")
	uploadTo(t, editor, "faq", "board.md", "# Board\n\n## Who is to be dismissed?\n\nIt is secret.\n", "group:board")
	ann := mustSession(t, h, roleGrant("acme", assay.Principal{User: "ann", Groups: []string{"staff"}}, identity.Reader))
	bob := mustSession(t, h, roleGrant("acme", assay.Principal{User: "bob", Groups: []string{"board"}}, identity.Reader))
	zed := mustSession(t, h, roleGrant("globex", assay.Principal{User: "zed", Groups: []string{"staff", "board"}}, identity.Reader))
	for range 2 { // also from the cache
		if got, want := suggested(t, ann, 9), []string{"Who approves my leave?", "Annual leave"}; !slices.Equal(got, want) {
			t.Errorf("for ann: %q, want %q", got, want)
		}
		if got, want := suggested(t, bob, 9), []string{"Who is to be dismissed?", "Who approves my leave?", "Annual leave"}; !slices.Equal(got, want) {
			t.Errorf("for bob: %q, want %q", got, want)
		}
		if got := suggested(t, zed, 9); len(got) != 0 {
			t.Errorf("in another tenant: %q", got)
		}
	}
	if got := suggested(t, bob, 1); len(got) != 1 {
		t.Errorf("at most one: %q", got)
	}
	if _, err := zed.Suggestions(t.Context(), []string{"faq"}, 9); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("a collection of another tenant: %v, want ErrNotFound", err)
	}
	uploadTo(t, editor, "faq", "board.md", "# Board\n\n## When does it meet?\n\nOn Monday.\n", "group:staff", "group:board")
	if got := suggested(t, ann, 1); len(got) != 1 || got[0] != "When does it meet?" {
		t.Errorf("after a change: %q", got)
	}
	uploadTo(t, editor, "faq", "board.md", "# Board\n\n## When does it meet?\n\nOn Monday.\n", "group:board")
	if got := suggested(t, ann, 9); slices.Contains(got, "When does it meet?") {
		t.Errorf("after the document was closed: %q", got)
	}
	narrow := mustSession(t, h, grantOf("acme", assay.Principal{User: "ann", Groups: []string{"board"}}, identity.Right{Scope: identity.ScopeSearch, Collections: []string{"other"}}))
	if got := suggested(t, narrow, 9); len(got) != 0 {
		t.Errorf("with a right in another collection: %q", got)
	}
}

// TestSuggestionsBounded checks that few documents of many are read, from the whole list.
func TestSuggestionsBounded(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme")
	s := mustSession(t, h, roleGrant("acme", assay.Principal{User: "eve"}, identity.Editor))
	for i := range 2 * maxSuggestDocuments {
		uploadTo(t, s, "many", fmt.Sprintf("%03d.md", i), fmt.Sprintf("# Document %d\n\n## What is number %d?\n\nA number.\n", i, i))
	}
	all := suggested(t, s, 1000)
	if len(all) != maxSuggestDocuments || all[0] != "What is number 0?" || all[1] != "What is number 2?" {
		t.Errorf("%d suggestions: %q", len(all), all)
	}
}

func TestAskOptions(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme")
	for role, skip := range map[identity.Role]bool{identity.Reader: false, identity.Admin: true} {
		o, err := mustSession(t, h, roleGrant("acme", staff, role)).AskOptions(t.Context())
		if err != nil || o.Web || o.SkipReview != skip {
			t.Errorf("as %s: %+v, %v", role, o, err)
		}
		names := []string{}
		for _, s := range o.Strategies {
			names = append(names, s.Name)
		}
		if names[0] != "auto" || slices.Contains(names, "managed") {
			t.Errorf("strategies: %q", names)
		}
	}
}
