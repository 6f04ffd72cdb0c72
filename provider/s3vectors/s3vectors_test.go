package s3vectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/internal/passage/passagetest"
	"github.com/assay-rag/assay/provider/s3vectors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixed is an embedder of one vector.
type fixed struct{}

func (fixed) Model() string { return "fixed" }
func (fixed) Embed(_ context.Context, _ llm.Purpose, texts []string) ([]llm.Vector, error) {
	return slices.Repeat([]llm.Vector{{0.6, 0.8}}, len(texts)), nil
}

func config(s passagetest.Setup) s3vectors.Config {
	return s3vectors.Config{
		Account: s3vectors.Account{
			Region: "eu-west-1", AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: secret.New(llmtest.Canary), SessionToken: secret.New(llmtest.Canary),
			HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		},
		BaseURL: s.URL, Bucket: "handbook", Index: "chunks", Embedder: fixed{}, Sharing: s.Sharing, Guard: s.Guard,
	}
}

func open(t *testing.T, c s3vectors.Config) *s3vectors.Retriever {
	t.Helper()
	r, err := s3vectors.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reply returns a reply in the form of QueryVectors.
func reply(docs []passagetest.Doc) any {
	vectors := []any{}
	for i, d := range docs {
		meta := map[string]any{"text": d.Text, "uri": fmt.Sprintf("s3://handbook/%d.md", i), "title": "Handbook"}
		for k, v := range d.Metadata {
			meta[k] = v
		}
		vectors = append(vectors, map[string]any{"key": fmt.Sprint("k", i), "distance": 0.25 + float64(i)/8, "metadata": meta})
	}
	return map[string]any{"distanceMetric": "cosine", "vectors": vectors}
}

func TestContract(t *testing.T) {
	passagetest.Run(t, passagetest.Subject{
		Open:  func(t *testing.T, s passagetest.Setup) passagetest.Retriever { return open(t, config(s)) },
		Reply: reply,
		Throttled: func(w http.ResponseWriter) {
			w.Header().Set("X-Amzn-Errortype", "TooManyRequestsException")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"message":"Rate exceeded"}`))
		},
		Asked: func(t *testing.T, r *http.Request, body []byte, words []string) {
			var in struct{ Filter json.RawMessage }
			if err := json.Unmarshal(body, &in); err != nil || r.URL.Path != "/QueryVectors" || !strings.Contains(r.Header.Get("Authorization"), "/eu-west-1/s3vectors/aws4_request") ||
				!strings.Contains(string(body), `"vectorBucketName":"handbook"`) || !strings.Contains(string(body), `"float32":[0.6,0.8]`) {
				t.Errorf("%s: %s, %v", r.URL, body, err)
			}
			for _, w := range words {
				if !strings.Contains(string(in.Filter), `"`+w+`"`) {
					t.Errorf("the filter is %s, want %q in it", in.Filter, w)
				}
			}
		},
	})
}

// asked returns the request for a query, and the hits.
func asked(t *testing.T, q assay.Query, metric string) (map[string]json.RawMessage, assay.Results, error) {
	t.Helper()
	var body map[string]json.RawMessage
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		out := reply([]passagetest.Doc{{Text: "Thirty days of leave.", Metadata: map[string]any{"n": 1.5, "ok": true, "list": []string{"a"}, "mixed": []any{1, "a"}, "nested": map[string]any{}}}}).(map[string]any)
		out["distanceMetric"] = metric
		_, _ = w.Write(llmtest.JSON(out))
	}))
	defer server.Close()
	r := open(t, config(passagetest.Setup{URL: server.URL, Sharing: s3vectors.Sharing{OpenTo: []string{"*"}}}))
	q.Text, q.Limit = "days of leave", max(q.Limit, 5)
	found, err := r.Retrieve(t.Context(), assay.Local().Access(), q)
	if err == nil && len(found.Hits) == 1 {
		doc, err := r.Version(t.Context(), found.Hits[0].Chunk.Document, found.Hits[0].Chunk.Version)
		if m := doc.Metadata; err != nil || m["n"].Number != 1.5 || !m["ok"].Boolean || len(m["list"].List) != 1 || m["mixed"].Kind != "" || m["text"].Kind != "" {
			t.Errorf("metadata %+v, %v", doc.Metadata, err)
		}
	}
	return body, found, err
}

// TestFilters checks the form of each operator; "" means ErrInvalid.
func TestFilters(t *testing.T) {
	f := func(op assay.FilterOp, key string, v assay.Value) assay.Filter {
		return assay.Filter{Op: op, Key: key, Value: v}
	}
	n, b := f(assay.OpEquals, "n", assay.NumberValue(1.5)), f(assay.OpEquals, "ok", assay.BooleanValue(true))
	group := func(op assay.FilterOp, parts ...assay.Filter) assay.Filter {
		return assay.Filter{Op: op, Filters: parts}
	}
	for _, test := range []struct {
		filter assay.Filter
		want   string
	}{
		{n, `{"n":{"$eq":1.5}}`},
		{b, `{"ok":{"$eq":true}}`},
		{f(assay.OpNotEquals, "team", assay.StringValue(`a"b`)), `{"$or":[{"team":{"$ne":"a\"b"}},{"team":{"$exists":false}}]}`},
		{f(assay.OpGreaterThan, "n", assay.NumberValue(1)), `{"n":{"$gt":1}}`},
		{f(assay.OpGreaterThanOrEquals, "n", assay.NumberValue(1)), `{"n":{"$gte":1}}`},
		{f(assay.OpLessThan, "n", assay.NumberValue(1)), `{"n":{"$lt":1}}`},
		{f(assay.OpLessThanOrEquals, "n", assay.NumberValue(1)), `{"n":{"$lte":1}}`},
		{f(assay.OpIn, "list", assay.ListValue("a", "b")), `{"list":{"$in":["a","b"]}}`},
		{f(assay.OpNotIn, "list", assay.ListValue("c")), `{"$or":[{"list":{"$nin":["c"]}},{"list":{"$exists":false}}]}`},
		{f(assay.OpListContains, "list", assay.StringValue("a")), `{"list":{"$eq":"a"}}`},
		{group(assay.OpAndAll, n, group(assay.OpAndAll, b)), `{"$and":[{"n":{"$eq":1.5}},{"ok":{"$eq":true}}]}`},
		{group(assay.OpOrAll, n, b), `{"$or":[{"n":{"$eq":1.5}},{"ok":{"$eq":true}}]}`},
		{group(assay.OpNot, f(assay.OpGreaterThan, "n", assay.NumberValue(1))), `{"n":{"$lte":1}}`},
		{group(assay.OpNot, f(assay.OpListContains, "list", assay.StringValue("a"))), ``},
		{f(assay.OpStartsWith, "team", assay.StringValue("a")), ``},
		{f(assay.OpStringContains, "team", assay.StringValue("a")), ``},
		{f(assay.OpEquals, "list", assay.ListValue("a")), ``},
		{f(assay.OpIn, "list", assay.ListValue()), ``},
		{f(assay.OpEquals, "$or", assay.StringValue("a")), ``},
		{f(assay.OpEquals, "text", assay.StringValue("a")), ``},
	} {
		body, _, err := asked(t, assay.Query{Filter: test.filter}, "cosine")
		got := string(body["filter"])
		if refused := test.want == ""; refused != errors.Is(err, assay.ErrInvalid) || refused && body != nil || !refused && (err != nil || got != test.want) {
			t.Errorf("%s: %s, %v, want %s", test.filter, got, err, test.want)
		}
	}
}

// TestScores checks which score a distance is, and the modes.
func TestScores(t *testing.T) {
	for metric, want := range map[string]assay.Scores{"cosine": {Vector: new(0.75), Relevance: 0.75}, "euclidean": {Managed: new(-0.25)}} {
		body, got, err := asked(t, assay.Query{Limit: 500}, metric)
		if err != nil || string(llmtest.JSON(got.Hits[0].Scores)) != string(llmtest.JSON(want)) || string(body["topK"]) != "100" || !strings.Contains(fmt.Sprint(got.Notes), "at most 100") {
			t.Errorf("%s: %+v, %v", metric, got, err)
		}
	}
	if _, _, err := asked(t, assay.Query{Mode: assay.ModeText}, "cosine"); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("by words: %v", err)
	}
}

func TestNew(t *testing.T) {
	for name, change := range map[string]func(*s3vectors.Config){
		"no bucket":   func(c *s3vectors.Config) { c.Bucket = "" },
		"no index":    func(c *s3vectors.Config) { c.Index = "" },
		"no embedder": func(c *s3vectors.Config) { c.Embedder = nil },
		"half":        func(c *s3vectors.Config) { c.AccessKeyID = "" },
	} {
		c := config(passagetest.Setup{})
		change(&c)
		if _, err := s3vectors.New(c); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}
