package openai

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/batch"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// The defaults of an EmbedConfig, and the size limit of a request.
const (
	defaultMaxTokens = 512
	defaultBatch     = 64
	maxBatchBytes    = 256 << 10 // OpenAI accepts 300,000 tokens in a request
)

// known lists OpenAI's models with the dimensions of their vectors and their token limit per text.
//
// Source: OpenAI, "Vector embeddings" and "Create embeddings".
var known = map[string]struct{ dimensions, maxTokens int }{
	"text-embedding-3-small": {1536, 8191},
	"text-embedding-3-large": {3072, 8191},
	"text-embedding-ada-002": {1536, 8191},
}

// An EmbedConfig describes an embedding model. For OpenAI's own models all of it is known.
type EmbedConfig struct {
	// Dimensions of its vectors. 0: known for OpenAI's models; for others, the server is queried.
	Dimensions int

	// Shorten requests vectors shortened to Dimensions, for models that support it. It is set
	// automatically for OpenAI's models with fewer dimensions than their own.
	Shorten bool

	// MaxTokens is the limit for one text. 0: 512, which the common models accept. If it exceeds
	// the server's limit, some servers return an error, and others (such as Ollama) truncate texts
	// silently.
	MaxTokens int

	// QueryPrefix and PassagePrefix are prefixes of texts, for models that were trained with them
	// ("search_query: "). A hash of them is part of the model's name.
	QueryPrefix, PassagePrefix string

	Batch int // largest number of texts in a request; 0: 64
}

// Embedder returns the embedding model that the server knows by name. If the number of dimensions
// is unknown, it requests a vector from the server.
func (p *Provider) Embedder(ctx context.Context, name string, c EmbedConfig) (llm.Embedder, error) {
	if c.Dimensions < 0 || c.MaxTokens < 0 || c.Batch < 0 {
		return nil, fmt.Errorf("the limits of %s/%s must not be negative: %w", p.c.Name, name, assay.ErrInvalid)
	}
	native, ok := known[name]
	if ok {
		c.Dimensions = cmp.Or(c.Dimensions, native.dimensions)
		c.Shorten = c.Shorten || c.Dimensions != native.dimensions
	}
	f := &fetcher{p: p, name: name, client: p.client}
	f.client.Name = p.c.Name + "/" + name
	if c.Dimensions == 0 {
		probe := batch.Embedder{Client: &f.client, Most: 1, Fetch: f.fetch}
		vectors, err := probe.Embed(ctx, llm.Passage, []string{"dimensions"})
		if err != nil {
			return nil, fmt.Errorf("ask %s for its dimensions: %w", f.client.Name, err)
		}
		c.Dimensions = len(vectors[0])
	}
	if c.Shorten {
		f.dimensions = c.Dimensions
	}
	f.client.Name = c.space(f.client.Name)
	e := &batch.Embedder{
		Client: &f.client, Most: cmp.Or(c.Batch, defaultBatch), Bytes: maxBatchBytes, Dimensions: c.Dimensions, Prefix: c.prefix, Fetch: f.fetch,
		Limit: batch.Limit{Tokens: cmp.Or(c.MaxTokens, native.maxTokens, defaultMaxTokens), Cuts: true}, // some servers reject the text instead
	}
	return e.Counting(), nil
}

// space returns the name of a model's embedding space: provider, model, dimensions and, if there
// are prefixes, their hash.
func (c EmbedConfig) space(model string) string {
	s := fmt.Sprintf("%s/%d", model, c.Dimensions)
	if c.QueryPrefix+c.PassagePrefix != "" {
		sum := sha256.Sum256([]byte(c.QueryPrefix + "\x00" + c.PassagePrefix))
		s += fmt.Sprintf("/%x", sum[:4])
	}
	return s
}

// prefix returns the prefix of a text.
func (c EmbedConfig) prefix(p llm.Purpose) string {
	if p == llm.Query {
		return c.QueryPrefix
	}
	return c.PassagePrefix
}

// A fetcher makes the requests to one embedding model.
type fetcher struct {
	p          *Provider
	name       string
	dimensions int // to which the server shortens vectors; 0: not sent
	client     wire.Client
}

// fetch makes one request. It is a batch.Embedder's Fetch.
func (f *fetcher) fetch(ctx context.Context, _ llm.Purpose, texts []string) ([]batch.Row, int, error) {
	body := embedRequest{Model: f.name, Input: texts, Encoding: "float", Dimensions: f.dimensions}
	var r embedReply
	err := f.client.JSON(ctx, http.MethodPost, f.p.url("embeddings", f.name), body, &r)
	if err == nil && r.Error != nil {
		err = r.Error.fail(&f.client)
	}
	if err != nil {
		return nil, 0, err
	}
	rows := make([]batch.Row, len(r.Data))
	for i, d := range r.Data {
		rows[i] = batch.Row{Index: d.Index, Values: batch.Values(d.Embedding)}
	}
	return rows, r.Usage.Prompt, nil
}

// An embedRequest is the body of an embeddings request.
//
// Source: OpenAI, API reference, "Create embeddings".
type embedRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Encoding   string   `json:"encoding_format"`
	Dimensions int      `json:"dimensions,omitempty"`
}

type embedReply struct {
	Data []struct {
		Index     *int   `json:"index"`
		Embedding vector `json:"embedding"`
	} `json:"data"`
	Usage struct {
		Prompt int `json:"prompt_tokens"`
	} `json:"usage"`
	Error *apiError `json:"error"`
}

// vector is a list of numbers, or for some servers always the base64 of its little-endian float32
// values.
type vector batch.Values

// UnmarshalJSON implements json.Unmarshaler.
func (v *vector) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		err := json.Unmarshal(data, (*batch.Values)(v))
		for i, x := range *v {
			(*v)[i] = float64(float32(x)) // the decimal form of a float32
		}
		return err
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("a vector in base64: %w", err)
	}
	if len(raw)%4 != 0 {
		return fmt.Errorf("a vector of %d bytes", len(raw))
	}
	*v = make(vector, len(raw)/4)
	for i := range *v {
		(*v)[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	return nil
}
