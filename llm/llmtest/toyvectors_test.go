package llmtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// post sends a document and decodes the reply, as the toy's model does.
func (m toy) post(ctx context.Context, in, out any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := m.clock(func() { cancel(errSilent) })
	defer idle.Stop()
	err := m.exchange(inner, idle, in, out)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("ask the toy: %w", ctx.Err())
	case context.Cause(inner) == errSilent && m.flaw != "times out as another kind":
		return m.fail(llm.TimedOut, 0, "nothing came")
	}
	return err
}

func (m toy) take(body io.Reader, out any) error {
	data, err := io.ReadAll(body)
	switch {
	case err == errLarge:
		return m.fail(llm.TooLarge, 0, "")
	case err != nil:
		return m.fail(llm.BrokeOff, 0, err.Error())
	}
	if err := json.Unmarshal(data, out); err != nil {
		return m.fail(llm.BadReply, 0, err.Error()+": "+string(data))
	}
	return nil
}

type toyTexts struct {
	Query string   `json:"query"`
	Texts []string `json:"texts"`
}

type toyEmbedder struct{ toy }

type toyVectors struct {
	Data []struct {
		Index  int       `json:"index"`
		Values []float64 `json:"values"`
	} `json:"data"`
}

const toyBatch = 2

func (e toyEmbedder) Embed(ctx context.Context, _ llm.Purpose, texts []string) ([]llm.Vector, error) {
	var all []llm.Vector
	for start := 0; start < len(texts); start += toyBatch {
		batch := texts[start:min(len(texts), start+toyBatch)]
		var out toyVectors
		if err := e.post(ctx, toyTexts{Texts: batch}, &out); err != nil {
			return all, err
		}
		vectors := make([]llm.Vector, len(batch))
		for _, v := range out.Data {
			square := 0.0
			for _, x := range v.Values {
				square += x * x
			}
			if v.Index < 0 || v.Index >= len(batch) || vectors[v.Index] != nil || square == 0 || math.IsInf(square, 0) {
				return all, e.fail(llm.BadReply, 0, "a vector that is none")
			}
			for _, x := range v.Values {
				vectors[v.Index] = append(vectors[v.Index], float32(x/math.Sqrt(square)))
			}
			if len(v.Values) != len(out.Data[0].Values) {
				return all, e.fail(llm.BadReply, 0, "vectors of several dimensions")
			}
		}
		if len(out.Data) != len(batch) {
			return all, e.fail(llm.BadReply, 0, "too many or few")
		}
		all = append(all, vectors...)
	}
	return all, nil
}

type toyReranker struct{ toy }

func (r toyReranker) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	var out struct {
		Data []struct {
			Index int      `json:"index"`
			Score *float64 `json:"score"`
		} `json:"data"`
	}
	if err := r.post(ctx, toyTexts{query, texts}, &out); err != nil {
		return nil, err
	}
	scores, seen := make([]float64, len(texts)), map[int]bool{}
	for _, s := range out.Data {
		if s.Index < 0 || s.Index >= len(texts) || seen[s.Index] || s.Score == nil {
			return nil, r.fail(llm.BadReply, 0, "a score of nothing")
		}
		scores[s.Index], seen[s.Index] = *s.Score, true
	}
	if len(seen) != len(texts) {
		return nil, r.fail(llm.BadReply, 0, "too few")
	}
	return scores, nil
}

func toyRead(t testing.TB, body []byte) toyTexts {
	var in toyTexts
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&in); err != nil {
		t.Error(err)
	}
	return in
}

func toyList(items []string) llmtest.Body {
	return llmtest.Body{Type: "application/json", Parts: [][]byte{[]byte(`{"data":[` + strings.Join(items, ",") + `]}`)}}
}

func TestToyEmbedder(t *testing.T) {
	llmtest.TestEmbedWire(t, llmtest.EmbedWire{
		Open:  func(_ testing.TB, s llmtest.Setup) llm.Embedder { return toyEmbedder{toy{setup: s}} },
		Batch: toyBatch, Indexed: true, Fail: toyWire("").Fail,
		Texts: func(t testing.TB, _ *http.Request, body []byte) []string { return toyRead(t, body).Texts },
		Reply: func(vectors []llmtest.Indexed) llmtest.Body {
			var items []string
			for _, v := range vectors {
				if v.Values == "" {
					v.Values = string(toyJSON(v.Vector))
				}
				items = append(items, fmt.Sprintf(`{"index":%d,"values":%s}`, v.Index, v.Values))
			}
			return toyList(items)
		},
	})
}

func TestToyReranker(t *testing.T) {
	llmtest.TestRerankWire(t, llmtest.RerankWire{
		Open: func(_ testing.TB, s llmtest.Setup) llm.Reranker { return toyReranker{toy{setup: s}} },
		Fail: toyWire("").Fail,
		Texts: func(t testing.TB, _ *http.Request, body []byte) (string, []string) {
			in := toyRead(t, body)
			return in.Query, in.Texts
		},
		Reply: func(scores []llmtest.Score) llmtest.Body {
			var items []string
			for _, s := range scores {
				items = append(items, fmt.Sprintf(`{"index":%d,"score":%s}`, s.Index, s.Value))
			}
			return toyList(items)
		},
	})
}
