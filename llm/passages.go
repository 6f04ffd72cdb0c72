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

// EmbedPassages returns one vector per passage, in the order given, of unit
// length: what the model makes of Passage.Words.
//
// A passage over the model's limit is embedded in windows that together hold all
// of its text, each after its title and headings; its vector is the mean of
// theirs, weighted by their tokens of text (of an embedder that is no
// TokenCounter, by their bytes), at unit length.
//
// With an error come the vectors of a prefix of the passages, which can be kept.
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

// embedWindows embeds the passages from the given one on, as they are windowed. On
// error the vectors are those of the first of these, and a *TooLongError is about a
// passage.
func embedWindows(ctx context.Context, e Embedder, passages []windows, from int) ([]Vector, error) {
	var texts []string
	var of []int // whose each is
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

// Windows are the texts that a passage is embedded as.
type windows struct {
	header  string // before each part
	body    string
	parts   []string // of the body, in order; those that hold nothing are left out
	weights []float64
	pieces  int // that the body was cut into, those left out counted
}

// whole returns a passage as one text.
func whole(p assay.Passage) windows {
	all := p.Words()
	header := strings.TrimSuffix(all, p.Text)
	return windows{header: header, body: p.Text, parts: []string{p.Text}, weights: []float64{1}}
}

// fit divides the body until every window fits, by the counter; a nil counter
// lets all pass. What cannot be divided further is a *TooLongError about passage i.
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
	if header > limit/2 { // it would crowd the text out: it is text itself then
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

// minPart is the fewest bytes of a part after a header that nobody can count the
// tokens of: with less the header is most of what is embedded.
const minPart = 200

// divide makes one more window of the body, when a TokenCounter is not there to
// say how many it takes. It reports whether it could.
func (w *windows) divide() bool {
	n := max(2, w.pieces+1)
	if w.header != "" && len(w.body)/n < minPart {
		w.body, w.header, n = w.header+w.body, "", 2
	}
	return w.split(n)
}

// split cuts the body into n parts of about the same length, between words where
// there are any. It reports whether each is shorter than the body.
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

// boundary returns where to cut text at or before at and after start: behind the
// last white space, else before a rune.
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

// mean returns the weighted mean of the windows' vectors at unit length. Where
// they cancel each other out, the first stands for all.
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
