// Package jina implements rerankers and embedding models with the API of Jina AI, and rerankers
// behind servers with similar APIs. llama.cpp, vLLM and Infinity use the same format; Text
// Embeddings Inference and Voyage AI use others. Embedding models behind such servers use OpenAI's
// format: see package openai.
//
// Sources: the OpenAPI description at api.jina.ai/openapi.json and the pages of the models at
// jina.ai; llama.cpp, tools/server/README.md; "Text Embeddings Inference API" at
// huggingface.github.io/text-embeddings-inference; "Rerankers" at docs.voyageai.com.
package jina

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

// DefaultURL is the address of the API at Jina AI.
const DefaultURL = "https://api.jina.ai/v1"

// A Config configures a service. All fields are optional, except Key, which only a self-hosted
// service may not need.
type Config struct {
	Name    string        // provider name, prefix of the model's name; empty: "jina"
	BaseURL string        // /v1 is appended if it ends in no version; empty: DefaultURL
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
	s, err := batch.Open(wire.Endpoint(c), wire.Service{Name: "jina", URL: DefaultURL, Header: "Authorization", Prefix: "Bearer ", Explain: explain}, "/v1")
	if err != nil {
		return nil, err
	}
	return &Provider{s}, nil
}

// maxBatch is the largest number of texts in a request. Jina accepts 2,048, self-hosted servers
// fewer (TEI: 32).
const maxBatch = 32

// An EmbedConfig configures an embedding model.
type EmbedConfig struct {
	Dimensions int // of the vectors; 0: the model's default
}

// Embedder returns the embedding model with the given name, for example "jina-embeddings-v3". A
// text over the model's limit is rejected by the service and returned as a *TooLongError. A
// negative number of dimensions is assay.ErrInvalid.
func (p *Provider) Embedder(model string, c EmbedConfig) (llm.Embedder, error) {
	fetch := func(ctx context.Context, client *wire.Client, purpose llm.Purpose, texts []string) ([]batch.Row, int, error) {
		in := embedRequest{Model: model, Input: texts, Task: task(model, purpose), Normalized: true, Type: "float", Dimensions: c.Dimensions}
		var out struct {
			Data []struct {
				Index     *int         `json:"index"`
				Embedding batch.Values `json:"embedding"`
			} `json:"data"`
			Usage usage `json:"usage"`
		}
		if err := client.JSON(ctx, http.MethodPost, p.service.URL+"/embeddings", in, &out); err != nil {
			return nil, 0, err
		}
		rows := make([]batch.Row, len(out.Data))
		for i, d := range out.Data {
			if d.Index == nil {
				return nil, 0, client.Fail(llm.BadReply, "a vector without an index")
			}
			rows[i] = batch.Row{Index: d.Index, Values: d.Embedding}
		}
		return rows, out.Usage.Tokens, nil
	}
	return p.service.Embedder(model, c.Dimensions, maxBatch, fetch)
}

type embedRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Task       string   `json:"task,omitempty"`
	Normalized bool     `json:"normalized"`
	Type       string   `json:"embedding_type"`
	Truncate   bool     `json:"truncate"` // false: a text that is too long is an error
	Dimensions int      `json:"dimensions,omitempty"`
}

type usage struct {
	Tokens int `json:"total_tokens"`
}

// task returns the task parameter for a purpose, or "" if the model has none.
func task(model string, p llm.Purpose) string {
	name := "retrieval"
	switch {
	case strings.Contains(model, "-v2"):
		return ""
	case strings.Contains(model, "code"):
		name = "nl2code"
	}
	if p == llm.Query {
		return name + ".query"
	}
	return name + ".passage"
}

// A Format is the request format of a server for reranking.
type Format string

// The formats.
const (
	Jina   Format = ""       // POST …/v1/rerank with documents
	TEI    Format = "tei"    // POST …/rerank with texts
	Voyage Format = "voyage" // POST …/v1/rerank, with truncation off
)

// A RerankConfig configures a reranker.
type RerankConfig struct {
	Format Format

	// MaxTokens is the limit for a query and a text together, for a service that truncates longer
	// input, as Infinity does. Texts are then measured by a cautious estimate before they are sent.
	// 0: known for Jina's models; others are expected to reject input that is too long, as
	// llama.cpp, TEI, vLLM and Voyage do.
	MaxTokens int
}

