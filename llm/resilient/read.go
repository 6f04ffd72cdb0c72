package resilient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// A Read is a call without side effects, so it can be retried and hedged.
type Read struct {
	Name   string // of the service, for errors
	Tokens int    // estimated use of the endpoint's token limit

	// Once disables retries and hedging, for calls that are paid for per call.
	Once bool

	// Bulk disables hedging, because no caller waits for this single call.
	Bulk bool
}

// Do makes a read by g. It retries an *llm.Error of f whose kind is temporary and returns any other
// error unchanged. If reads are hedged, f may be called a second time concurrently, so it must be
// safe for that; when Do returns, both calls have ended. A panic of f is an *llm.Error of kind
// llm.BadReply.
//
// Spent counts every call of f and is also contained in the error.
func Do[T any](ctx context.Context, g *Guard, r Read, f func(context.Context) (T, error)) (T, Spent, error) {
	attempts, hedge := g.config.Attempts, g.config.HedgeAfter
	if r.Once {
		attempts = 1
	}
	if r.Once || r.Bulk {
		hedge = 0
	}
	attempt := llm.Attempts()
	c := &call[T]{
		guard: g, name: r.Name, most: attempts, tokens: r.Tokens,
		timeout: g.config.ReadTimeout, hedge: hedge,
		try: func(ctx context.Context) (T, error) { return f(attempt(ctx)) },
		use: func(_ T, err error) assay.Usage {
			if failed, _ := errors.AsType[*llm.Error](err); failed != nil {
				u := failed.Usage
				return assay.Usage{Calls: 1, InputTokens: within(u.InputTokens), OutputTokens: within(u.OutputTokens), CostMicros: max(0, u.CostMicros)}
			}
			return assay.Usage{Calls: 1}
		},
	}
	return c.do(ctx)
}

func within(tokens int) int { return min(max(0, tokens), maxTokens) }

// Texts are embedded in parts, each of which is a separate call. A provider takes about as many
// texts in a request.
const (
	partTexts  = 96
	partTokens = 50_000
)

// Embedder returns e with its calls made by g. It is an [llm.Described], and it is an
// [llm.TokenCounter] and an [llm.Linguist] if e is. It is no [llm.TokenEmbedder]. The vectors of e
// are checked against the contract of llm.Embedder. Queries are hedged, passages are not. On error
// it returns the vectors of the texts before the first failure.
func (g *Guard) Embedder(e llm.Embedder) llm.Embedder {
	guarded := embedder{guard: g, inner: e, name: e.Model()}
	counter, counts := e.(llm.TokenCounter)
	linguist, speaks := e.(llm.Linguist)
	switch {
	case counts && speaks:
		return struct {
			embedder
			llm.TokenCounter
			llm.Linguist
		}{guarded, counter, linguist}
	case counts:
		return struct {
			embedder
			llm.TokenCounter
		}{guarded, counter}
	case speaks:
		return struct {
			embedder
			llm.Linguist
		}{guarded, linguist}
	}
	return guarded
}

type embedder struct {
	guard *Guard
	inner llm.Embedder
	name  string
}

// Model implements llm.Embedder.
func (e embedder) Model() string { return e.name }

// Facts implements llm.Described.
func (e embedder) Facts() llm.Facts { return llm.FactsOf(e.inner) }

// Embed implements llm.Embedder.
func (e embedder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	var vectors []llm.Vector
	for len(vectors) < len(texts) {
		n, tokens := part(texts[len(vectors):])
		made, err := e.part(ctx, p, texts[len(vectors):][:n], tokens)
		if len(made) > 0 && len(vectors) > 0 && len(made[0]) != len(vectors[0]) {
			return vectors, &llm.BadOutputError{Model: e.name, Text: len(vectors), Detail: fmt.Sprintf("a vector of %d dimensions, the first %d", len(made[0]), len(vectors[0]))}
		}
		from := len(vectors)
		vectors = append(vectors, made...)
		if err != nil {
			return vectors, moved(err, from)
		}
	}
	return vectors, nil
}

