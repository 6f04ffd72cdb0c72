package cohere_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/cohere"
	"github.com/assay-rag/assay/provider/cohere/coheretest"
)

func TestContract(t *testing.T) {
	t.Run("rerank", func(t *testing.T) { llmtest.TestRerankWire(t, coheretest.Rerank()) })
	t.Run("embed", func(t *testing.T) { llmtest.TestEmbedWire(t, coheretest.Embed()) })
}

// start starts a server that answers each request with the same reply and records the requests.
func start(t *testing.T, path string, status int, reply string) (*cohere.Provider, *llmtest.Canned) {
	h := &llmtest.Canned{Status: status, Type: "application/json", Replies: []string{reply}, Repeat: true}
	p, err := cohere.New(cohere.Config{BaseURL: h.Start(t) + path, Key: secret.New("a-key-of-this-test")})
	if err != nil {
		t.Fatal(err)
	}
	return p, h
}

// TestRerank checks requests and scores. The reply is the example of "Rerank" in the API reference,
// shortened.
func TestRerank(t *testing.T) {
	const reply = `{"results":[{"index":3,"relevance_score":0.999071},{"index":0,"relevance_score":0.32713068},{"index":2,"relevance_score":0.1},{"index":1,"relevance_score":0.001}],"id":"07734bd2","meta":{"api_version":{"version":"2","is_experimental":false},"billed_units":{"search_units":1}}}`
	for path, want := range map[string]string{"": "/v2/rerank", "/v2/": "/v2/rerank", "/v3": "/v3/rerank", "/gateway": "/gateway/v2/rerank"} {
		p, asked := start(t, path, 200, reply)
		r := p.Reranker("rerank-v4.0-pro", cohere.RerankConfig{})
		meter := llm.NewMeter(assay.Usage{})
		got, err := r.Rerank(llm.WithMeter(t.Context(), meter), "capital?", []string{"a", "b", "c", "d"})
		if diff := cmp.Diff([]float64{0.32713068, 0.001, 0.1, 0.999071}, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		want := `POST ` + want + ` {"model":"rerank-v4.0-pro","query":"capital?","documents":["a","b","c","d"],"max_tokens_per_doc":32764}`
		if diff := cmp.Diff([]string{want}, asked.Requests()); diff != "" {
			t.Errorf("the request (-want +got):\n%s", diff)
		}
		if spent := meter.Spent(); spent.Calls != 1 || spent.InputTokens == 0 {
			t.Errorf("spent %+v", spent)
		}
	}
}

// TestRerankTooLong checks that a text that the API would truncate is not sent.
func TestRerankTooLong(t *testing.T) {
	p, asked := start(t, "", 200, `{}`)
	for _, model := range []string{"rerank-v3.5", "another"} {
		_, err := p.Reranker(model, cohere.RerankConfig{}).Rerank(t.Context(), "capital?", []string{"a", strings.Repeat("word ", 4000)})
		if long, ok := errors.AsType[*llm.TooLongError](err); !ok || long.Text != 1 || long.Limit != 4096 || len(asked.Bodies) > 0 {
			t.Errorf("%v after %d requests, want a *TooLongError before any", err, len(asked.Bodies))
		}
	}
}

func TestEmbed(t *testing.T) {
	p, asked := start(t, "", 200, `{"id":"da6e531f","embeddings":{"float":[[3,4]]},"texts":["hello"],"meta":{"billed_units":{"input_tokens":2}}}`)
	e, err := p.Embedder("embed-v4.0", cohere.EmbedConfig{})
	if err != nil || e.Model() != "cohere/embed-v4.0" {
		t.Fatalf("%v, %v", e, err)
	}
	meter := llm.NewMeter(assay.Usage{})
	v, err := llm.EmbedQuery(llm.WithMeter(t.Context(), meter), e, "hello")
	if diff := cmp.Diff(llm.Vector{0.6, 0.8}, v); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	want := `POST /v2/embed {"model":"embed-v4.0","texts":["hello"],"input_type":"search_query","embedding_types":["float"],"truncate":"NONE"}`
	if diff := cmp.Diff([]string{want}, asked.Requests()); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(assay.Usage{Calls: 1, InputTokens: 2}, meter.Spent()); diff != "" {
		t.Errorf("spent (-want +got):\n%s", diff)
	}
	if _, err := p.Embedder("embed-v4.0", cohere.EmbedConfig{Dimensions: -1}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("vectors of -1 dimensions: %v, want assay.ErrInvalid", err)
	}
}

func TestEmbedTooLong(t *testing.T) {
	p, _ := start(t, "", 400, `{"id":"1","message":"invalid request: too many tokens: the text at index 0 exceeds the maximum"}`)
	e, err := p.Embedder("embed-english-v3.0", cohere.EmbedConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), llm.Passage, []string{"a", "b"}); !tooLong(err, 0) {
		t.Errorf("%v, want a *TooLongError about text 0", err)
	}
}

func tooLong(err error, text int) bool {
	long, ok := errors.AsType[*llm.TooLongError](err)
	return ok && long.Text == text
}

func TestFaults(t *testing.T) {
	tests := []struct {
		status  int
		message string
		want    llm.ErrorKind
	}{
		{429, "You are using a Trial key, which is limited to 1000 API calls / month.", llm.NoQuota},
		{429, "You are using a Trial key, which is limited to 10 API calls / minute.", llm.RateLimited},
		{498, "blocked input", llm.Filtered}, {404, "model 'x' not found", llm.NoModel}, {422, "invalid top_n", llm.BadRequest},
	}
	for _, test := range tests {
		p, _ := start(t, "", test.status, fmt.Sprintf(`{"id":"1","message":%q}`, test.message))
		_, err := p.Reranker("rerank-v3.5", cohere.RerankConfig{}).Rerank(t.Context(), "q", []string{"a"})
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != test.want || !strings.Contains(e.Message, test.message) {
			t.Errorf("%d %s: %v, want the kind %q", test.status, test.message, err, test.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := cohere.New(cohere.Config{BaseURL: "localhost:8080"}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("%v, want assay.ErrInvalid", err)
	}
}
