package azuresearch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/azuresearch"
	"github.com/assay-rag/assay/provider/internal/passage/passagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config returns a configuration for a server.
func config(address string) azuresearch.Config {
	return azuresearch.Config{
		BaseURL: address, Index: "handbook", Key: secret.New(llmtest.Canary), HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		Fields: azuresearch.Fields{Text: "chunk", ID: "id", URI: "url", Title: "title", Page: "page", Vector: "vector", Metadata: []string{"year"}, Lists: []string{"tags"}},
	}
}

// reply returns a reply in the form of "Documents - Search Post".
func reply(docs []passagetest.Doc) any {
	value := []any{}
	for i, d := range docs {
		v := map[string]any{
			"@search.score": 0.9 - float64(i)/10, "@search.rerankerScore": 3.5 - float64(i)/2, "@search.captions": []any{map[string]any{"text": "…", "highlights": "…"}},
			"id": fmt.Sprint("chunk-", i), "chunk": d.Text, "url": fmt.Sprintf("https://example.com/%d", i), "title": "Handbook", "page": 3,
		}
		for k, m := range d.Metadata {
			v[k] = m
		}
		value = append(value, v)
	}
	return map[string]any{"@odata.context": "…", "value": value}
}

func TestContract(t *testing.T) {
	passagetest.Run(t, passagetest.Subject{
		Open: func(t *testing.T, s passagetest.Setup) passagetest.Retriever {
			c := config(s.URL)
			c.Sharing, c.Guard = s.Sharing, s.Guard
			r, err := azuresearch.New(c)
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
		Reply: reply,
		Throttled: func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"error":{"code":"","message":"You are sending too many requests."}}`))
		},
		Asked: func(t *testing.T, r *http.Request, body []byte, words []string) {
			var in struct{ Filter, Select string }
			if err := json.Unmarshal(body, &in); err != nil || r.URL.Path != "/indexes/handbook/docs/search" || r.Header.Get("api-key") != llmtest.Canary {
				t.Errorf("%s: %s, %v", r.URL, body, err)
			}
			for _, w := range words {
				if !strings.Contains(in.Filter, w) {
					t.Errorf("the filter is %s, want %q in it", in.Filter, w)
				}
			}
		},
	})
}

// asked returns the body of the request for a query, and the hits.
func asked(t *testing.T, c azuresearch.Config, q assay.Query) (map[string]any, assay.Results, error) {
	t.Helper()
	var body map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		_, _ = w.Write(llmtest.JSON(reply([]passagetest.Doc{{Text: "Thirty days of leave."}})))
	}))
	defer server.Close()
	c.BaseURL, c.Sharing = server.URL, azuresearch.Sharing{OpenTo: []string{"*"}}
	r, err := azuresearch.New(c)
	if err != nil {
		t.Fatal(err)
	}
	q.Text, q.Limit = "days of leave", max(q.Limit, 5)
	found, err := r.Retrieve(t.Context(), assay.Local().Access(), q)
	return body, found, err
}

// TestFilters checks the OData of each operator.
func TestFilters(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := func(op assay.FilterOp, key string, v assay.Value) assay.Filter {
		return assay.Filter{Op: op, Key: key, Value: v}
	}
	year := f(assay.OpEquals, "year", assay.NumberValue(2024))
	for _, test := range []struct {
		filter assay.Filter
		want   string // empty: ErrInvalid
	}{
		{year, "year eq 2024"},
		{f(assay.OpEquals, "name", assay.StringValue("O'Neill' or true or 'x")), "name eq 'O''Neill'' or true or ''x'"},
		{f(assay.OpNotEquals, "draft", assay.BooleanValue(true)), "draft ne true"},
		{f(assay.OpGreaterThan, "price", assay.NumberValue(1.5e21)), "price gt 1500000000000000000000"},
		{f(assay.OpGreaterThanOrEquals, "seen", assay.TimeValue(now)), "seen ge 2026-01-02T03:04:05Z"},
		{f(assay.OpLessThan, "price", assay.NumberValue(-0.25)), "price lt -0.25"},
		{f(assay.OpLessThanOrEquals, "price", assay.NumberValue(3)), "price le 3"},
		{f(assay.OpIn, "team", assay.ListValue("a b", "c'd")), "search.in(team, 'a b|c''d', '|')"},
		{f(assay.OpIn, "tags", assay.ListValue("a|b", "c")), "tags/any(x: search.in(x, 'a|b;c', ';'))"},
		{f(assay.OpIn, "team", assay.ListValue()), "false"},
		{f(assay.OpNotIn, "team", assay.ListValue("a")), "not (search.in(team, 'a', '|'))"},
		{f(assay.OpListContains, "tags", assay.StringValue("it's")), "tags/any(x: x eq 'it''s')"},
		{f(assay.OpListContains, "team", assay.StringValue("a")), "team eq 'a'"},
		{assay.Filter{Op: assay.OpOrAll, Filters: []assay.Filter{year, f(assay.OpEquals, "meta/lang", assay.StringValue("de"))}}, "(year eq 2024 or meta/lang eq 'de')"},
		{assay.Filter{Op: assay.OpNot, Filters: []assay.Filter{{Op: assay.OpAndAll, Filters: []assay.Filter{year, year}}}}, "not ((year eq 2024 and year eq 2024))"},
		{f(assay.OpStartsWith, "name", assay.StringValue("a")), ""},
		{f(assay.OpStringContains, "name", assay.StringValue("a")), ""},
		{f(assay.OpEquals, "tags", assay.ListValue("a")), ""},
		{f(assay.OpEquals, "team", assay.ListValue("a")), ""},
		{f(assay.OpEquals, "x eq 1 or y", assay.NumberValue(1)), ""},
		{f(assay.OpIn, "team", assay.ListValue("|", ";", ",", "~", "^", "\t")), ""},
	} {
		body, _, err := asked(t, config(""), assay.Query{Filter: test.filter})
		if test.want == "" {
			if !errors.Is(err, assay.ErrInvalid) || body != nil {
				t.Errorf("%s: %v, %v, want ErrInvalid and no request", test.filter, body["filter"], err)
			}
			continue
		}
		if err != nil || body["filter"] != test.want {
			t.Errorf("%s: %v, %v, want %s", test.filter, body["filter"], err, test.want)
		}
		if key := test.filter.Key; key != "" && !strings.Contains(body["select"].(string), key) {
			t.Errorf("%s: %q is not retrieved: %v", test.filter, key, body["select"])
		}
	}
}

// TestModes checks what is sent for each mode, and where the scores are.
func TestModes(t *testing.T) {
	ranked := config("")
	ranked.Semantic = "default"
	words := config("")
	words.Fields.Vector = ""
	for _, test := range []struct {
		c               azuresearch.Config
		mode            assay.Mode
		search, vectors bool
		semantic        bool
		err             error
	}{
		{config(""), assay.ModeHybrid, true, true, false, nil},
		{config(""), assay.ModeText, true, false, false, nil},
		{config(""), assay.ModeVector, false, true, false, nil},
		{ranked, assay.ModeHybrid, true, true, true, nil},
		{ranked, assay.ModeVector, false, true, false, nil},
		{words, assay.ModeHybrid, true, false, false, nil},
		{words, assay.ModeVector, false, false, false, assay.ErrInvalid},
	} {
		body, found, err := asked(t, test.c, assay.Query{Mode: test.mode})
		if !errors.Is(err, test.err) || (body["search"] != nil) != test.search || (body["vectorQueries"] != nil) != test.vectors || (body["queryType"] == "semantic") != test.semantic {
			t.Errorf("%q: %v, %v", test.mode, body, err)
		}
		if err != nil {
			continue
		}
		h := found.Hits[0]
		if s := h.Scores; s.Managed == nil || *s.Managed != 0.9 || s.Rerank == nil || *s.Rerank != 3.5 || s.Vector != nil || h.Page != 3 || h.URI != "https://example.com/0" || h.Title != "Handbook" {
			t.Errorf("hit %+v", h)
		}
	}
}

// TestPages checks that pages are requested until there are enough results, and that a service which
// always has more is not asked for ever.
func TestPages(t *testing.T) {
	for name, test := range map[string]struct {
		limit, pages int
		next         func(skip int) int // of the page after skip; 0: none
		hits, asked  int
		note, fails  bool
	}{
		"one":        {limit: 2, next: func(s int) int { return s + 2 }, hits: 2, asked: 1},
		"three":      {limit: 5, next: func(s int) int { return s + 2 }, hits: 5, asked: 3},
		"the last":   {limit: 9, next: func(s int) int { return map[int]int{0: 2, 2: 4}[s] }, hits: 6, asked: 3},
		"for ever":   {limit: 500, pages: 4, next: func(s int) int { return s + 2 }, hits: 8, asked: 4, note: true},
		"in circles": {limit: 500, next: func(int) int { return 2 }, asked: 2, fails: true},
	} {
		n := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n++
			var in struct{ Skip, Top int }
			_ = json.NewDecoder(r.Body).Decode(&in)
			var docs []passagetest.Doc
			for i := range 2 {
				docs = append(docs, passagetest.Doc{Text: fmt.Sprintf("days of leave, part %d", in.Skip+i)})
			}
			out := reply(docs).(map[string]any)
			for i, v := range out["value"].([]any) {
				v.(map[string]any)["url"] = fmt.Sprintf("https://example.com/%d", in.Skip+i)
			}
			if next := test.next(in.Skip); next > 0 {
				out["@search.nextPageParameters"] = map[string]any{"skip": next, "search": "x"}
				out["@odata.nextLink"] = "https://elsewhere.example/"
			}
			_, _ = w.Write(llmtest.JSON(out))
		}))
		c := config(server.URL)
		c.Pages, c.Sharing = test.pages, azuresearch.Sharing{OpenTo: []string{"*"}}
		r, err := azuresearch.New(c)
		if err != nil {
			t.Fatal(err)
		}
		found, err := r.Retrieve(t.Context(), assay.Local().Access(), assay.Query{Text: "days of leave", Limit: test.limit})
		noted := strings.Contains(fmt.Sprint(found.Notes), "there are more results")
		if len(found.Hits) != test.hits || n != test.asked || noted != test.note || (err != nil) != test.fails {
			t.Errorf("%s: %d hits, asked %d times, %v, %v", name, len(found.Hits), n, found.Notes, err)
		}
		server.Close()
	}
}

func TestNew(t *testing.T) {
	for name, change := range map[string]func(*azuresearch.Config){
		"no address": func(c *azuresearch.Config) { c.BaseURL = "" },
		"no index":   func(c *azuresearch.Config) { c.Index = "" },
		"no text":    func(c *azuresearch.Config) { c.Fields.Text = "" },
		"no key":     func(c *azuresearch.Config) { c.Key = secret.Secret{} },
		"a field":    func(c *azuresearch.Config) { c.Fields.Metadata = []string{"a,b"} },
		"a filter": func(c *azuresearch.Config) {
			c.Filter = assay.Filter{Op: assay.OpStartsWith, Key: "a", Value: assay.StringValue("b")}
		},
		"a sharing": func(c *azuresearch.Config) { c.Sharing.OpenTo = []string{"ann"} },
	} {
		c := config("http://127.0.0.1:1")
		change(&c)
		if _, err := azuresearch.New(c); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}
