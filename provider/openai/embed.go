package openai

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/tokencount"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// The defaults of an EmbedConfig, and what a request holds at most.
const (
	defaultMaxTokens = 512
	defaultBatch     = 64
	maxBatchBytes    = 256 << 10 // OpenAI takes 300,000 tokens in a request
)

// known are the models of OpenAI: dimensions of their vectors, tokens of a text.
//
// Source: OpenAI, "Vector embeddings" and "Create embeddings".
var known = map[string]struct{ dimensions, maxTokens int }{
	"text-embedding-3-small": {1536, 8191},
	"text-embedding-3-large": {3072, 8191},
	"text-embedding-ada-002": {1536, 8191},
}

// An EmbedConfig describes a model that makes vectors. Of OpenAI's own all of it is
// known.
type EmbedConfig struct {
	// Dimensions of its vectors; 0: OpenAI's are known, and of another model the
	// server is asked.
	Dimensions int

	// Shorten has the server shorten the vectors to Dimensions, of models that were
	// made for it. It is so of OpenAI's with fewer dimensions than they have.
	Shorten bool

	// MaxTokens is the most tokens of one text; 0: 512, which the common models
	// take. More than the server takes is an error with some, and with others
	// (Ollama, for one) cuts texts silently.
	MaxTokens int

	// QueryPrefix and PassagePrefix are put before texts, of models that were trained
	// with such ("search_query: "). They are part of the model's name, as a hash.
	QueryPrefix, PassagePrefix string

	Batch int // texts of a request at most; 0: 64
}

// Embedder returns the embedding model that the server knows by name. The server is
// asked for a vector when the number of its dimensions is not known.
func (p *Provider) Embedder(ctx context.Context, name string, c EmbedConfig) (llm.Embedder, error) {
	if c.Dimensions < 0 || c.MaxTokens < 0 || c.Batch < 0 {
		return nil, fmt.Errorf("the limits of %s/%s are not numbers from 0 on: %w", p.c.Name, name, assay.ErrInvalid)
	}
	e := &embedder{p: p, name: name, c: c, client: p.client}
	e.client.Name = p.c.Name + "/" + name
	e.c.Batch = cmp.Or(c.Batch, defaultBatch)
	e.c.MaxTokens = cmp.Or(c.MaxTokens, known[name].maxTokens, defaultMaxTokens)
	if native := known[name].dimensions; native > 0 {
		e.c.Dimensions = cmp.Or(c.Dimensions, native)
		e.c.Shorten = c.Shorten || e.c.Dimensions != native
	}
	if e.c.Dimensions == 0 {
		vectors, err := e.request(ctx, []string{"dimensions"})
		if err != nil {
			return nil, fmt.Errorf("ask %s for its dimensions: %w", e.client.Name, err)
		}
		e.c.Dimensions = len(vectors[0])
	}
	e.client.Name = e.Model()
	return e, nil
}

// An embedder is one embedding model of a provider.
type embedder struct {
	p      *Provider
	name   string
	c      EmbedConfig
	client wire.Client
}

// Model implements llm.Embedder: provider, model, dimensions, and where texts get
// prefixes a hash of these.
func (e *embedder) Model() string {
	s := fmt.Sprintf("%s/%s/%d", e.p.c.Name, e.name, e.c.Dimensions)
	if e.c.QueryPrefix+e.c.PassagePrefix != "" {
		sum := sha256.Sum256([]byte(e.c.QueryPrefix + "\x00" + e.c.PassagePrefix))
		s += fmt.Sprintf("/%x", sum[:4])
	}
	return s
}

// Facts implements llm.Described: nothing but that the model is not in this process.
func (e *embedder) Facts() llm.Facts { return llm.Facts{} }

// MaxTokens implements llm.TokenCounter.
func (e *embedder) MaxTokens() int { return e.c.MaxTokens }

// Tokens implements llm.TokenCounter by an estimate: see package tokencount.
func (e *embedder) Tokens(text string) int {
	return max(tokencount.Estimate(e.c.QueryPrefix), tokencount.Estimate(e.c.PassagePrefix)) + tokencount.Estimate(text)
}

// Embed implements llm.Embedder.
func (e *embedder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	var vectors []llm.Vector
	for len(vectors) < len(texts) {
		batch, err := e.batch(texts, len(vectors))
		if len(batch) == 0 {
			return vectors, err
		}
		made, batchErr := e.embed(ctx, p, batch, len(vectors))
		vectors = append(vectors, made...)
		if batchErr != nil {
			return vectors, batchErr
		}
		if err != nil {
			return vectors, err
		}
	}
	return vectors, nil
}

