package kendra_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/internal/passage/passagetest"
	"github.com/assay-rag/assay/provider/kendra"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(s passagetest.Setup) kendra.Config {
	return kendra.Config{
		Account: kendra.Account{
			Region: "eu-west-1", AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: secret.New(llmtest.Canary), SessionToken: secret.New(llmtest.Canary),
			HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		},
		BaseURL: s.URL, Index: "11111111-2222-3333-4444-555555555555", Sharing: s.Sharing, Guard: s.Guard, Lists: []string{"tags"},
	}
}

func open(t *testing.T, c kendra.Config) *kendra.Retriever {
	t.Helper()
	r, err := kendra.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reply returns a reply in the form of Retrieve, in the protocol AWS JSON 1.1.
func reply(docs []passagetest.Doc) any {
	items := []any{}
	for i, d := range docs {
		attributes := []any{map[string]any{"Key": "_excerpt_page_number", "Value": map[string]any{"LongValue": 3}}, map[string]any{"Key": "_created_at", "Value": map[string]any{"DateValue": 1.7e9}}}
		for _, k := range slices.Sorted(maps.Keys(d.Metadata)) {
			kind := map[string]string{"[]string": "StringListValue", "int": "LongValue", "string": "StringValue"}[fmt.Sprintf("%T", d.Metadata[k])]
			attributes = append(attributes, map[string]any{"Key": k, "Value": map[string]any{kind: d.Metadata[k]}})
		}
		items = append(items, map[string]any{
			"Id": fmt.Sprint("r", i), "DocumentId": fmt.Sprint("d", i), "DocumentTitle": "Handbook", "Content": d.Text, "DocumentURI": fmt.Sprintf("https://example.com/%d", i),
			"DocumentAttributes": attributes, "ScoreAttributes": map[string]any{"ScoreConfidence": "VERY_HIGH"},
		})
	}
	return map[string]any{"QueryId": "q", "ResultItems": items}
}

func TestContract(t *testing.T) {
	passagetest.Run(t, passagetest.Subject{
		Open:  func(t *testing.T, s passagetest.Setup) passagetest.Retriever { return open(t, config(s)) },
		Reply: reply,
		Throttled: func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"ThrottlingException","message":"Rate exceeded"}`))
		},
		Asked: func(t *testing.T, r *http.Request, body []byte, words []string) {
			var in struct{ AttributeFilter json.RawMessage }
			if err := json.Unmarshal(body, &in); err != nil || r.Header.Get("X-Amz-Target") != "AWSKendraFrontendService.Retrieve" || !strings.Contains(r.Header.Get("Authorization"), "/eu-west-1/kendra/aws4_request") {
				t.Errorf("%v: %s, %v", r.Header, body, err)
			}
			for _, w := range words {
				if !strings.Contains(string(in.AttributeFilter), `"`+w+`"`) {
					t.Errorf("the filter is %s, want %q in it", in.AttributeFilter, w)
				}
			}
		},
	})
}

var ann = assay.Principal{User: "ann", Groups: []string{"board", "staff"}}.Access()

// asked returns the request for a query, and the hits.
func asked(t *testing.T, c kendra.Config, q assay.Query) (map[string]json.RawMessage, assay.Results, error) {
	t.Helper()
	var body map[string]json.RawMessage
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		_, _ = w.Write(llmtest.JSON(reply([]passagetest.Doc{{Text: "Thirty days of leave."}})))
	}))
	defer server.Close()
	c.BaseURL, c.Sharing.OpenTo = server.URL, []string{"*"}
	q.Text, q.Limit = "days of leave", 5
	found, err := open(t, c).Retrieve(t.Context(), ann, q)
	return body, found, err
}

// TestFilters checks the form of each operator; "" means ErrInvalid.
func TestFilters(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := func(op assay.FilterOp, key string, v assay.Value) assay.Filter {
		return assay.Filter{Op: op, Key: key, Value: v}
	}
	group := func(op assay.FilterOp, parts ...assay.Filter) assay.Filter {
		return assay.Filter{Op: op, Filters: parts}
	}
	year, team := f(assay.OpEquals, "year", assay.NumberValue(2024)), f(assay.OpEquals, "team", assay.StringValue("a"))
	const isYear, isTeam = `{"EqualsTo":{"Key":"year","Value":{"LongValue":2024}}}`, `{"EqualsTo":{"Key":"team","Value":{"StringValue":"a"}}}`
	for _, test := range []struct {
		filter assay.Filter
		want   string
	}{
		{year, isYear},
		{team, isTeam},
		{f(assay.OpNotEquals, "team", assay.StringValue("a")), `{"NotFilter":` + isTeam + `}`},
		{f(assay.OpGreaterThan, "year", assay.NumberValue(1)), `{"GreaterThan":{"Key":"year","Value":{"LongValue":1}}}`},
		{f(assay.OpGreaterThanOrEquals, "seen", assay.TimeValue(now)), `{"GreaterThanOrEquals":{"Key":"seen","Value":{"DateValue":1767323045}}}`},
		{f(assay.OpLessThan, "year", assay.NumberValue(-1)), `{"LessThan":{"Key":"year","Value":{"LongValue":-1}}}`},
		{f(assay.OpLessThanOrEquals, "year", assay.NumberValue(1)), `{"LessThanOrEquals":{"Key":"year","Value":{"LongValue":1}}}`},
		{f(assay.OpIn, "team", assay.ListValue("a")), `{"OrAllFilters":[` + isTeam + `]}`},
		{f(assay.OpIn, "tags", assay.ListValue("a", "b")), `{"ContainsAny":{"Key":"tags","Value":{"StringListValue":["a","b"]}}}`},
		{f(assay.OpNotIn, "tags", assay.ListValue("a")), `{"NotFilter":{"ContainsAny":{"Key":"tags","Value":{"StringListValue":["a"]}}}}`},
		{f(assay.OpListContains, "tags", assay.StringValue("a")), `{"ContainsAny":{"Key":"tags","Value":{"StringListValue":["a"]}}}`},
		{f(assay.OpListContains, "team", assay.StringValue("a")), isTeam},
		{group(assay.OpOrAll, f(assay.OpListContains, "tags", assay.StringValue("a")), f(assay.OpListContains, "tags", assay.StringValue("b"))), `{"ContainsAny":{"Key":"tags","Value":{"StringListValue":["a","b"]}}}`},
		{group(assay.OpAndAll, year, group(assay.OpAndAll, team, group(assay.OpOrAll, team))), `{"AndAllFilters":[` + isYear + `,` + isTeam + `,` + isTeam + `]}`},
		{group(assay.OpAndAll, year, group(assay.OpOrAll, year, team)), `{"AndAllFilters":[` + isYear + `,{"OrAllFilters":[` + isYear + `,` + isTeam + `]}]}`},
		{group(assay.OpNot, f(assay.OpGreaterThan, "year", assay.NumberValue(1))), `{"NotFilter":{"GreaterThan":{"Key":"year","Value":{"LongValue":1}}}}`},
		{group(assay.OpNot, group(assay.OpOrAll, year, team)), `{"AndAllFilters":[{"NotFilter":` + isYear + `},{"NotFilter":` + isTeam + `}]}`},
		{group(assay.OpAndAll, year, group(assay.OpOrAll, team, group(assay.OpAndAll, year, team))), ``},
		{group(assay.OpOrAll, slices.Repeat([]assay.Filter{team}, 11)...), ``},
		{f(assay.OpIn, "team", assay.ListValue()), ``},
		{f(assay.OpStartsWith, "team", assay.StringValue("a")), ``},
		{f(assay.OpStringContains, "team", assay.StringValue("a")), ``},
		{f(assay.OpEquals, "year", assay.NumberValue(1.5)), ``},
		{f(assay.OpEquals, "year", assay.NumberValue(1e300)), ``},
		{f(assay.OpEquals, "draft", assay.BooleanValue(true)), ``},
		{f(assay.OpEquals, "tags", assay.ListValue("a")), ``},
	} {
		body, _, err := asked(t, config(passagetest.Setup{}), assay.Query{Filter: test.filter})
		got := string(body["AttributeFilter"])
		if refused := test.want == ""; refused != errors.Is(err, assay.ErrInvalid) || refused && body != nil || !refused && (err != nil || got != test.want) {
			t.Errorf("%s: %s, %v, want %s", test.filter, got, err, test.want)
		}
	}
}

// TestUserContext checks what is sent of the caller, and that its token is in no error.
func TestUserContext(t *testing.T) {
	c := config(passagetest.Setup{})
	if body, _, err := asked(t, c, assay.Query{}); err != nil || body["UserContext"] != nil {
		t.Errorf("by default: %s, %v", body["UserContext"], err)
	}
	c.UserContext = true
	if body, _, err := asked(t, c, assay.Query{}); err != nil || string(body["UserContext"]) != `{"Groups":["board","staff"],"UserId":"ann"}` {
		t.Errorf("names: %s, %v", body["UserContext"], err)
	}
	const token = "token-of-the-caller-in-this-test"
	c.Token = func(_ context.Context, a assay.Access) (secret.Secret, error) {
		if !slices.Contains(a.Names(), "user:ann") {
			t.Errorf("access %v", a.Names())
		}
		return secret.New(token), nil
	}
	if body, _, err := asked(t, c, assay.Query{}); err != nil || string(body["UserContext"]) != `{"Token":"`+token+`"}` {
		t.Errorf("token: %s, %v", body["UserContext"], err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"__type":"ValidationException","message":"bad token ` + token + `"}`))
	}))
	defer server.Close()
	c.BaseURL, c.Sharing.OpenTo = server.URL, []string{"*"}
	q := assay.Query{Text: "leave", Limit: 1}
	if _, err := open(t, c).Retrieve(t.Context(), ann, q); !errors.Is(err, assay.ErrUnavailable) || strings.Contains(err.Error(), token) {
		t.Errorf("an error: %v", err)
	}
	c.Token = func(context.Context, assay.Access) (secret.Secret, error) { return secret.Secret{}, nil }
	if _, err := open(t, c).Retrieve(t.Context(), ann, q); err == nil {
		t.Error("an empty token is no error")
	}
}

