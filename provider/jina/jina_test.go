package jina_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/jina"
	"github.com/assay-rag/assay/provider/jina/jinatest"
)

func TestContract(t *testing.T) {
	t.Run("rerank", func(t *testing.T) { llmtest.TestRerankWire(t, jinatest.Rerank()) })
	t.Run("voyage", func(t *testing.T) { llmtest.TestRerankWire(t, jinatest.Voyage()) })
	t.Run("tei", func(t *testing.T) { llmtest.TestRerankWire(t, jinatest.TEI()) })
	t.Run("embed", func(t *testing.T) { llmtest.TestEmbedWire(t, jinatest.Embed()) })
}

// start starts a server that answers each request with the same reply and records the requests.
func start(t *testing.T, path string, status int, reply string) (*jina.Provider, *llmtest.Canned) {
	h := &llmtest.Canned{Status: status, Type: "application/json", Replies: []string{reply}, Repeat: true}
	p, err := jina.New(jina.Config{BaseURL: h.Start(t) + path, Key: secret.New("a-key-of-this-test")})
	if err != nil {
		t.Fatal(err)
	}
	return p, h
}

// TestRerank checks requests and scores. The replies are the examples of the services'
// documentation, shortened; llama.cpp's was recorded from its build b9844.
func TestRerank(t *testing.T) {
	tests := []struct {
		name, path, model string
		format            jina.Format
		reply, request    string
		want              []float64
	}{
		{"jina", "", "jina-reranker-v2-base-multilingual", jina.Jina,
			`{"model":"jina-reranker-v2-base-multilingual","usage":{"total_tokens":50},"results":[{"index":1,"document":{"text":"b"},"relevance_score":0.94},{"index":0,"relevance_score":0.08}]}`,
			`POST /v1/rerank {"model":"jina-reranker-v2-base-multilingual","query":"q","documents":["a","b"],"return_documents":false}`, []float64{0.08, 0.94}},
		{"llama.cpp", "/v1/", "m", jina.Jina,
			`{"model":"m","object":"list","usage":{"prompt_tokens":16,"total_tokens":16},"results":[{"index":1,"relevance_score":0.06010002642869949},{"index":0,"relevance_score":-0.21481336653232574}]}`,
			`POST /v1/rerank {"model":"m","query":"q","documents":["a","b"],"return_documents":false}`, []float64{-0.21481336653232574, 0.06010002642869949}},
		{"voyage", "/v1", "rerank-2.5", jina.Voyage,
			`{"object":"list","data":[{"relevance_score":0.4375,"index":1},{"relevance_score":0.42,"index":0}],"model":"rerank-2.5","usage":{"total_tokens":26}}`,
			`POST /v1/rerank {"model":"rerank-2.5","query":"q","documents":["a","b"],"return_documents":false,"truncation":false}`, []float64{0.42, 0.4375}},
		{"tei", "", "bge-reranker-large", jina.TEI, `[{"index":1,"score":0.9987},{"index":0,"score":0.0249}]`,
			`POST /rerank {"query":"q","texts":["a","b"],"truncate":false,"raw_scores":false}`, []float64{0.0249, 0.9987}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, asked := start(t, test.path, 200, test.reply)
			got, err := p.Reranker(test.model, jina.RerankConfig{Format: test.format}).Rerank(t.Context(), "q", []string{"a", "b"})
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff([]string{test.request}, asked.Requests()); diff != "" {
				t.Errorf("the request (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTooLong checks that a text that a service would truncate is not sent, and that a text that it
// rejects is a *TooLongError. The errors are llama.cpp's (recorded from build b9844) and TEI's
// (from its source).
func TestTooLong(t *testing.T) {
	p, asked := start(t, "", 200, `{}`)
	texts := []string{"a", strings.Repeat("word ", 8000)}
	for model, c := range map[string]jina.RerankConfig{"jina-reranker-v3": {}, "bge": {MaxTokens: 512}} {
		if _, err := p.Reranker(model, c).Rerank(t.Context(), "q", texts); !tooLong(err, 1) || len(asked.Bodies) > 0 {
			t.Errorf("%s: %v after %d requests, want a *TooLongError before any", model, err, len(asked.Bodies))
		}
	}
	refusals := map[jina.Format]struct {
		status int
		body   string
	}{
		jina.Jina: {500, `{"error":{"code":500,"message":"input (2003 tokens) is too large to process. increase the physical batch size (current batch size: 512)","type":"server_error"}}`},
		jina.TEI:  {413, "{\"error\":\"Input validation error: `inputs` must have less than 512 tokens. Given: 600\",\"error_type\":\"Validation\"}"},
	}
	for format, refusal := range refusals {
		p, _ := start(t, "", refusal.status, refusal.body)
		if _, err := p.Reranker("bge", jina.RerankConfig{Format: format}).Rerank(t.Context(), "q", texts); !tooLong(err, 1) {
			t.Errorf("%s: %v, want a *TooLongError about text 1", refusal.body, err)
		}
	}
}

func tooLong(err error, text int) bool {
	long, ok := errors.AsType[*llm.TooLongError](err)
	return ok && long.Text == text
}

// TestEmbed checks the task parameter, which depends on the model.
func TestEmbed(t *testing.T) {
	tests := []struct{ model, query, passage string }{
		{"jina-embeddings-v3", `"task":"retrieval.query",`, `"task":"retrieval.passage",`},
		{"jina-code-embeddings-1.5b", `"task":"nl2code.query",`, `"task":"nl2code.passage",`},
		{"jina-embeddings-v2-base-en", "", ""},
	}
	for _, test := range tests {
		p, asked := start(t, "", 200, `{"model":"m","object":"list","usage":{"total_tokens":6},"data":[{"object":"embedding","index":0,"embedding":[3,4]}]}`)
		e, err := p.Embedder(test.model, jina.EmbedConfig{})
		if err != nil {
			t.Fatal(err)
		}
		for _, purpose := range []llm.Purpose{llm.Query, llm.Passage} {
			made, err := llm.Embed(t.Context(), e, purpose, []string{"days"})
			if diff := cmp.Diff([]llm.Vector{{0.6, 0.8}}, made); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		}
		var want []string
		for _, task := range []string{test.query, test.passage} {
			want = append(want, `POST /v1/embeddings {"model":"`+test.model+`","input":["days"],`+task+`"normalized":true,"embedding_type":"float","truncate":false}`)
		}
		if diff := cmp.Diff(want, asked.Requests()); diff != "" {
			t.Errorf("the requests (-want +got):\n%s", diff)
		}
	}
	p, _ := start(t, "", 200, "")
	if _, err := p.Embedder("m", jina.EmbedConfig{Dimensions: -1}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("vectors of -1 dimensions: %v, want assay.ErrInvalid", err)
	}
}

func TestFaults(t *testing.T) {
	tests := []struct {
		status int
		body   string
		want   llm.ErrorKind
	}{
		{403, `{"detail":"[AUTHZ_INSUFFICIENT_BALANCE] Insufficient account balance"}`, llm.NoQuota},
		{403, `{"detail":"This resource is not allowed"}`, llm.BadKey},
		{413, `{"error":"batch size 64 > maximum allowed batch size 32","error_type":"Validation"}`, llm.BadRequest},
		{424, `{"error":"Inference failed","error_type":"backend"}`, llm.ServerError},
		{429, `{"error":"Model is overloaded","error_type":"Overloaded"}`, llm.Overloaded},
		{422, `{"detail":[{"loc":["body","model"],"msg":"field required"}]}`, llm.BadRequest},
	}
	for _, test := range tests {
		p, _ := start(t, "", test.status, test.body)
		_, err := p.Reranker("m", jina.RerankConfig{}).Rerank(t.Context(), "q", []string{"a"})
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != test.want {
			t.Errorf("%d %s: %v, want the kind %q", test.status, test.body, err, test.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := jina.New(jina.Config{BaseURL: "localhost:8080"}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("%v, want assay.ErrInvalid", err)
	}
}