// batch returns the texts of the next request: those from a given one on that fit
// into it, up to one that is too long.
func (e *embedder) batch(texts []string, from int) ([]string, error) {
	size := 0
	for i := from; i < len(texts); i++ {
		if n := e.Tokens(texts[i]); n > e.c.MaxTokens {
			return texts[from:i], &llm.TooLongError{Model: e.Model(), Text: i, Tokens: n, Limit: e.c.MaxTokens}
		}
		size += len(texts[i])
		if i > from && (i-from >= e.c.Batch || size > maxBatchBytes) {
			return texts[from:i], nil
		}
	}
	return texts[from:], nil
}

// embed embeds texts by one request. Where the server finds one of them too long
// after all, it halves them until it knows which; from is the place of the first in
// the call.
func (e *embedder) embed(ctx context.Context, p llm.Purpose, texts []string, from int) ([]llm.Vector, error) {
	prefix := e.c.PassagePrefix
	if p == llm.Query {
		prefix = e.c.QueryPrefix
	}
	input := make([]string, len(texts))
	for i, text := range texts {
		input[i] = prefix + text
		if input[i] == "" {
			input[i] = " " // OpenAI refuses an empty one
		}
	}
	vectors, err := e.request(ctx, input)
	if failed, ok := errors.AsType[*llm.Error](err); !ok || failed.Kind != llm.TooLong {
		return vectors, err
	}
	if len(texts) == 1 {
		long := &llm.TooLongError{Model: e.Model(), Text: from, Tokens: max(e.Tokens(texts[0]), e.c.MaxTokens+1), Limit: e.c.MaxTokens}
		return nil, fmt.Errorf("%w, says the server: %w", long, err)
	}
	half := len(texts) / 2
	first, err := e.embed(ctx, p, texts[:half], from)
	if err != nil {
		return first, err
	}
	second, err := e.embed(ctx, p, texts[half:], from+half)
	return append(first, second...), err
}

// An embedRequest is the body of a request for vectors.
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

// A vector is a list of numbers, or as some servers have it in any case, the bytes of
// them (float32, the least significant first) in base64.
type vector []float32

// UnmarshalJSON implements json.Unmarshaler.
func (v *vector) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, (*[]float32)(v))
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
		(*v)[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return nil
}

// request makes one request and returns the vectors of its input, in its order and at
// unit length.
func (e *embedder) request(ctx context.Context, input []string) ([]llm.Vector, error) {
	most := assay.Usage{Calls: 1}
	for _, text := range input {
		most.InputTokens += llm.EstimateTokens(text)
	}
	if err := llm.Room(ctx, most); err != nil {
		return nil, fmt.Errorf("embed by %s: %w", e.client.Name, err)
	}
	body := embedRequest{Model: e.name, Input: input, Encoding: "float"}
	if e.c.Shorten {
		body.Dimensions = e.c.Dimensions
	}
	var r embedReply
	err := e.client.JSON(ctx, http.MethodPost, e.p.url("embeddings", e.name), body, &r)
	if err == nil && r.Error != nil {
		err = r.Error.fail(&e.client)
	}
	if err != nil {
		llm.Report(ctx, assay.Usage{Calls: 1})
		return nil, err
	}
	llm.Report(ctx, assay.Usage{Calls: 1, InputTokens: cmp.Or(max(0, r.Usage.Prompt), most.InputTokens)})
	return e.vectors(r, len(input))
}

// vectors returns the vectors of a reply to n texts.
func (e *embedder) vectors(r embedReply, n int) ([]llm.Vector, error) {
	if len(r.Data) != n {
		return nil, e.client.Fail(llm.BadReply, "the reply holds %d vectors for %d texts", len(r.Data), n)
	}
	vectors := make([]llm.Vector, n)
	for i, d := range r.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= n || vectors[at] != nil {
			return nil, e.client.Fail(llm.BadReply, "the reply has no vector for each text, or two for one (index %d)", at)
		}
		if e.c.Dimensions > 0 && len(d.Embedding) != e.c.Dimensions {
			return nil, e.client.Fail(llm.BadReply, "the reply holds a vector of %d dimensions, want %d", len(d.Embedding), e.c.Dimensions)
		}
		if vectors[at] = unit(d.Embedding); vectors[at] == nil {
			return nil, e.client.Fail(llm.BadReply, "the reply holds a vector without a direction")
		}
	}
	return vectors, nil
}

// unit returns a vector at unit length; nil, if it has none: what is empty, zero or
// not finite.
func unit(v []float32) llm.Vector {
	square := 0.0
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	norm := math.Sqrt(square)
	if norm == 0 || math.IsNaN(norm) || math.IsInf(norm, 0) {
		return nil
	}
	made := make(llm.Vector, len(v))
	for i, x := range v {
		made[i] = float32(float64(x) / norm)
	}
	return made
}
