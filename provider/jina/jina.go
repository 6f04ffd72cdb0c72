// Package jina reaches rerankers and embedding models by the API of Jina AI, and
// rerankers behind servers whose API is like it: llama.cpp, vLLM and Infinity, whose
// format is the same; Text Embeddings Inference and Voyage AI, whose formats differ.
// Embedding models behind such servers speak OpenAI's format: see package openai.
//
// Sources: the OpenAPI description at api.jina.ai/openapi.json and the pages of the
// models at jina.ai; llama.cpp, tools/server/README.md; "Text Embeddings Inference API"
// at huggingface.github.io/text-embeddings-inference; "Rerankers" at docs.voyageai.com.
package jina

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/batch"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// DefaultURL is where Jina AI serves the API.
const DefaultURL = "https://api.jina.ai/v1"

// A Config says which service to reach, and how. Everything may be left out but the
// Key, which a service of one's own may do without.
type Config struct {
	Name    string        // of the provider, before the model's name; empty: "jina"
	BaseURL string        // /v1 is added where it ends in no version; empty: DefaultURL
	Key     secret.Secret // sent as a bearer token

	// Headers go with each request. Their values are taken for credentials.
	Headers map[string]string

	HTTP     *http.Client  // nil: one with net/http's defaults
	First    time.Duration // how long until a reply begins; 0: ten minutes
	Idle     time.Duration // how long a reply that has begun may be silent; 0: a minute
	MaxBytes int64         // of a reply; 0: 8 MiB
}

// A Provider makes rerankers and embedders of one service. It is safe for concurrent
// use.
type Provider struct {
	client wire.Client
	name   string
	base   string // without the version
	url    string // up to and with it
}

var versioned = lazyregexp.New(`/v\d+$`)

// New returns a provider. An address that is none is assay.ErrInvalid.
func New(c Config) (*Provider, error) {
	name := cmp.Or(c.Name, "jina")
	client, base, err := wire.Endpoint{
		Name: name, BaseURL: cmp.Or(c.BaseURL, DefaultURL), Key: c.Key, Headers: c.Headers,
		HTTP: c.HTTP, First: c.First, Idle: c.Idle, MaxBytes: c.MaxBytes,
	}.Client("Authorization", "Bearer ")
	if err != nil {
		return nil, err
	}
	p := &Provider{client: client, name: name, base: versioned.ReplaceAllString(base, ""), url: base}
	if p.base == base {
		p.url += "/v1"
	}
	p.client.Explain = explain
	return p, nil
}

// named returns a client that speaks of a model.
func (p *Provider) named(model string) wire.Client {
	c := p.client
	c.Name = p.name + "/" + model
	return c
}

// maxBatch is how many texts a request holds at most. Jina takes 2,048, servers of
// one's own fewer (TEI: 32).
const maxBatch = 32

// An EmbedConfig says how vectors are to be made.
type EmbedConfig struct {
	Dimensions int // of the vectors; 0: as many as the model makes by itself
}

