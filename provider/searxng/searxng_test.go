package searxng_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/searxng"
	"github.com/assay-rag/assay/provider/searxng/searxngtest"
)

func TestContract(t *testing.T) { llmtest.TestWebWire(t, searxngtest.Search()) }

// TestReplies checks that a reply without usable results is an error with a reason.
func TestReplies(t *testing.T) {
	tests := []struct {
		name   string
		status int
		reply  string
		kind   llm.ErrorKind // "" means no error
		words  string
	}{
		{"no JSON is given", 403, "<title>403 Forbidden</title>", llm.BadRequest, "search.formats"},
		{"the engines fail", 200, `{"results":[],"unresponsive_engines":[["google","CAPTCHA"],["brave","timeout"]]}`, llm.ServerError, "CAPTCHA"},
		{"one of the engines fails", 200, `{"results":[{"url":"https://example.com/","title":null,"content":null}],"unresponsive_engines":[["google","CAPTCHA"]]}`, "", ""},
		{"nothing is found", 200, `{"results":[]}`, "", ""},
	}
	for _, test := range tests {
		h := &llmtest.Canned{Status: test.status, Type: "application/json", Replies: []string{test.reply}}
		s, err := searxng.New(searxng.Config{BaseURL: h.Start(t) + "/search/"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.SearchWeb(t.Context(), "leave", 5)
		if e, _ := errors.AsType[*llm.Error](err); e == nil && test.kind != "" || e != nil && (e.Kind != test.kind || !strings.Contains(e.Error(), test.words)) {
			t.Errorf("%s: %v, want the kind %q and %q", test.name, err, test.kind, test.words)
		}
		if diff := cmp.Diff([]string{"/search?format=json&q=leave"}, h.Paths); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", test.name, diff)
		}
	}
}
