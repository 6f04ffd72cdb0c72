package llmtest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// A WebWire is a web search over HTTP with the server side of its format, for [TestWebWire]. The
// server side is written from the vendor's documentation.
type WebWire struct {
	// Open opens a searcher with Canary as each of its credentials. It makes each request once.
	Open func(t testing.TB, s Setup) assay.WebSearcher

	// Asked decodes a request. n is 0 if the format cannot express the number of results wanted.
	Asked func(t testing.TB, r *http.Request, body []byte) (query string, n int)

	// Reply returns a server's reply with the results, in the order given.
	Reply func(results []assay.WebResult) Body

	// Fail is as in Wire.
	Fail func(f Failure) (Body, bool)

	Lacks []Feature // only RetryAfter is relevant
}

// TestWebWire checks a web search, including how it reads its server's format, against the contract
// of assay.WebSearcher. It must not run in parallel with other tests, because it counts goroutines.
func TestWebWire(t *testing.T, w WebWire) {
	t.Run("request", w.testRequest)
	t.Run("results", w.testResults)
	t.Run("invalid", w.testInvalid)
	reading{
		open: func(t testing.TB, s Setup) (string, func(context.Context) (int, error)) {
			m := w.Open(t, s)
			return m.Name(), func(ctx context.Context) (int, error) {
				found, err := m.SearchWeb(ctx, "days of leave", 3)
				for _, r := range found {
					checkResult(t, r)
				}
				if err != nil {
					return len(found), err
				}
				return 1 + len(found), nil // a reply without results is a valid answer
			}
		},
		reply: always(func(*http.Request, []byte) Body { return w.Reply(pages(2)) }), fail: w.Fail, lacks: w.Lacks,
	}.test(t)
}

// pages returns n valid results.
func pages(n int) []assay.WebResult {
	list := make([]assay.WebResult, n)
	for i := range list {
		list[i] = assay.WebResult{URL: fmt.Sprintf("https://example.com/%d?a=b", i), Title: fmt.Sprintf("Page %d", i), Snippet: "Leave of 5 days — 漢字 & more."}
	}
	return list
}

// checkResult checks the invariants of every result.
func checkResult(t testing.TB, r assay.WebResult) {
	t.Helper()
	if !strings.HasPrefix(r.URL, "http://") && !strings.HasPrefix(r.URL, "https://") {
		t.Errorf("a result with the address %.100q", r.URL)
	}
	if text := r.URL + r.Title + r.Snippet; strings.ContainsAny(text, "\x00\n\x1b\u200b\u202e") || len(text) > 10_000 {
		t.Errorf("a result of %d bytes, with what is not seen: %.300q", len(text), text)
	}
}

// search requests n results from a server that sends the given ones.
func (w WebWire) search(t *testing.T, sent []assay.WebResult, n int) ([]assay.WebResult, *host) {
	t.Helper()
	h := serve(t, always(func(*http.Request, []byte) Body { return w.Reply(sent) }))
	found, err := w.Open(t, Setup{BaseURL: h.url, HTTP: h.client}).SearchWeb(bounded(t), "days of \"leave\" & more", n)
	if err != nil || found == nil {
		t.Fatalf("%v, %v", found, err)
	}
	return found, h
}

func (w WebWire) testRequest(t *testing.T) {
	found, h := w.search(t, pages(3), 3)
	if diff := cmp.Diff(pages(3), found); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	requests, bodies := h.seen()
	if len(requests) != 1 {
		t.Fatalf("%d requests", len(requests))
	}
	if query, n := w.Asked(t, requests[0], bodies[0]); query != "days of \"leave\" & more" || n != 0 && n != 3 {
		t.Errorf("it was asked for %d results of %q", n, query)
	}
}

// testResults checks how invalid results are handled.
func (w WebWire) testResults(t *testing.T) {
	good := pages(2)
	tests := map[string]struct{ sent, want []assay.WebResult }{
		"none":          {nil, []assay.WebResult{}},
		"more":          {pages(5), pages(3)},
		"the same page": {[]assay.WebResult{good[0], {URL: good[0].URL + "#part"}, good[0], good[1]}, good},
		"of no web": {append([]assay.WebResult{
			{URL: "javascript:alert(1)"}, {URL: "file:///etc/passwd"}, {URL: "data:text/html,x"}, {URL: "ftp://example.com/"}, {URL: "/relative"},
			{URL: "https://user:word@example.com/"}, {URL: "http://"}, {URL: "https://example.com/" + strings.Repeat("a", 5000)}, {URL: "https://exa\u202emple.com/"},
		}, good...), good},
		"what is not seen": {
			[]assay.WebResult{{URL: good[0].URL, Title: "Pa\u200bge\n0\x1b[2J", Snippet: "Leave \u202eof\u2066\t5 &amp; more&#39;s"}},
			[]assay.WebResult{{URL: good[0].URL, Title: "Page 0[2J", Snippet: "Leave of 5 & more's"}},
		},
		"long": {
			[]assay.WebResult{{URL: good[0].URL, Title: strings.Repeat("t", 1000), Snippet: strings.Repeat("s", 10_000)}},
			[]assay.WebResult{{URL: good[0].URL, Title: strings.Repeat("t", 300) + " …", Snippet: strings.Repeat("s", 4000) + " …"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found, _ := w.search(t, slices.Clone(test.sent), 3)
			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

func (w WebWire) testInvalid(t *testing.T) {
	h := serve(t, always(func(*http.Request, []byte) Body { return w.Reply(pages(1)) }))
	s := w.Open(t, Setup{BaseURL: h.url, HTTP: h.client})
	for query, n := range map[string]int{"": 3, " \n": 3, "leave": 0, "days": -1} {
		if found, err := s.SearchWeb(bounded(t), query, n); err == nil || kindOf(err) != llm.ErrorKind("") || found != nil {
			t.Errorf("%d results of %q: %v, %v; want an error before anybody is asked", n, query, found, err)
		}
	}
	if requests, _ := h.seen(); len(requests) > 0 {
		t.Errorf("%d requests", len(requests))
	}
}
