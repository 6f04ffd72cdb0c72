package bedrock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// atOnce is how many requests of one call are under way at a time.
const atOnce = 4

// An embedFormat is how a family of embedding models is asked.
//
// Source: AWS, Amazon Bedrock User Guide, "Amazon Titan Text Embeddings" and "Cohere
// Embed models", request and response.
type embedFormat struct {
	batch    int // texts in a request
	maxChars int // of a text
	request  func(e *embedder, p llm.Purpose, texts []string) any
	vectors  func(body []byte) ([]llm.Vector, error)
}

var titan = embedFormat{
	batch: 1, maxChars: 50_000,
	request: func(e *embedder, _ llm.Purpose, texts []string) any {
		in := map[string]any{"inputText": *nonEmpty(texts[0])}
		if strings.Contains(e.foundation, "-v2") {
			in["normalize"] = true
			if e.dimensions > 0 {
				in["dimensions"] = e.dimensions
			}
		}
		return in
	},
	vectors: func(body []byte) ([]llm.Vector, error) {
		var out struct {
			Embedding []*float32 `json:"embedding"`
		}
		if err := json.Unmarshal(body, &out); err != nil {
			return nil, err
		}
		v, err := whole(out.Embedding)
		return []llm.Vector{v}, err
	},
}

var cohere = embedFormat{
	batch: 96, maxChars: 2048,
	request: func(e *embedder, p llm.Purpose, texts []string) any {
		in := map[string]any{"input_type": "search_document", "truncate": "NONE", "embedding_types": []string{"float"}}
		if p == llm.Query {
			in["input_type"] = "search_query"
		}
		if e.dimensions > 0 && strings.Contains(e.foundation, "v4") {
			in["output_dimension"] = e.dimensions
		}
		sent := make([]string, len(texts))
		for i, text := range texts {
			sent[i] = *nonEmpty(text)
		}
		in["texts"] = sent
		return in
	},
	vectors: func(body []byte) ([]llm.Vector, error) {
		var out struct {
			Embeddings struct {
				Float [][]*float32 `json:"float"`
			} `json:"embeddings"`
		}
		if err := json.Unmarshal(body, &out); err != nil {
			return nil, err
		}
		vectors := make([]llm.Vector, len(out.Embeddings.Float))
		for i, f := range out.Embeddings.Float {
			v, err := whole(f)
			if err != nil {
				return nil, err
			}
			vectors[i] = v
		}
		return vectors, nil
	},
}

// whole returns a vector at unit length; one that has none, or a gap, is an error.
func whole(values []*float32) (llm.Vector, error) {
	v, square := make(llm.Vector, len(values)), 0.0
	for i, x := range values {
		if x == nil {
			return nil, errors.New("a vector has a gap")
		}
		v[i] = *x
		square += float64(*x) * float64(*x)
	}
	norm := math.Sqrt(square)
	if !(norm > 0) || math.IsInf(norm, 0) {
		return nil, errors.New("a vector has no length")
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / norm)
	}
	return v, nil
}

type embedder struct {
	provider   *Provider
	format     embedFormat
	id         string
	foundation string
	dimensions int // 0: the model's own
	name       string
}

// Embedder returns an embedding model by its ID or ARN: one of Titan Text Embeddings
// ("amazon.titan-embed-text-v2:0") or Cohere Embed ("cohere.embed-multilingual-v3").
// dimensions is for models that let one choose; 0: their own number. Another model is
// ErrInvalid.
func (p *Provider) Embedder(model string, dimensions int) (llm.Embedder, error) {
	e := &embedder{provider: p, id: model, foundation: p.foundation(model), dimensions: dimensions, name: p.config.Name + "/" + model}
	switch {
	case dimensions < 0 || dimensions > assay.MaxDimensions:
		return nil, fmt.Errorf("embedder %s of %d dimensions: %w", e.name, dimensions, assay.ErrInvalid)
	case strings.HasPrefix(e.foundation, "amazon.titan-embed-text"):
		e.format = titan
	case strings.HasPrefix(e.foundation, "cohere.embed"):
		e.format = cohere
	default:
		return nil, fmt.Errorf("embedder %s: only Titan Text Embeddings and Cohere Embed are known: %w", e.name, assay.ErrInvalid)
	}
	if dimensions > 0 {
		e.name += fmt.Sprintf("/%d", dimensions)
	}
	return e, nil
}

// Model implements llm.Embedder.
func (e *embedder) Model() string { return e.name }

// Facts implements llm.Described: nothing is known, but that it costs calls.
func (e *embedder) Facts() llm.Facts { return llm.Facts{} }

// Embed implements llm.Embedder.
func (e *embedder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	for i, text := range texts {
		if utf8.RuneCountInString(text) > e.format.maxChars {
			vectors, err := e.Embed(ctx, p, texts[:i])
			long := &llm.TooLongError{Model: e.name, Text: i, Tokens: llm.EstimateTokens(text), Limit: e.format.maxChars / 3}
			return vectors, errors.Join(err, long)
		}
	}
	n := (len(texts) + e.format.batch - 1) / e.format.batch
	parts, failed := make([][]llm.Vector, n), make([]error, n)
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i := range n {
		g.Go(func() error {
			if inner.Err() != nil {
				failed[i] = inner.Err()
				return failed[i]
			}
			batch := texts[i*e.format.batch : min(len(texts), (i+1)*e.format.batch)]
			parts[i], failed[i] = e.request(inner, p, batch)
			return failed[i]
		})
	}
	err := g.Wait()
	if ctx.Err() != nil {
		err = fmt.Errorf("ask %s: %w", e.name, ctx.Err())
	}
	var vectors []llm.Vector
	for i, part := range parts {
		if failed[i] != nil {
			break
		}
		vectors = append(vectors, part...)
	}
	return vectors, err
}

// request embeds as many texts as a request takes.
func (e *embedder) request(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	most := assay.Usage{Calls: 1}
	for _, text := range texts {
		most.InputTokens += llm.EstimateTokens(text)
	}
	if err := llm.Room(ctx, most); err != nil {
		return nil, err
	}
	x, err := e.provider.exchange(ctx, e.name)
	if err != nil {
		return nil, err
	}
	defer x.end()
	defer llm.Report(ctx, most)
	body, err := json.Marshal(e.format.request(e, p, texts))
	if err != nil {
		return nil, x.errors.Fail(llm.BadRequest, "encode the request: %v", err)
	}
	out, err := x.session.runtime.InvokeModel(x.ctx, &bedrockruntime.InvokeModelInput{
		ModelId: &e.id, Body: body, ContentType: aws.String("application/json"), Accept: aws.String("application/json"),
	}, func(o *bedrockruntime.Options) { o.HTTPClient = x })
	if err != nil {
		return nil, x.fail(err, func(code, message string) (llm.ErrorKind, string) {
			return explainModel(e.id, x.session.region, code, message)
		})
	}
	vectors, err := e.format.vectors(out.Body)
	switch {
	case err != nil:
		return nil, x.errors.Fail(llm.BadReply, "the reply has no vectors: %v", err)
	case len(vectors) != len(texts):
		return nil, x.errors.Fail(llm.BadReply, "%d vectors for %d texts", len(vectors), len(texts))
	}
	for _, v := range vectors {
		if len(v) != len(vectors[0]) || len(v) > assay.MaxDimensions || e.dimensions > 0 && len(v) != e.dimensions {
			return nil, x.errors.Fail(llm.BadReply, "a vector of %d dimensions", len(v))
		}
	}
	return vectors, nil
}
