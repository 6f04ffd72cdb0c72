package llmtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/llm"
)

// An EmbedWire is an embedder over HTTP with the server side of its format, for [TestEmbedWire].
type EmbedWire struct {
	// Open opens an embedder with Canary as each of its credentials. The embedder sends at most
	// Batch texts in a request and makes each request once.
	Open  func(t testing.TB, s Setup) llm.Embedder
	Batch int

	// Texts returns the texts that a request asks to embed, in order.
	Texts func(t testing.TB, r *http.Request, body []byte) []string

	// Reply returns a server's reply with the vectors, each with the index of its text within the
	// request. A format without indices keeps the order given.
	Reply   func(vectors []Indexed) Body
	Indexed bool // the format has indices

	// Fail is as in Wire.
	Fail func(f Failure) (Body, bool)

	Lacks []Feature // only RetryAfter is relevant
}

// An Indexed is a vector in a server's reply. Values, if set, is the JSON of its values, for
// example "[1e999, null]".
type Indexed struct {
	Index  int
	Vector llm.Vector
	Values string
}

// TestEmbedWire checks an embedder, including how it reads its server's format, against the
// contract of llm.Embedder. It must not run in parallel with other tests, because it counts
// goroutines.
func TestEmbedWire(t *testing.T, w EmbedWire) {
	t.Run("contract", func(t *testing.T) {
		h := serve(t, w.reply(t, nil))
		TestEmbedder(t, w.Open(t, Setup{BaseURL: h.url, HTTP: h.client}))
	})
	t.Run("order", w.testOrder)
	t.Run("vectors", w.testVectors)
	t.Run("partial failure", w.testPartialFailure)
	reading{
		open: func(t testing.TB, s Setup) (string, func(context.Context) (int, error)) {
			e := w.Open(t, s)
			return e.Model(), func(ctx context.Context) (int, error) {
				made, err := e.Embed(ctx, llm.Query, []string{"days of leave"})
				return len(made), err
			}
		},
		reply: w.reply(t, nil), fail: w.Fail, lacks: w.Lacks,
	}.test(t)
}

// reply answers with the vector of each text, modified by change.
func (w EmbedWire) reply(t testing.TB, change func([]Indexed) []Indexed) answerer {
	words := new(Hashing)
	return always(func(r *http.Request, body []byte) Body {
		var vectors []Indexed
		for i, text := range w.Texts(t, r, body) {
			vectors = append(vectors, Indexed{Index: i, Vector: words.Vector(text)})
		}
		if change != nil {
			vectors = change(vectors)
		}
		return w.Reply(vectors)
	})
}

// testOrder checks that each text gets its own vector, for any order of the reply and any number of
// requests.
func (w EmbedWire) testOrder(t *testing.T) {
	h := serve(t, w.reply(t, func(v []Indexed) []Indexed {
		if w.Indexed {
			slices.Reverse(v)
		}
		for i := range v { // not of unit length
			for d := range v[i].Vector {
				v[i].Vector[d] *= 3
			}
		}
		return v
	}))
	e, words := w.Open(t, Setup{BaseURL: h.url, HTTP: h.client}), new(Hashing)
	var texts []string
	for i := range 2*w.Batch + 1 {
		texts = append(texts, fmt.Sprintf("text %d of many", i))
	}
	made, err := llm.Embed(bounded(t), e, llm.Passage, texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if err := near(words.Vector(text), made[i]); err != nil {
			t.Errorf("the vector of text %d is another's: %v", i, err)
		}
	}
	requests, bodies := h.seen()
	var sent []string
	for i, r := range requests {
		batch := w.Texts(t, r, bodies[i])
		if len(batch) > w.Batch || len(batch) == 0 {
			t.Errorf("%d texts in a request, want at most %d", len(batch), w.Batch)
		}
		sent = append(sent, batch...)
	}
	slices.Sort(sent)
	slices.Sort(texts)
	if diff := cmp.Diff(texts, sent); diff != "" {
		t.Errorf("the texts sent (-want +got):\n%s", diff)
	}
}

// testVectors checks that replies with wrong vectors are errors.
func (w EmbedWire) testVectors(t *testing.T) {
	values := func(json string) func([]Indexed) []Indexed {
		return func(v []Indexed) []Indexed {
			v[len(v)-1].Values = json
			return v
		}
	}
	index := func(i int) func([]Indexed) []Indexed {
		return func(v []Indexed) []Indexed {
			v[len(v)-1].Index = i
			return v
		}
	}
	tests := map[string]func([]Indexed) []Indexed{
		"one too few":   func(v []Indexed) []Indexed { return v[:len(v)-1] },
		"one too many":  func(v []Indexed) []Indexed { return append(v, Indexed{Index: len(v), Vector: v[0].Vector}) },
		"none":          func([]Indexed) []Indexed { return nil },
		"no dimensions": values("[]"), "null": values("null"), "infinite": values("[1e999, 0]"), "no numbers": values(`["a", {}]`), "no array": values("7"), "zero": values("[0, 0, 0]"),
		"other dimensions": values("[0.6, 0.8]"), "overflowing": values("[1e300, 1e300]"),
	}
	if w.Batch == 1 { // a reply has only one vector
		for _, of := range []string{"one too many", "other dimensions"} {
			delete(tests, of)
		}
	}
	if w.Indexed {
		tests["an index twice"], tests["an index over the end"], tests["an index under 0"], tests["a huge index"] = index(0), index(3), index(-1), index(1<<40)
		if w.Batch == 1 {
			delete(tests, "an index twice")
		}
	}
	texts := []string{"one", "two", "three"}[:min(3, w.Batch)]
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			h := serve(t, w.reply(t, change))
			e, ctx := w.Open(t, Setup{BaseURL: h.url, HTTP: h.client}), bounded(t)
			made, err := e.Embed(ctx, llm.Passage, texts)
			if kindOf(err) != llm.BadReply || len(made) >= len(texts) {
				t.Fatalf("%d vectors, %v; want an error of the kind %q", len(made), err, llm.BadReply)
			}
			checkKept(ctx, t, e.Model(), err)
		})
	}
}

// testPartialFailure checks that any vectors returned with an error are correct.
func (w EmbedWire) testPartialFailure(t *testing.T) {
	failure, _ := w.Fail(Failure{Kind: llm.ServerError, Message: "no more"})
	words, last := new(Hashing), "the last text"
	h := serve(t, func(rw http.ResponseWriter, r *http.Request, body []byte) {
		if slices.Contains(w.Texts(t, r, body), last) {
			always(func(*http.Request, []byte) Body { return failure })(rw, r, body)
			return
		}
		w.reply(t, nil)(rw, r, body)
	})
	var texts []string
	for i := range 2 * w.Batch {
		texts = append(texts, fmt.Sprintf("text %d of many", i))
	}
	made, err := llm.Embed(bounded(t), w.Open(t, Setup{BaseURL: h.url, HTTP: h.client}), llm.Passage, append(texts, last))
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.ServerError || len(made) > len(texts) {
		t.Fatalf("%d vectors, %v", len(made), err)
	}
	for i := range made {
		if err := near(words.Vector(texts[i]), made[i]); err != nil {
			t.Errorf("the vector of text %d is another's: %v", i, err)
		}
	}
}