// Embedder returns the model of that name that makes vectors: "jina-embeddings-v3". A
// text over the model's limit is refused by the service and so a *TooLongError. A
// number of dimensions below 0 is assay.ErrInvalid.
func (p *Provider) Embedder(model string, c EmbedConfig) (llm.Embedder, error) {
	if c.Dimensions < 0 {
		return nil, fmt.Errorf("vectors of %d dimensions: %w", c.Dimensions, assay.ErrInvalid)
	}
	client := p.named(model)
	if c.Dimensions > 0 {
		client.Name = fmt.Sprintf("%s/%d", client.Name, c.Dimensions)
	}
	fetch := func(ctx context.Context, purpose llm.Purpose, texts []string) ([]batch.Row, int, error) {
		in := embedRequest{Model: model, Input: texts, Task: task(model, purpose), Normalized: true, Type: "float", Dimensions: c.Dimensions}
		var out struct {
			Data []struct {
				Index     *int         `json:"index"`
				Embedding batch.Values `json:"embedding"`
			} `json:"data"`
			Usage usage `json:"usage"`
		}
		if err := client.JSON(ctx, http.MethodPost, p.url+"/embeddings", in, &out); err != nil {
			return nil, 0, err
		}
		rows := make([]batch.Row, len(out.Data))
		for i, d := range out.Data {
			if d.Index == nil {
				return nil, 0, client.Fail(llm.BadReply, "a vector that does not say of which text")
			}
			rows[i] = batch.Row{Index: d.Index, Values: d.Embedding}
		}
		return rows, out.Usage.Tokens, nil
	}
	return &batch.Embedder{Client: &client, Most: maxBatch, Fetch: fetch}, nil
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

// task returns what a model is told that a text is for; empty: it does not ask.
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

// A Format is how a server wants to be asked for scores.
type Format string

// The formats.
const (
	Jina   Format = ""       // POST …/v1/rerank with documents
	TEI    Format = "tei"    // POST …/rerank with texts
	Voyage Format = "voyage" // POST …/v1/rerank, told not to cut
)

// A RerankConfig says how texts are to be judged.
type RerankConfig struct {
	Format Format

	// MaxTokens is how many tokens of a query and a text together the model reads, of
	// a service that cuts what is longer (Infinity does): texts are then measured by a
	// cautious estimate before they are sent. 0: known of Jina's models; others are
	// trusted to refuse what is too long, as llama.cpp, TEI, vLLM and Voyage do.
	MaxTokens int
}

// limits are how many tokens Jina's models read of a query and a text.
//
// Source: the models' pages at jina.ai. jina-reranker-v2 is not here: it reads longer
// texts in pieces.
var limits = map[string]int{
	"jina-reranker-v3": 8192, "jina-reranker-m0": 10240, "jina-colbert-v2": 8192,
	"jina-reranker-v1-base-en": 8192, "jina-reranker-v1-turbo-en": 8192, "jina-reranker-v1-tiny-en": 8192,
}

// Reranker returns the reranker of that name: "jina-reranker-v3". The range of its
// scores is the model's: [0, 1] of most, [-1, 1] of jina-reranker-v3, which compares
// directions; any number of models behind llama.cpp, whose scores are logits. TEI and
// Voyage put theirs into [0, 1].
func (p *Provider) Reranker(model string, c RerankConfig) llm.Reranker {
	client := p.named(model)
	r := &batch.Reranker{Client: &client}
	if n := cmp.Or(max(0, c.MaxTokens), limits[model]); n > 0 {
		r.Limit = batch.Limit{Tokens: n, Cuts: true}
	}
	if c.Format == TEI {
		r.Fetch = func(ctx context.Context, query string, texts []string) ([]batch.Score, int, error) {
			return askTEI(ctx, &client, p.base+"/rerank", query, texts)
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
			Data    []batch.Score `json:"data"` // Voyage's word for results
			Usage   usage         `json:"usage"`
		}
		err := client.JSON(ctx, http.MethodPost, p.url+"/rerank", in, &out)
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

// askTEI asks a server of Text Embeddings Inference, which serves one model.
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

// explain reads the body of a failure: Jina's, whose codes say more than the status,
// and those of the servers whose API is like Jina's.
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
		f.Kind = llm.BadRequest // TEI's, with the status of a text that is too long
	case (status == 400 || status == 413 || status == 422 || status == 500) && batch.SaysTooLong(lower):
		f.Kind = llm.TooLong // llama.cpp says so with the status 500
	case isTEI(body, "backend"):
		f.Kind = llm.ServerError // with the status 424
	case isTEI(body, "overloaded"):
		f.Kind = llm.Overloaded // with the status 429
	}
	return f
}

// isTEI reports whether an error is TEI's of the given type.
func isTEI(body []byte, kind string) bool {
	var reply struct {
		Type string `json:"error_type"`
	}
	return json.Unmarshal(body, &reply) == nil && strings.EqualFold(reply.Type, kind)
}