// part returns the number of leading texts that make up a call, and their tokens.
func part(texts []string) (n, tokens int) {
	for n < min(len(texts), partTexts) {
		t := llm.EstimateTokens(texts[n])
		if n > 0 && tokens+t > partTokens {
			break
		}
		n, tokens = n+1, tokens+t
	}
	return n, tokens
}

// part embeds the texts of one call. On error it returns the vectors of a prefix.
func (e embedder) part(ctx context.Context, p llm.Purpose, texts []string, tokens int) ([]llm.Vector, error) {
	var mu sync.Mutex
	var kept []llm.Vector // the longest prefix of any failed attempt
	made, _, err := Do(ctx, e.guard, Read{Name: e.name, Tokens: tokens, Bulk: p == llm.Passage}, func(ctx context.Context) ([]llm.Vector, error) {
		vectors, err := llm.Embed(ctx, e.inner, p, texts)
		if err == nil {
			return vectors, nil
		}
		mu.Lock()
		defer mu.Unlock()
		if len(vectors) > len(kept) {
			kept = vectors
		}
		return nil, e.mended(err, len(texts))
	})
	if err != nil {
		return kept, err
	}
	return made, nil
}

// mended returns an embedder's error adjusted to the contract.
func (e embedder) mended(err error, texts int) error {
	if long, _ := errors.AsType[*llm.TooLongError](err); long != nil && (long.Text < 0 || long.Text >= texts) {
		return &llm.BadOutputError{Model: e.name, Text: -1, Detail: fmt.Sprintf("an error about text %d of %d", long.Text, texts)}
	}
	return err
}

// moved shifts the text index of an error of a part that starts at from to an index into all texts.
func moved(err error, from int) error {
	if long, _ := errors.AsType[*llm.TooLongError](err); long != nil {
		return &llm.TooLongError{Model: long.Model, Text: long.Text + from, Tokens: long.Tokens, Limit: long.Limit}
	}
	if bad, _ := errors.AsType[*llm.BadOutputError](err); bad != nil && bad.Text >= 0 {
		return &llm.BadOutputError{Model: bad.Model, Text: bad.Text + from, Detail: bad.Detail}
	}
	return err
}

// Reranker returns r with its calls made by g. A violation of the contract of llm.Reranker is an
// *llm.Error of kind llm.BadReply. The result is an [llm.Described].
func (g *Guard) Reranker(r llm.Reranker) llm.Reranker { return reranker{g, r, r.Model()} }

type reranker struct {
	guard *Guard
	inner llm.Reranker
	name  string
}

// Model implements llm.Reranker.
func (r reranker) Model() string { return r.name }

// Facts implements llm.Described.
func (r reranker) Facts() llm.Facts { return llm.FactsOf(r.inner) }

// Rerank implements llm.Reranker.
func (r reranker) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	tokens := llm.EstimateTokens(query)
	for _, text := range texts {
		tokens += llm.EstimateTokens(text)
	}
	scores, _, err := Do(ctx, r.guard, Read{Name: r.name, Tokens: tokens}, func(ctx context.Context) ([]float64, error) {
		scores, err := r.inner.Rerank(ctx, query, texts)
		if err != nil {
			return nil, err
		}
		return scores, r.check(scores, len(texts))
	})
	return scores, err
}

func (r reranker) check(scores []float64, texts int) error {
	if len(scores) != texts {
		return &llm.Error{Model: r.name, Kind: llm.BadReply, Message: fmt.Sprintf("%d scores for %d texts", len(scores), texts)}
	}
	for i, s := range scores {
		if math.IsNaN(s) || math.IsInf(s, 0) {
			return &llm.Error{Model: r.name, Kind: llm.BadReply, Message: fmt.Sprintf("the score of text %d is %v", i, s)}
		}
	}
	return nil
}
