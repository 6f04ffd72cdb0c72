package llm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// EmbedPassages returns one vector per passage, in the order given: the embedding of Passage.Words,
// at unit length.
//
// A passage over the model's limit is embedded in windows that together cover its whole text, each
// after its title and headings. The passage's vector is the mean of the windows' vectors, weighted
// by their text tokens and scaled to unit length. If the embedder is no TokenCounter, the weights
// are bytes.
//
// On error EmbedPassages also returns the vectors of a prefix of the passages, which the caller may
// keep.
func EmbedPassages(ctx context.Context, e Embedder, passages []assay.Passage) ([]Vector, error) {
	counter, _ := e.(TokenCounter)
	windowed := make([]windows, len(passages))
	for i, p := range passages {
		windowed[i] = whole(p)
		if err := windowed[i].fit(e.Model(), i, counter); err != nil {
			vectors, embedErr := embedWindows(ctx, e, windowed[:i], 0)
			return vectors, errors.Join(embedErr, err)
		}
	}
	var vectors []Vector
	for len(vectors) < len(passages) {
		made, err := embedWindows(ctx, e, windowed, len(vectors))
		vectors = append(vectors, made...)
		if long, ok := errors.AsType[*TooLongError](err); ok && counter == nil && windowed[long.Text].divide() {
			continue
		}
		if err != nil {
			return vectors, err
		}
	}
	return vectors, nil
}

// embedWindows embeds the windowed passages from index from on. On error it returns the vectors of
// a prefix of these, and a *TooLongError refers to a passage.
func embedWindows(ctx context.Context, e Embedder, passages []windows, from int) ([]Vector, error) {
	var texts []string
	var of []int // passage index of each text
	for i, w := range passages[from:] {
		for _, part := range w.parts {
			texts, of = append(texts, w.header+part), append(of, from+i)
		}
	}
	made, err := Embed(ctx, e, Passage, texts)
	if long, ok := errors.AsType[*TooLongError](err); ok {
		if long.Text < len(made) || long.Text >= len(texts) {
			return nil, &BadOutputError{e.Model(), -1, fmt.Sprintf("an error about text %d of %d", long.Text, len(texts))}
		}
		err = &TooLongError{Model: long.Model, Text: of[long.Text], Tokens: long.Tokens, Limit: long.Limit}
	}
	vectors := make([]Vector, 0, len(passages)-from)
	for _, w := range passages[from:] {
		n := len(w.parts)
		if len(made) < n {
			break
		}
		vectors, made = append(vectors, w.mean(made[:n])), made[n:]
	}
	return vectors, err
}

// windows is a passage split into the texts to embed.
type windows struct {
	header  string // prefix of each part
	body    string
	parts   []string // of the body, in order; blank ones are omitted
	weights []float64
	pieces  int // number of parts of the body, including blank ones
}

// whole returns a passage as a single window.
func whole(p assay.Passage) windows {
	all := p.Words()
	header := strings.TrimSuffix(all, p.Text)
	return windows{header: header, body: p.Text, parts: []string{p.Text}, weights: []float64{1}}
}

// fit splits the body until every window fits, according to counter. With a nil counter it does
// nothing. If the body cannot be split further, it returns a *TooLongError about passage i.
func (w *windows) fit(model string, i int, counter TokenCounter) error {
	if counter == nil {
		return nil
	}
	limit := counter.MaxTokens()
	tokens := counter.Tokens(w.header + w.body)
	if tokens <= limit {
		return nil
	}
	blank := counter.Tokens("")
	header := counter.Tokens(w.header) - blank
	if header > limit/2 { // it would crowd out the text, so treat it as text
		w.body, w.header, header = w.header+w.body, "", 0
	}
	room := max(1, limit-blank-header)
	for n := (tokens - blank - header + room - 1) / room; ; n++ {
		if !w.split(n) {
			return &TooLongError{Model: model, Text: i, Tokens: tokens, Limit: limit}
		}
		fits := true
		for j, part := range w.parts {
			t := counter.Tokens(w.header + part)
			w.weights[j] = float64(max(1, t-blank-header))
			fits = fits && t <= limit
		}
		if fits {
			return nil
		}
	}
}

// minPart is the smallest part, in bytes, that keeps its header when there is no token counter. In
// a smaller one, the header would dominate the embedding.
const minPart = 200

// divide splits the body into one more window, for an embedder without TokenCounter. It reports
// whether it could.
func (w *windows) divide() bool {
	n := max(2, w.pieces+1)
	if w.header != "" && len(w.body)/n < minPart {
		w.body, w.header, n = w.header+w.body, "", 2
	}
	return w.split(n)
}

// split cuts the body into n parts of similar length, between words if possible. It reports whether
// each part is shorter than the body.
func (w *windows) split(n int) bool {
	if n < 2 || n > utf8.RuneCountInString(w.body) {
		return false
	}
	w.parts, w.weights, w.pieces = nil, nil, n
	start := 0
	for i := 1; i <= n; i++ {
		end := len(w.body)
		if i < n {
			end = boundary(w.body, start, i*len(w.body)/n)
		}
		if part := w.body[start:end]; strings.TrimSpace(part) != "" {
			w.parts = append(w.parts, part)
			w.weights = append(w.weights, float64(len(part)))
		}
		start = end
	}
	return len(w.parts) > 0
}

// boundary returns where to cut text, between start and at: after the last white space, or else at
// the start of a rune.
func boundary(text string, start, at int) int {
	if at <= start {
		return start
	}
	if i := strings.LastIndexAny(text[start:at], " \n\t"); i >= 0 {
		return start + i + 1
	}
	for at > start && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// mean returns the weighted mean of the windows' vectors, at unit length. If they cancel each other
// out, it returns the first.
func (w *windows) mean(vectors []Vector) Vector {
	if len(vectors) == 1 {
		return vectors[0]
	}
	sum := make([]float64, len(vectors[0]))
	for i, v := range vectors {
		for d, x := range v {
			sum[d] += w.weights[i] * float64(x)
		}
	}
	total, square := 0.0, 0.0
	for _, x := range w.weights {
		total += x
	}
	for _, x := range sum {
		square += x * x
	}
	norm := math.Sqrt(square)
	if norm < 1e-6*total {
		return vectors[0]
	}
	mean := make(Vector, len(sum))
	for d, x := range sum {
		mean[d] = float32(x / norm)
	}
	return mean
}
