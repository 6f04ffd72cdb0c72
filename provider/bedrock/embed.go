package bedrock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/batch"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// atOnce is the number of concurrent requests of one call. Titan accepts one text in a request.
const atOnce = 4

// Embedder returns an embedding model by its ID or ARN: one of Titan Text Embeddings
// ("amazon.titan-embed-text-v2:0") or Cohere Embed ("cohere.embed-multilingual-v3"). dimensions
// applies to models with a choice; 0 selects the model's default. Any other model is ErrInvalid.
//
// Bedrock rejects a text that is too long, which is returned as an *llm.TooLongError.
func (p *Provider) Embedder(model string, dimensions int) (llm.Embedder, error) {
	name, foundation := p.config.Name+"/"+model, p.foundation(model)
	if dimensions < 0 || dimensions > assay.MaxDimensions {
		return nil, fmt.Errorf("embedder %s of %d dimensions: %w", name, dimensions, assay.ErrInvalid)
	}
	var fetch fetcher
	e := &embedder{Embedder: &batch.Embedder{}}
	switch {
	case strings.HasPrefix(foundation, "amazon.titan-embed-text"):
		fetch, e.Most, e.Limit.Tokens = titan(foundation, dimensions), 1, 8192
	case strings.HasPrefix(foundation, "cohere.embed"):
		fetch, e.Most = cohere(foundation, dimensions), 96
	default:
		return nil, fmt.Errorf("embedder %s: only Titan Text Embeddings and Cohere Embed are supported: %w", name, assay.ErrInvalid)
	}
	if dimensions > 0 {
		name += fmt.Sprintf("/%d", dimensions)
	}
	e.Client = &wire.Client{Name: name}
	e.Fetch = func(ctx context.Context, purpose llm.Purpose, texts []string) ([]batch.Row, int, error) {
		return p.invoke(ctx, name, model, fetch, purpose, texts)
	}
	return e, nil
}

// An embedder makes the requests of a call concurrently.
type embedder struct{ *batch.Embedder }

// Embed implements llm.Embedder.
func (e *embedder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	parts := slices.Collect(slices.Chunk(texts, e.Most))
	vectors, failed := make([][]llm.Vector, len(parts)), make([]error, len(parts))
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, part := range parts {
		g.Go(func() error {
			vectors[i], failed[i] = e.Embedder.Embed(inner, p, part)
			return failed[i]
		})
	}
	err := g.Wait()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("ask %s: %w", e.Model(), ctx.Err())
	}
	var all []llm.Vector
	for i, part := range vectors {
		if len(all) > 0 && len(part) > 0 && len(part[0]) != len(all[0]) {
			return all, cmp.Or(err, error(e.Client.Fail(llm.BadReply, "got vectors of %d dimensions, earlier ones had %d", len(part[0]), len(all[0]))))
		}
		all = append(all, part...)
		if failed[i] != nil {
			break
		}
	}
	for i := range failed { // the first text that is too long, by its index in the call
		if long, ok := errors.AsType[*llm.TooLongError](failed[i]); ok && errors.Is(err, failed[i]) {
			return all, &llm.TooLongError{Model: long.Model, Text: i*e.Most + long.Text, Tokens: long.Tokens, Limit: long.Limit}
		}
	}
	return all, err
}

// A fetcher implements the format of a family of embedding models.
type fetcher struct {
	request func(p llm.Purpose, texts []string) any
	rows    func(c *wire.Client, body []byte) (rows []batch.Row, tokens int, err error)
}

// titan implements the format of Titan Text Embeddings.
//
// Source: AWS, Amazon Bedrock User Guide, "Amazon Titan Embeddings G1 - Text" and "Amazon Titan
// Text Embeddings V2", request and response.
func titan(model string, dimensions int) fetcher {
	return fetcher{
		request: func(_ llm.Purpose, texts []string) any {
			in := map[string]any{"inputText": texts[0]}
			if strings.Contains(model, "-v2") {
				in["normalize"] = true
				if dimensions > 0 {
					in["dimensions"] = dimensions
				}
			}
			return in
		},
		rows: func(c *wire.Client, body []byte) ([]batch.Row, int, error) {
			var out struct {
				Embedding batch.Values `json:"embedding"`
				Tokens    int          `json:"inputTextTokenCount"`
			}
			err := c.Decode(body, &out)
			return []batch.Row{{Values: out.Embedding}}, out.Tokens, err
		},
	}
}

// cohere implements the format of Cohere Embed.
//
// Source: AWS, Amazon Bedrock User Guide, "Cohere Embed models", request and response.
func cohere(model string, dimensions int) fetcher {
	return fetcher{
		request: func(p llm.Purpose, texts []string) any {
			in := map[string]any{"texts": texts, "input_type": "search_document", "truncate": "NONE", "embedding_types": []string{"float"}}
			if p == llm.Query {
				in["input_type"] = "search_query"
			}
			if dimensions > 0 && strings.Contains(model, "v4") {
				in["output_dimension"] = dimensions
			}
			return in
		},
		rows: func(c *wire.Client, body []byte) ([]batch.Row, int, error) {
			var out struct {
				Embeddings struct {
					Float []batch.Values `json:"float"`
				} `json:"embeddings"`
			}
			err := c.Decode(body, &out)
			rows := make([]batch.Row, len(out.Embeddings.Float))
			for i, v := range out.Embeddings.Float {
				rows[i].Values = v
			}
			return rows, 0, err
		},
	}
}

// invoke makes one request to an embedding model.
func (p *Provider) invoke(ctx context.Context, name, model string, f fetcher, purpose llm.Purpose, texts []string) ([]batch.Row, int, error) {
	x, err := p.exchange(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	defer x.End()
	body, err := json.Marshal(f.request(purpose, texts))
	if err != nil {
		return nil, 0, x.Errors.Fail(llm.BadRequest, "encode the request: %v", err)
	}
	out, err := x.session.runtime.InvokeModel(x.Context, &bedrockruntime.InvokeModelInput{
		ModelId: &model, Body: body, ContentType: aws.String("application/json"), Accept: aws.String("application/json"),
	}, func(o *bedrockruntime.Options) { o.HTTPClient = x })
	if err != nil {
		return nil, 0, x.Fail(err, func(code, message string) (llm.ErrorKind, string) {
			return explainModel(model, x.session.Region, code, message)
		})
	}
	return f.rows(&x.Errors, out.Body)
}
