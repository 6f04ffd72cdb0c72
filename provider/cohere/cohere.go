// Package cohere implements rerankers and embedding models with version 2 of Cohere's API: Cohere's
// own, and others behind compatible servers (vLLM, LiteLLM, OpenVINO).
//
// Sources: "Rerank" and "Embed" in the API reference, version 2, and "Best Practices for using
// Rerank" at docs.cohere.com; cohere-ai/cohere-go 2.15.3, which is generated from Cohere's OpenAPI
// description.
package cohere

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/batch"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// DefaultURL is the address of the API at Cohere.
const DefaultURL = "https://api.cohere.com/v2"

// A Config configures a service. All fields are optional, except Key, which only a self-hosted
// service may not need.
type Config struct {
	Name    string        // provider name, prefix of the model's name; empty: "cohere"
	BaseURL string        // /v2 is appended if it ends in no version; empty: DefaultURL
	Key     secret.Secret // sent as a bearer token

	// Headers are sent with each request. Their values are treated as credentials.
	Headers map[string]string

	HTTP     *http.Client  // nil: one that reaches the host of the service alone
	First    time.Duration // longest wait for the start of a reply; 0: ten minutes
	Idle     time.Duration // longest silence within a reply; 0: a minute
	MaxBytes int64         // largest reply; 0: 8 MiB
}

// A Provider returns rerankers and embedders of one service. It is safe for concurrent use.
type Provider struct{ service *batch.Service }

// New returns a provider. An invalid address is assay.ErrInvalid.
func New(c Config) (*Provider, error) {
	s, err := batch.Open(wire.Endpoint(c), wire.Service{Name: "cohere", URL: DefaultURL, Header: "Authorization", Prefix: "Bearer ", Explain: explain}, "/v2")
	if err != nil {
		return nil, err
	}
	return &Provider{s}, nil
}

// A RerankConfig configures a reranker.
type RerankConfig struct {
	MaxTokens int // of query and text together; 0: known for Cohere's models, else 4,096
}

// Reranker returns the reranker with the given name, for example "rerank-v4.0-fast". The scores of
// Cohere's own models are in [0, 1]; those of others depend on the server.
//
// The API truncates texts over a limit silently. So texts are measured by a cautious estimate
// before they are sent, and one that is too long is a *TooLongError.
func (p *Provider) Reranker(model string, c RerankConfig) llm.Reranker {
	client := p.service.Model(model)
	limit := cmp.Or(max(0, c.MaxTokens), window(model))
	fetch := func(ctx context.Context, query string, texts []string) ([]batch.Score, int, error) {
		in := rerankRequest{Model: model, Query: query, Documents: texts, MaxTokensPerDoc: limit}
		var out struct {
			Results []batch.Score `json:"results"`
			Meta    meta          `json:"meta"`
		}
		err := client.JSON(ctx, http.MethodPost, p.service.URL+"/rerank", in, &out)
		return out.Results, out.Meta.tokens(), err
	}
	return &batch.Reranker{Client: client, Limit: batch.Limit{Tokens: limit, Cuts: true}, Fetch: fetch}
}

// window returns the token limit of a model for a query and a text together.
//
// Source: "Best Practices for using Rerank", document chunking.
func window(model string) int {
	if strings.Contains(model, "rerank-v4") {
		return 32764
	}
	return 4096
}

type rerankRequest struct {
	Model           string   `json:"model"`
	Query           string   `json:"query"`
	Documents       []string `json:"documents"`
	MaxTokensPerDoc int      `json:"max_tokens_per_doc"`
}

// A meta contains the billed units of a call.
type meta struct {
	Billed struct {
		InputTokens float64 `json:"input_tokens"`
	} `json:"billed_units"`
}

func (m meta) tokens() int { return int(min(max(0, m.Billed.InputTokens), 1e9)) }

// maxBatch is the largest number of texts in a request.
const maxBatch = 96

// An EmbedConfig configures an embedding model.
type EmbedConfig struct {
	Dimensions int // of the vectors; 0: the model's default
}

// Embedder returns the embedding model with the given name, for example "embed-v4.0". A text over
// the model's limit is rejected by the service and returned as a *TooLongError. A negative number
// of dimensions is assay.ErrInvalid.
func (p *Provider) Embedder(model string, c EmbedConfig) (llm.Embedder, error) {
	fetch := func(ctx context.Context, client *wire.Client, purpose llm.Purpose, texts []string) ([]batch.Row, int, error) {
		in := embedRequest{Model: model, Texts: texts, InputType: types[purpose], Types: []string{"float"}, Truncate: "NONE", Dimensions: c.Dimensions}
		var out struct {
			Embeddings struct {
				Float []batch.Values `json:"float"`
			} `json:"embeddings"`
			Meta meta `json:"meta"`
		}
		if err := client.JSON(ctx, http.MethodPost, p.service.URL+"/embed", in, &out); err != nil {
			return nil, 0, err
		}
		rows := make([]batch.Row, len(out.Embeddings.Float))
		for i, values := range out.Embeddings.Float {
			rows[i].Values = values
		}
		return rows, out.Meta.tokens(), nil
	}
	return p.service.Embedder(model, c.Dimensions, maxBatch, fetch)
}

type embedRequest struct {
	Model      string   `json:"model"`
	Texts      []string `json:"texts"`
	InputType  string   `json:"input_type"`
	Types      []string `json:"embedding_types"`
	Truncate   string   `json:"truncate"` // NONE: a text that is too long is an error
	Dimensions int      `json:"output_dimension,omitempty"`
}

var types = map[llm.Purpose]string{llm.Passage: "search_document", llm.Query: "search_query"}

// explain parses the body of a failed response.
//
// Source: "Errors" at docs.cohere.com; 498 and 499 are Cohere's own.
func explain(status int, _ http.Header, body []byte) wire.Fault {
	var reply struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &reply) != nil {
		reply.Message = ""
	}
	f := wire.Fault{Message: reply.Message}
	message := strings.ToLower(wire.Message(body))
	switch {
	case status == 498:
		f.Kind = llm.Filtered
	case status == 400 || status == 422:
		if batch.SaysTooLong(message) {
			f.Kind = llm.TooLong
		}
	case status == 429 && strings.Contains(message, "month"):
		f.Kind = llm.NoQuota // a trial key has a monthly limit of calls
	}
	return f
}
