// Package batch contains the common parts of embedders and rerankers over HTTP. Requests have a
// bounded size and are metered, and the rows of a reply are validated and put into the order of the
// texts.
package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/tokencount"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// maxBytes is the default size limit of a request's texts. Services limit the tokens of a request;
// the lowest known limit, Gemini's, is 20,000.
const maxBytes = 48 << 10

// A Limit is the known limit on the length of a text.
type Limit struct {
	Tokens int // of one text, or of query and text together; 0: unknown

	// Cuts reports that the service truncates longer texts instead of rejecting them. Such texts
	// are never sent: they are detected beforehand by a cautious estimate.
	Cuts bool
}

// An Embedder is an llm.Embedder over a service.
type Embedder struct {
	Client *wire.Client // its Name is that of the embedding space
	Most   int          // largest number of texts in a request, at least 1
	Bytes  int          // largest size of a request's texts, except a single one; 0: 48 KiB
	Limit  Limit

	Dimensions int // required dimensions; 0: any

	// Prefix returns the prefix of a text, for services that distinguish purposes by prefix. It may
	// be nil.
	Prefix func(p llm.Purpose) string

	// Fetch makes one request. It returns the unchecked rows of the reply and the tokens counted by
	// the service, or 0 if it does not report them.
	Fetch func(ctx context.Context, p llm.Purpose, texts []string) (rows []Row, tokens int, err error)
}

// A Row is the result for one text in a reply.
type Row struct {
	Index  *int // of the text in the request; nil if the reply has none
	Values Values
}

// Model implements llm.Embedder.
func (e *Embedder) Model() string { return e.Client.Name }

// Facts implements llm.Described. It reports only that the model is a service.
func (e *Embedder) Facts() llm.Facts { return llm.Facts{} }

// Counting returns e as an embedder that also counts tokens, by an estimate, if its limit is known
// and its service truncates longer texts. Otherwise it returns e.
func (e *Embedder) Counting() llm.Embedder {
	if e.Limit.Cuts && e.Limit.Tokens > 0 {
		return counting{e}
	}
	return e
}

// A counting is an Embedder that implements llm.TokenCounter.
type counting struct{ *Embedder }

func (c counting) Tokens(text string) int { return c.tokens(text) }

func (c counting) MaxTokens() int { return c.Limit.Tokens }

// tokens returns an estimate of the tokens of a text.
func (e *Embedder) tokens(text string) int {
	n := tokencount.Estimate(text)
	if e.Prefix != nil {
		n += max(tokencount.Estimate(e.Prefix(llm.Query)), tokencount.Estimate(e.Prefix(llm.Passage)))
	}
	return n
}

// Embed implements llm.Embedder.
func (e *Embedder) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	var vectors []llm.Vector
	for len(vectors) < len(texts) {
		n, err := e.next(texts, len(vectors))
		if n > 0 {
			made, err := e.some(ctx, p, texts[len(vectors):len(vectors)+n], len(vectors))
			if err == nil && len(vectors) > 0 && len(made[0]) != len(vectors[0]) {
				return vectors, e.Client.Fail(llm.BadReply, "got vectors of %d dimensions, earlier ones had %d", len(made[0]), len(vectors[0]))
			}
			vectors = append(vectors, made...)
			if err != nil {
				return vectors, err
			}
		}
		if err != nil {
			return vectors, err
		}
	}
	return vectors, nil
}

// next returns the number of texts, starting at index from, that fit into the next request. The
// error is about the text after these.
func (e *Embedder) next(texts []string, from int) (int, error) {
	size := 0
	for i, text := range texts[from:] {
		if tokens := e.tokens(text); e.Limit.Cuts && e.Limit.Tokens > 0 && tokens > e.Limit.Tokens {
			return i, &llm.TooLongError{Model: e.Model(), Text: from + i, Tokens: tokens, Limit: e.Limit.Tokens}
		}
		if size += len(text); i > 0 && (i == e.Most || size > cmp.Or(e.Bytes, maxBytes)) {
			return i, nil
		}
	}
	return len(texts) - from, nil
}

// some embeds texts in one request. If the service rejects it as too long, some halves the texts
// until the one that is too long is identified. from is the index of the first text in the call.
func (e *Embedder) some(ctx context.Context, p llm.Purpose, texts []string, from int) ([]llm.Vector, error) {
	made, err := e.request(ctx, p, texts)
	if failed, ok := errors.AsType[*llm.Error](err); !ok || failed.Kind != llm.TooLong {
		return made, err
	}
	if len(texts) == 1 {
		long := &llm.TooLongError{Model: e.Model(), Text: from, Tokens: max(e.tokens(texts[0]), e.Limit.Tokens+1), Limit: e.Limit.Tokens}
		return nil, fmt.Errorf("%w, says the service: %w", long, err)
	}
	half := len(texts) / 2
	first, err := e.some(ctx, p, texts[:half], from)
	if err != nil {
		return first, err
	}
	second, err := e.some(ctx, p, texts[half:], from+half)
	return append(first, second...), err
}

