package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// MaxEmbedTexts is the most texts of one EmbedTexts.
const MaxEmbedTexts = 2048

// An EmbedRequest names texts of which vectors are wanted.
type EmbedRequest struct {
	Model   string // of the tenant's encoder; empty: whichever it is
	Purpose llm.Purpose
	Texts   []string // 1 to MaxEmbedTexts
}

// TextVectors are the vectors of texts.
type TextVectors struct {
	Model   string       // of the encoder
	Vectors []llm.Vector // one for each text
	Tokens  int          // read by the encoder; 0: it does not count them
}

// EmbedTexts returns the vectors of texts, made by the encoder of the tenant's documents. Nothing is
// stored. It returns assay.ErrInvalid if there is no encoder, if there are no texts or more than
// MaxEmbedTexts, and for a text that is empty, not valid UTF-8 or longer than the encoder reads
// (also an *llm.TooLongError). It returns assay.ErrNotFound if the encoder is another one. Calls of a remote encoder count for the principal's limits; if one is
// reached, the error is assay.ErrQuota.
func (e *Engine) EmbedTexts(ctx context.Context, principal assay.Principal, req EmbedRequest) (TextVectors, error) {
	ctx = e.outgoing(ctx)
	defer e.embedder.answering()()
	if err := checkEmbedTexts(req.Texts); err != nil {
		return TextVectors{}, err
	}
	if _, err := e.mayBegin(ctx, principal); err != nil {
		return TextVectors{}, err
	}
	model, encoder, err := e.embedder.encoder(ctx)
	if err != nil {
		return TextVectors{}, err
	}
	if req.Model != "" && req.Model != model {
		return TextVectors{}, fmt.Errorf("encoder %q, the tenant has %s: %w", req.Model, model, assay.ErrNotFound)
	}
	services := ""
	if isService(encoder) {
		services = model
	}
	made := TextVectors{Model: model, Tokens: tokensOf(encoder, req.Texts)}
	err = e.meteredSearch(ctx, principal, services, func(ctx context.Context) (err error) {
		made.Vectors, err = llm.Embed(llm.WithPrice(ctx, llm.FactsOf(encoder)), encoder, req.Purpose, req.Texts)
		return err
	})
	if _, long := errors.AsType[*llm.TooLongError](err); long {
		err = fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	if err != nil {
		return TextVectors{}, fmt.Errorf("embed %d texts: %w", len(req.Texts), err)
	}
	return made, nil
}

func checkEmbedTexts(texts []string) error {
	if n := len(texts); n == 0 || n > MaxEmbedTexts {
		return fmt.Errorf("embed %d texts, want 1 to %d: %w", n, MaxEmbedTexts, assay.ErrInvalid)
	}
	for i, text := range texts {
		if strings.TrimSpace(text) == "" || !utf8.ValidString(text) {
			return fmt.Errorf("text %d is empty or not valid UTF-8: %w", i, assay.ErrInvalid)
		}
	}
	return nil
}

// tokensOf returns the number of tokens that an encoder reads; 0: it does not count them.
func tokensOf(e llm.Embedder, texts []string) int {
	counter, ok := e.(llm.TokenCounter)
	if !ok {
		return 0
	}
	n := 0
	for _, text := range texts {
		n += counter.Tokens(text)
	}
	return n
}
