package ui

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func TestBibTeX(t *testing.T) {
	t.Parallel()
	a := assay.Answer{Run: "ab_c/1", Citations: []assay.Citation{
		{Number: 2, URI: "https://example.com/a b{c}.pdf", Title: "100 % {sure} & more_", Page: 3, Start: 5, End: 9, Quote: "it is\n\\emph{so} $5"},
		{Number: 1, URI: "/docs/leave#1.md", Heading: []string{"Leave"}, Line: 7, Quote: "open { brace"},
	}}
	want := `@misc{assay-abc1-1,
  title = {{leave\#1.md}},
  howpublished = {/docs/leave\#1.md},
  note = {Leave; line 7: “open ( brace”},
}

@misc{assay-abc1-2,
  title = {{100 \% \{sure\} \& more\_}},
  url = {https://example.com/a%20b%7Bc%7D.pdf#page=3},
  note = {page 3: “it is \textbackslash{}emph\{so\} \$5”},
}

`
	if diff := cmp.Diff(want, bibTeX(a)); diff != "" {
		t.Errorf("BibTeX (-want +got):\n%s", diff)
	}
	if got := bibTeX(a); strings.Count(got, "{") != strings.Count(got, "}") {
		t.Error("the braces are not balanced")
	}
}

func TestExport(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	path := x.ask("ann", "How many days of annual leave does every employee have?")
	for extension, want := range map[string]struct{ media, text string }{
		"md":  {"text/markdown", "## Sources"},
		"txt": {"text/plain", "Every employee has 28 days of annual leave. [1]"},
		"bib": {"application/x-bibtex", "title = {{Leave}}"},
	} {
		r := x.get("ann", path+"/export."+extension)
		if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), want.media) || !strings.Contains(r.body, want.text) {
			t.Errorf("%s: status %d, %s: %s", extension, r.StatusCode, r.Header.Get("Content-Type"), r.body)
		}
		if !strings.HasPrefix(r.Header.Get("Content-Disposition"), "attachment;") {
			t.Errorf("%s is not a download", extension)
		}
		for _, user := range []string{"bob", "zed"} {
			if r := x.get(user, path+"/export."+extension); r.StatusCode != http.StatusNotFound {
				t.Errorf("%s as %s: status %d", extension, user, r.StatusCode)
			}
		}
	}
}
