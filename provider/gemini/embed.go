package gemini

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/batch"
)

// maxBatch is the largest number of texts in a request.
const maxBatch = 100

// limits are the token limits of the models for one text. The API truncates longer texts silently.
//
// Source: "Embeddings" at ai.google.dev/gemini-api/docs, model versions.
var limits = map[string]int{"gemini-embedding-001": 2048, "gemini-embedding-2": 8192, "gemini-embedding-2-preview": 8192}

// An EmbedConfig configures an embedding model.
type EmbedConfig struct {
	Dimensions int // of the vectors; 0: the model's default
	MaxTokens  int // limit per text; 0: known for Google's models, else 2,048
}

// Embedder returns the embedding model with the given name, for example "gemini-embedding-001".
// Texts are measured by a cautious estimate before they are sent, since the API truncates texts
// that are too long. Negative numbers are assay.ErrInvalid.
//
// Models from gemini-embedding-2 on receive the purpose of a text as a prefix, earlier ones as a
// field of the request.
func (p *Provider) Embedder(name string, c EmbedConfig) (llm.Embedder, error) {
	if c.Dimensions < 0 || c.MaxTokens < 0 {
		return nil, fmt.Errorf("the limits of %s/%s must not be negative: %w", p.name, name, assay.ErrInvalid)
	}
	name = strings.TrimPrefix(name, "models/")
	client, url := p.of(name)
	if c.Dimensions > 0 {
		client.Name = fmt.Sprintf("%s/%d", client.Name, c.Dimensions)
	}
	e := &batch.Embedder{Client: &client, Most: maxBatch, Limit: batch.Limit{Tokens: cmp.Or(c.MaxTokens, limits[name], 2048), Cuts: true}}
	byWords := strings.HasPrefix(name, "gemini-embedding-2")
	if byWords {
		e.Prefix = prefix
	}
	e.Fetch = func(ctx context.Context, purpose llm.Purpose, texts []string) ([]batch.Row, int, error) {
		in := embedRequest{Requests: make([]embedText, len(texts))}
		for i, text := range texts {
			in.Requests[i] = embedText{Model: "models/" + name, Content: content{Parts: []part{{Text: text}}}, Dimensions: c.Dimensions}
			if !byWords {
				in.Requests[i].Task = tasks[purpose]
			}
		}
		var out struct {
			Embeddings []struct {
				Values batch.Values `json:"values"`
			} `json:"embeddings"`
		}
		if err := client.JSON(ctx, http.MethodPost, url+":batchEmbedContents", in, &out); err != nil {
			return nil, 0, err
		}
		rows := make([]batch.Row, len(out.Embeddings))
		for i, e := range out.Embeddings {
			rows[i].Values = e.Values
		}
		return rows, 0, nil
	}
	return e.Counting(), nil
}

// An embedRequest is the body of batchEmbedContents.
type embedRequest struct {
	Requests []embedText `json:"requests"`
}

type embedText struct {
	Model      string  `json:"model"`
	Content    content `json:"content"`
	Task       string  `json:"taskType,omitempty"`
	Dimensions int     `json:"outputDimensionality,omitempty"`
}

var tasks = map[llm.Purpose]string{llm.Passage: "RETRIEVAL_DOCUMENT", llm.Query: "RETRIEVAL_QUERY"}

// prefix returns the prefix of a text for gemini-embedding-2.
//
// Source: "Embeddings", task types of gemini-embedding-2.
func prefix(p llm.Purpose) string {
	if p == llm.Query {
		return "task: search result | query: "
	}
	return "title: none | text: "
}