// limits are the token limits of Jina's models for a query and a text together.
//
// Source: the models' pages at jina.ai. jina-reranker-v2 is missing because it reads longer texts
// in pieces.
var limits = map[string]int{
	"jina-reranker-v3": 8192, "jina-reranker-m0": 10240, "jina-colbert-v2": 8192,
	"jina-reranker-v1-base-en": 8192, "jina-reranker-v1-turbo-en": 8192, "jina-reranker-v1-tiny-en": 8192,
}

// Reranker returns the reranker with the given name, for example "jina-reranker-v3". The range of
// its scores depends on the model: [0, 1] for most, [-1, 1] for jina-reranker-v3, which computes
// cosines, and unbounded for models behind llama.cpp, whose scores are logits. TEI and Voyage
// normalise scores to [0, 1].
func (p *Provider) Reranker(model string, c RerankConfig) llm.Reranker {
	client := p.service.Model(model)
	r := &batch.Reranker{Client: client}
	if n := cmp.Or(max(0, c.MaxTokens), limits[model]); n > 0 {
		r.Limit = batch.Limit{Tokens: n, Cuts: true}
	}
	if c.Format == TEI {
		r.Fetch = func(ctx context.Context, query string, texts []string) ([]batch.Score, int, error) {
			return askTEI(ctx, client, p.service.Root+"/rerank", query, texts)
		}
		return r
	}
	r.Fetch = func(ctx context.Context, query string, texts []string) ([]batch.Score, int, error) {
		in := rerankRequest{Model: model, Query: query, Documents: texts}
		if c.Format == Voyage {
			in.Truncation = new(bool)
		}
		var out struct {
			Results []batch.Score `json:"results"`
			Data    []batch.Score `json:"data"` // Voyage's name of results
			Usage   usage         `json:"usage"`
		}
		err := client.JSON(ctx, http.MethodPost, p.service.URL+"/rerank", in, &out)
		if c.Format == Voyage {
			out.Results = out.Data
		}
		return out.Results, out.Usage.Tokens, err
	}
	return r
}

type rerankRequest struct {
	Model           string   `json:"model"`
	Query           string   `json:"query"`
	Documents       []string `json:"documents"`
	ReturnDocuments bool     `json:"return_documents"`
	Truncation      *bool    `json:"truncation,omitempty"`
}

// askTEI calls a Text Embeddings Inference server, which serves one model.
func askTEI(ctx context.Context, client *wire.Client, url, query string, texts []string) ([]batch.Score, int, error) {
	in := struct {
		Query     string   `json:"query"`
		Texts     []string `json:"texts"`
		Truncate  bool     `json:"truncate"`
		RawScores bool     `json:"raw_scores"`
	}{Query: query, Texts: texts}
	var out []struct {
		Index *int     `json:"index"`
		Score *float64 `json:"score"`
	}
	if err := client.JSON(ctx, http.MethodPost, url, in, &out); err != nil {
		return nil, 0, err
	}
	scores := make([]batch.Score, len(out))
	for i, s := range out {
		scores[i] = batch.Score{Index: s.Index, Value: s.Score}
	}
	return scores, 0, nil
}

// explain parses the body of a failed response: Jina's, whose codes are more specific than the
// status, and those of servers with similar APIs.
func explain(status int, _ http.Header, body []byte) wire.Fault {
	message := wire.Message(body)
	lower := strings.ToLower(message)
	f := wire.Fault{Message: message}
	switch {
	case strings.Contains(string(body), "AUTHZ_INSUFFICIENT_BALANCE"), status == http.StatusForbidden && strings.Contains(lower, "balance"):
		f.Kind = llm.NoQuota
	case strings.Contains(string(body), "INPUT_MODEL_NOT_FOUND"):
		f.Kind = llm.NoModel
	case strings.Contains(lower, "batch size") && strings.Contains(lower, "maximum allowed"):
		f.Kind = llm.BadRequest // TEI uses the status of a text that is too long
	case (status == 400 || status == 413 || status == 422 || status == 500) && batch.SaysTooLong(lower):
		f.Kind = llm.TooLong // llama.cpp uses the status 500
	case isTEI(body, "backend"):
		f.Kind = llm.ServerError // with the status 424
	case isTEI(body, "overloaded"):
		f.Kind = llm.Overloaded // with the status 429
	}
	return f
}

// isTEI reports whether an error is one of TEI's with the given type.
func isTEI(body []byte, kind string) bool {
	var reply struct {
		Type string `json:"error_type"`
	}
	return json.Unmarshal(body, &reply) == nil && strings.EqualFold(reply.Type, kind)
}