func (e *Embedder) request(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	input, estimate := make([]string, len(texts)), 0
	for i, text := range texts {
		if e.Prefix != nil {
			input[i] = e.Prefix(p)
		}
		if input[i] += text; input[i] == "" {
			input[i] = " " // services reject an empty text
		}
		estimate += e.tokens(text)
	}
	var rows []Row
	err := metered(ctx, e.Client, estimate, func() (tokens int, err error) {
		rows, tokens, err = e.Fetch(ctx, p, input)
		return tokens, err
	})
	if err != nil {
		return nil, err
	}
	vectors, err := Vectors(len(texts), rows)
	if err != nil {
		return nil, e.Client.Fail(llm.BadReply, "%v", err)
	}
	if made := len(vectors[0]); e.Dimensions > 0 && made != e.Dimensions {
		return nil, e.Client.Fail(llm.BadReply, "the reply contains vectors of %d dimensions, want %d", made, e.Dimensions)
	}
	return vectors, nil
}

// metered makes one request if there is room for it, and reports its usage.
func metered(ctx context.Context, c *wire.Client, estimate int, request func() (tokens int, err error)) error {
	if err := llm.Room(ctx, assay.Usage{Calls: 1, InputTokens: estimate}); err != nil {
		return fmt.Errorf("ask %s: %w", c.Name, err)
	}
	tokens, err := request()
	used := assay.Usage{Calls: 1, InputTokens: tokens}
	failed, ok := errors.AsType[*llm.Error](err)
	switch {
	case ok && failed.Kind == llm.Unreachable:
		used = assay.Usage{} // no request was made
	case err == nil && tokens <= 0:
		used.InputTokens = estimate
	}
	llm.Report(ctx, used)
	return err
}

// A Reranker is an llm.Reranker over a service.
type Reranker struct {
	Client *wire.Client
	Limit  Limit

	// Fetch makes one request. It returns the unchecked scores of the reply and the tokens counted
	// by the service, or 0 if it does not report them.
	Fetch func(ctx context.Context, query string, texts []string) (scores []Score, tokens int, err error)
}

// Model implements llm.Reranker.
func (r *Reranker) Model() string { return r.Client.Name }

// Facts implements llm.Described. It reports only that the model is a service.
func (r *Reranker) Facts() llm.Facts { return llm.Facts{} }

// Rerank implements llm.Reranker. It sends all texts in one request, since scores are comparable
// only within one.
func (r *Reranker) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	beside, estimate, longest := tokencount.Estimate(query), 0, 0
	input := make([]string, len(texts))
	for i, text := range texts {
		n := beside + tokencount.Estimate(text)
		if r.Limit.Cuts && r.Limit.Tokens > 0 && n > r.Limit.Tokens {
			return nil, &llm.TooLongError{Model: r.Model(), Text: i, Tokens: n, Limit: r.Limit.Tokens}
		}
		if len(text) > len(texts[longest]) {
			longest = i
		}
		if input[i] = text; strings.TrimSpace(text) == "" {
			input[i] = " "
		}
		estimate += n
	}
	var scores []Score
	err := metered(ctx, r.Client, estimate, func() (tokens int, err error) {
		scores, tokens, err = r.Fetch(ctx, query, input)
		return tokens, err
	})
	if failed, ok := errors.AsType[*llm.Error](err); ok && failed.Kind == llm.TooLong {
		// The service does not report which text it is. If any is too long, the longest is.
		n := beside + tokencount.Estimate(texts[longest])
		return nil, &llm.TooLongError{Model: r.Model(), Text: longest, Tokens: max(n, r.Limit.Tokens+1), Limit: r.Limit.Tokens}
	}
	if err != nil {
		return nil, err
	}
	out, err := Scores(len(texts), scores)
	if err != nil {
		return nil, r.Client.Fail(llm.BadReply, "%v", err)
	}
	return out, nil
}

// A Score is the score of one text in a reply.
type Score struct {
	Index *int     `json:"index"`
	Value *float64 `json:"relevance_score"`
}

// Scores returns the scores in the order of the n texts, one per text.
func Scores(n int, scores []Score) ([]float64, error) {
	if len(scores) != n {
		return nil, fmt.Errorf("got %d scores for %d texts", len(scores), n)
	}
	out, seen := make([]float64, n), make([]bool, n)
	for _, s := range scores {
		if s.Value == nil || *s.Value-*s.Value != 0 {
			return nil, errors.New("a score is not a number")
		}
		if err := place(s.Index, seen); err != nil {
			return nil, err
		}
		out[*s.Index] = *s.Value
	}
	return out, nil
}

// place checks that an index is valid and not yet seen, and marks it as seen.
func place(index *int, seen []bool) error {
	switch {
	case index == nil:
		return errors.New("a result without an index")
	case *index < 0 || *index >= len(seen):
		return fmt.Errorf("a result for text %d of %d", *index, len(seen))
	case seen[*index]:
		return fmt.Errorf("two results for text %d", *index)
	}
	seen[*index] = true
	return nil
}

// SaysTooLong reports whether an error message, in lower case, means that a text is too long. It
// recognises the messages of Cohere, Jina, llama.cpp, TEI and vLLM.
func SaysTooLong(message string) bool {
	if strings.Contains(message, "too large to process") || strings.Contains(message, "too long") {
		return true
	}
	if !strings.Contains(message, "token") && !strings.Contains(message, "context") {
		return false
	}
	for _, words := range []string{"too many", "exceed", "maximum", "must have less", "larger than", "size limit"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}