// TestHit checks the fields of a hit: the confidence is a word, and no number is made of it.
func TestHit(t *testing.T) {
	_, found, err := asked(t, config(passagetest.Setup{}), assay.Query{})
	if err != nil {
		t.Fatal(err)
	}
	h := found.Hits[0]
	if s := h.Scores; s != (assay.Scores{Confidence: "VERY_HIGH"}) || h.Page != 3 || h.Title != "Handbook" || h.URI != "https://example.com/0" {
		t.Errorf("hit %+v", h)
	}
	for _, mode := range []assay.Mode{assay.ModeText, assay.ModeVector} {
		if _, _, err := asked(t, config(passagetest.Setup{}), assay.Query{Mode: mode}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%q: %v", mode, err)
		}
	}
}

// TestPages checks that an index which always has more is not asked for ever.
func TestPages(t *testing.T) {
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		var docs []passagetest.Doc
		for i := range 100 {
			docs = append(docs, passagetest.Doc{Text: fmt.Sprintf("days of leave, part %d of %d", i, n)})
		}
		_, _ = w.Write(llmtest.JSON(reply(docs)))
	}))
	defer server.Close()
	c := config(passagetest.Setup{URL: server.URL})
	c.Sharing.OpenTo, c.Pages = []string{"*"}, 3
	got, err := open(t, c).Retrieve(t.Context(), ann, assay.Query{Text: "leave", Limit: 1000})
	if err != nil || len(got.Hits) != 300 || n != 3 || !strings.Contains(fmt.Sprint(got.Notes), "more results") {
		t.Errorf("%d hits, asked %d times, %v", len(got.Hits), n, err)
	}
}

func TestNew(t *testing.T) {
	for name, change := range map[string]func(*kendra.Config){
		"no index": func(c *kendra.Config) { c.Index = "" },
		"half":     func(c *kendra.Config) { c.AccessKeyID = "" },
		"a filter": func(c *kendra.Config) {
			c.Filter = assay.Filter{Op: assay.OpStartsWith, Key: "a", Value: assay.StringValue("b")}
		},
	} {
		c := config(passagetest.Setup{})
		change(&c)
		if _, err := kendra.New(c); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}
