package config

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/llm"
)

// encoderForm is the form of the name of a provider's encoder. The name contains everything that
// its vectors depend on, as far as the program knows without asking a server:
//
//	PROVIDER/MODEL[/DIMENSIONS][@PREFIXES]
//
// DIMENSIONS is present if the configuration shortens vectors. PREFIXES is a hash of the prefixes
// that it configures for texts, if any.
var encoderForm = lazyregexp.New(`^([^/]+)/(.+?)(?:/(\d+))?(?:@([0-9a-f]{8}))?$`)

// EncoderName returns the name of the encoder that the configuration defines for PROVIDER/MODEL.
func (c *Config) EncoderName(model string) string {
	provider, name, _ := strings.Cut(model, "/")
	f := c.factsOf(provider, name)
	if f.Dimensions > 0 {
		model += fmt.Sprintf("/%d", f.Dimensions)
	}
	return model + f.prefixes()
}

// prefixes returns the part of an encoder's name that identifies its prefixes.
func (f modelFacts) prefixes() string {
	if f.QueryPrefix+f.PassagePrefix == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(f.QueryPrefix + "\x00" + f.PassagePrefix))
	return fmt.Sprintf("@%x", sum[:4])
}

// DefaultEncoder returns the name of the configured encoder, or "" for the local one.
func (c *Config) DefaultEncoder() string {
	if c.Embedding.IsLocal() {
		return ""
	}
	return c.EncoderName(c.Embedding.Name())
}

// HasProvider reports whether name is that of a provider's model or encoder.
func (c *Config) HasProvider(name string) bool {
	provider, model, ok := strings.Cut(name, "/")
	return ok && model != "" && c.Providers[provider] != nil
}

// Encoder opens an encoder by the name that EncoderName returned. It may request a vector from the
// provider.
func (s *Set) Encoder(ctx context.Context, name string) (llm.Embedder, error) {
	m := encoderForm.FindStringSubmatch(name)
	if m == nil {
		return nil, fmt.Errorf("%s is not a provider's encoder: %w", shown(name), assay.ErrNotFound)
	}
	provider, model := m[1], m[2]
	f := s.c.factsOf(provider, model)
	f.Dimensions, _ = strconv.Atoi(m[3]) // none: the model's default
	if m[4] != strings.TrimPrefix(f.prefixes(), "@") {
		return nil, &Error{
			Where: s.c.where(), Line: s.c.file.line("models", provider+"/"+model),
			Detail: fmt.Sprintf("the vectors of %s were made with other prefixes than those of models.%s/%s", name, provider, model),
			Hint:   "restore query_prefix and passage_prefix, or make new vectors with: assay models use " + s.c.EncoderName(provider+"/"+model),
		}
	}
	e, err := s.endpoint(provider)
	if err != nil {
		return nil, err
	}
	if e.embed == nil {
		return nil, &Error{Where: s.c.where(), Line: s.c.Embedding.Line, Detail: provider + " has no embedding models", Hint: "use a provider of type openai, gemini, cohere, jina or bedrock"}
	}
	made, err := e.embed(ctx, model, f)
	if err != nil {
		return nil, s.c.Secrets.scrubError(err)
	}
	made = e.guard.Embedder(made)
	enc := encoder{inner: made, name: name, secrets: &s.c.Secrets, price: llm.Facts{Priced: f.Priced, Input: f.Input}}
	if counter, ok := made.(llm.TokenCounter); ok {
		return countingEncoder{enc, counter}, nil
	}
	return enc, nil
}

// An encoder is an embedder with its name in the data directory.
type encoder struct {
	inner   llm.Embedder
	name    string
	secrets *Secrets
	price   llm.Facts // as configured
}

func (e encoder) Model() string { return e.name }

// Facts implements llm.Described.
func (e encoder) Facts() llm.Facts {
	if f := llm.FactsOf(e.inner); f.Priced || !e.price.Priced {
		return f
	}
	return e.price
}

func (e encoder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	v, err := e.inner.Embed(ctx, p, texts)
	return v, e.secrets.scrubError(err)
}

// A countingEncoder is an encoder that also counts tokens.
type countingEncoder struct {
	encoder
	llm.TokenCounter
}
