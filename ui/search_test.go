package ui

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/server"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.put("bob", "board", "plan.md", "# Plan\n\nThe Falcon merger closes in March.\n", `{"acl": ["group:board"]}`)
	contains(t, x.page("ann", "/search"), `name="q"`, `value="handbook"`)
	body := x.page("ann", "/search?q="+url.QueryEscape("days of leave"))
	contains(t, body, "<mark>days</mark>", "<mark>leave</mark>", "leave.md", "BM25", "0 to 1", "rank 1", "<meter", "words only", "Searches that ran")
	link := regexp.MustCompile(`href="(/documents/[0-9a-f]{32}\?end=\d+&amp;start=\d+&amp;version=[0-9a-f]{32}#span)"`)
	if !link.MatchString(body) {
		t.Error("no link leads to the passage in its document")
	}
	contains(t, x.page("bob", "/search?q=Falcon"), "<mark>Falcon</mark>")
	x.put("ann", "poems", "poem.md", "# Poem\n\nA quokka begins a line\nand ends it here.\n", "")
	lacks(t, x.page("ann", "/search?q=quokka"), `class="lines"`)
	x.put("ann", "poems", "code.md", "# Code\n\n    numbat(\n      1)\n", "")
	contains(t, x.page("ann", "/search?q=numbat"), `<blockquote dir="auto" class="lines"`)
	for _, user := range []string{"ann", "zed"} {
		lacks(t, x.page(user, "/search?q=Falcon"), "<mark>Falcon", "merger", ">board<")
		if r := x.get(user, "/search?q=Falcon&collection=board"); r.StatusCode != http.StatusNotFound {
			t.Errorf("a collection that %s may not see: status %d", user, r.StatusCode)
		}
	}
	contains(t, x.page("ann", "/search?q=xylophone"), "Nothing found", "Use other words")
}

func TestSearchFilter(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.put("ann", "notes", "a.md", "# Old\n\nThe budget of the team.\n", `{"year": 2020}`)
	x.put("ann", "notes", "b.md", "# New\n\nThe budget of the team grows.\n", `{"year": 2026}`)
	body := x.page("ann", "/search?q=budget&filter="+url.QueryEscape("year >= 2025"))
	contains(t, body, "b.md", `value="year &gt;= 2025"`)
	lacks(t, body, "a.md")
	for filter, want := range map[string]string{"year >=": "position", "nokey = 1": "nokey", `team = "`: "position", "<script>": "position"} {
		r := x.get("ann", "/search?q=budget&filter="+url.QueryEscape(filter))
		if r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", filter, r.StatusCode)
		}
		contains(t, r.body, `id="filter-error"`, `aria-invalid="true"`, want, `value="budget"`)
		lacks(t, r.body, "<script>", "invalid request")
	}
	contains(t, x.page("ann", "/search?q=budget&mode=text&collection=notes"), "b.md", `value="text" selected`, `value="notes" checked`, `href="/?collection=notes&amp;q=budget"`)
	for _, query := range []string{"mode=all", "limit=7", "limit=x"} {
		if r := x.get("ann", "/search?q=budget&"+query); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", query, r.StatusCode)
		}
	}
}

func TestSearchMore(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	for i := range searchSizes[0] + 2 {
		name := string(rune('a' + i))
		x.put("ann", "many", name+".md", "# "+name+"\n\nThe falcon number "+strings.Repeat(name, 5)+" flies to "+strings.Repeat(name+"x ", 40)+".\n", "")
	}
	body := x.page("ann", "/search?q=falcon&collection=many")
	contains(t, body, "10 passages, best first", "Show more passages", "limit=25")
	more := x.page("ann", "/search?q=falcon&collection=many&limit=25")
	contains(t, more, "12 passages, best first")
	lacks(t, more, "Show more passages")
}

func TestMarked(t *testing.T) {
	t.Parallel()
	got := marked("ab cd ef", []engine.SearchMark{{Start: 0, End: 2}, {Start: 6, End: 8}})
	want := []markedText{{"ab", true}, {" cd ", false}, {"ef", true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("marked (-want +got):\n%s", diff)
	}
	if got := marked("ab", nil); !cmp.Equal(got, []markedText{{"ab", false}}) {
		t.Errorf("without marks: %v", got)
	}
}

// oneEncoder provides one encoder.
type oneEncoder struct{ llm.Embedder }

func (e oneEncoder) Default() string { return e.Model() }

func (e oneEncoder) Open(context.Context, string) (llm.Embedder, error) { return e.Embedder, nil }

// TestCoverage checks that pages say how far passages have vectors.
func TestCoverage(t *testing.T) {
	t.Parallel()
	encoder := llmtest.Refusing(&llmtest.Hashing{Name: "hash/64", Dimensions: 64}, "unreadable")
	x := newSite(t, func(c *engine.HostConfig, _ *server.Config) { c.Encoders = oneEncoder{encoder} })
	contains(t, x.page("ann", "/documents"), "of <code>hash/64</code>")
	if _, err := x.session("root").Embed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	contains(t, x.page("ann", "/documents"), ">complete<")
	lacks(t, x.page("ann", "/search?q=leave"), "have a vector yet")
	x.put("ann", "handbook", "odd.md", "# Odd\n\nAn unreadable passage about leave.\n", "")
	if report, err := x.session("root").Embed(t.Context(), nil); err != nil || report.Missing() == 0 {
		t.Fatalf("Embed = %+v, %v, want a passage without a vector", report, err)
	}
	body := x.page("ann", "/documents")
	contains(t, body, ">partial<", "<progress")
	body = x.page("ann", "/search?q=leave")
	contains(t, body, "of the passages have a vector yet", ">Vector<", "−1 to 1", "odd.md", `min="-1"`)
}
