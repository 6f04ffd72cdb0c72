package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

func ptr[T any](v T) *T { return &v }

func TestScores(t *testing.T) {
	one := func(i int, x float64) Score { return Score{&i, &x} }
	tests := []struct {
		name   string
		scores []Score
		want   []float64 // nil: an error
	}{
		{"by index", []Score{one(2, 0.5), one(0, -3), one(1, 0)}, []float64{-3, 0, 0.5}},
		{"too few", []Score{one(0, 1), one(1, 1)}, nil},
		{"too many", []Score{one(0, 1), one(1, 1), one(2, 1), one(2, 1)}, nil},
		{"twice", []Score{one(0, 1), one(1, 1), one(1, 1)}, nil},
		{"over the end", []Score{one(0, 1), one(1, 1), one(3, 1)}, nil},
		{"below 0", []Score{one(0, 1), one(1, 1), one(-1, 1)}, nil},
		{"of nothing", []Score{one(0, 1), one(1, 1), {nil, ptr(1.0)}}, nil},
		{"no number", []Score{one(0, 1), one(1, 1), {ptr(2), nil}}, nil},
	}
	for _, test := range tests {
		got, err := Scores(3, test.scores)
		if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != (test.want != nil) {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
}

func TestVectors(t *testing.T) {
	tests := []struct {
		name string
		rows string
		want []llm.Vector // nil: an error
	}{
		{"in order", `[{"Values":[3,4]},{"Values":[0,2]}]`, []llm.Vector{{0.6, 0.8}, {0, 1}}},
		{"by index", `[{"Index":1,"Values":[3,4]},{"Index":0,"Values":[0,2]}]`, []llm.Vector{{0, 1}, {0.6, 0.8}}},
		{"twice", `[{"Index":1,"Values":[3,4]},{"Index":1,"Values":[0,2]}]`, nil},
		{"other dimensions", `[{"Values":[3,4]},{"Values":[1]}]`, nil},
		{"none", `[{"Values":[]},{"Values":[]}]`, nil},
		{"zero", `[{"Values":[3,4]},{"Values":[0,0]}]`, nil},
		{"overflow", `[{"Values":[3,4]},{"Values":[1e300,1e300]}]`, nil},
		{"null", `[{"Values":[3,4]},{"Values":[1,null]}]`, nil},
		{"one", `[{"Values":[3,4]}]`, nil},
	}
	for _, test := range tests {
		var rows []Row
		var got []llm.Vector
		err := json.Unmarshal([]byte(test.rows), &rows)
		if err == nil {
			got, err = Vectors(2, rows)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != (test.want != nil) {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
}

// A service rejects a batch with a text that contains an x as too long. It records its requests.
type service struct{ asked [][]string }

func (s *service) embedder(l Limit) *Embedder {
	c := &wire.Client{Name: "test/e"}
	return &Embedder{Client: c, Most: 4, Limit: l, Fetch: func(_ context.Context, _ llm.Purpose, texts []string) ([]Row, int, error) {
		s.asked = append(s.asked, texts)
		rows := make([]Row, len(texts))
		for i, text := range texts {
			if strings.Contains(text, "x") {
				return nil, 0, c.Fail(llm.TooLong, "too long")
			}
			rows[i].Values = Values{float64(len(text)), 1}
		}
		return rows, 7, nil
	}}
}

// TestTooLongIsFound checks that all texts before one that is too long get their vectors, and that
// the error has its index.
func TestTooLongIsFound(t *testing.T) {
	for bad := range 10 {
		s := new(service)
		texts := strings.Fields("aa bb cc dd ee ff gg hh ii jj")
		texts[bad] = "xx"
		made, err := s.embedder(Limit{}).Embed(t.Context(), llm.Passage, texts)
		long, ok := errors.AsType[*llm.TooLongError](err)
		if !ok || long.Text != bad || len(made) != bad || long.Tokens <= long.Limit {
			t.Errorf("text %d is too long: %d vectors, %v", bad, len(made), err)
		}
		if failed, ok := errors.AsType[*llm.Error](err); !ok || failed.Kind != llm.TooLong {
			t.Errorf("%v does not say what the service said", err)
		}
	}
}

// TestCutsAreNotAskedFor checks that a text that the service would truncate is not sent.
func TestCutsAreNotAskedFor(t *testing.T) {
	s := new(service)
	e := s.embedder(Limit{Tokens: 12, Cuts: true})
	texts := []string{"a", "b", strings.Repeat("word ", 20), "c"}
	made, err := e.Embed(t.Context(), llm.Passage, texts)
	long, ok := errors.AsType[*llm.TooLongError](err)
	if !ok || long.Text != 2 || len(made) != 2 || len(s.asked) != 1 {
		t.Errorf("%d vectors, %v, asked %q", len(made), err, s.asked)
	}
	if _, counts := e.Counting().(llm.TokenCounter); !counts {
		t.Error("an embedder whose service cuts does not count tokens")
	}
	if _, counts := s.embedder(Limit{Tokens: 12}).Counting().(llm.TokenCounter); counts {
		t.Error("an embedder whose service refuses counts tokens")
	}
}

// TestDimensions checks that vectors of other dimensions are rejected.
func TestDimensions(t *testing.T) {
	for dimensions, want := range map[int]int{0: 2, 2: 2, 3: 0} {
		e := new(service).embedder(Limit{})
		e.Dimensions = dimensions
		made, err := e.Embed(t.Context(), llm.Query, []string{"a", "b"})
		failed, ok := errors.AsType[*llm.Error](err)
		if len(made) != want || want == 0 && (!ok || failed.Kind != llm.BadReply) {
			t.Errorf("of %d dimensions: %d vectors, %v", dimensions, len(made), err)
		}
	}
}

func TestBatches(t *testing.T) {
	s := new(service)
	texts := []string{"", "b", strings.Repeat("c", maxBytes), "d", "e", "f", "g", "h"}
	if _, err := s.embedder(Limit{}).Embed(t.Context(), llm.Passage, texts); err != nil {
		t.Fatal(err)
	}
	want := [][]string{{" ", "b"}, texts[2:3], texts[3:7], texts[7:]}
	if diff := cmp.Diff(want, s.asked); diff != "" {
		t.Errorf("the requests (-want +got):\n%s", diff)
	}
}

// TestMetered checks that each request is metered, and that none is made without room in the
// budget.
func TestMetered(t *testing.T) {
	s := new(service)
	meter := llm.NewMeter(assay.Usage{Calls: 2})
	made, err := s.embedder(Limit{}).Embed(llm.WithMeter(t.Context(), meter), llm.Passage, strings.Fields("a b c d e f g h i j"))
	if !errors.Is(err, assay.ErrBudget) || len(made) != 8 || len(s.asked) != 2 {
		t.Errorf("%d vectors, %v after %d requests, want 8, assay.ErrBudget after 2", len(made), err, len(s.asked))
	}
	if diff := cmp.Diff(assay.Usage{Calls: 2, InputTokens: 14}, meter.Spent()); diff != "" {
		t.Errorf("spent (-want +got):\n%s", diff)
	}

	client := &wire.Client{Name: "test/r"}
	for kind, want := range map[llm.ErrorKind]assay.Usage{llm.Unreachable: {}, llm.ServerError: {Calls: 1}} {
		meter := llm.NewMeter(assay.Usage{})
		r := &Reranker{Client: client, Fetch: func(context.Context, string, []string) ([]Score, int, error) { return nil, 0, client.Fail(kind, "no") }}
		if _, err := r.Rerank(llm.WithMeter(t.Context(), meter), "q", []string{"t"}); err == nil {
			t.Error("no error")
		}
		if diff := cmp.Diff(want, meter.Spent()); diff != "" {
			t.Errorf("spent by %s (-want +got):\n%s", kind, diff)
		}
	}
}

func TestRerankTooLong(t *testing.T) {
	asked := 0
	client := &wire.Client{Name: "test/r"}
	r := &Reranker{Client: client, Fetch: func(context.Context, string, []string) ([]Score, int, error) {
		asked++
		return nil, 0, client.Fail(llm.TooLong, "no")
	}}
	texts := []string{"a", strings.Repeat("word ", 20), "b"}
	for _, limit := range []Limit{{}, {Tokens: 12, Cuts: true}, {Tokens: 12}} {
		r.Limit = limit
		_, err := r.Rerank(t.Context(), "query", texts)
		if long, ok := errors.AsType[*llm.TooLongError](err); !ok || long.Text != 1 || long.Tokens <= long.Limit {
			t.Errorf("with %+v: %v, want a *TooLongError about text 1", limit, err)
		}
	}
	if asked != 2 {
		t.Errorf("the service was asked %d times, want 2: it is not where it would cut", asked)
	}
	if scores, err := r.Rerank(t.Context(), "query", nil); err != nil || len(scores) > 0 {
		t.Errorf("no texts: %v, %v", scores, err)
	}
}

// TestSaysTooLong checks messages from the services' own sources and documentation.
func TestSaysTooLong(t *testing.T) {
	for message, want := range map[string]bool{
		"input (600 tokens) is too large to process. increase the physical batch size (current batch size: 512)": true, // llama.cpp
		"request (3018 tokens) exceeds the available context size (2048 tokens), try increasing it":              true, // llama.cpp
		"input validation error: `inputs` must have less than 512 tokens. given: 600":                            true, // TEI
		"this model's maximum context length is 512 tokens. however, you requested 600 tokens":                   true, // vLLM
		"invalid request: too many tokens: total number of tokens in text 3 exceeds the limit":                   true, // Cohere
		"invalid api token": false, "batch size 64 > maximum allowed batch size 32": false, "model not found": false, "": false,
	} {
		if got := SaysTooLong(message); got != want {
			t.Errorf("SaysTooLong(%q) = %v", message, got)
		}
	}
}

func ExampleVectors() {
	vectors, err := Vectors(1, []Row{{Values: Values{3, 4}}})
	fmt.Println(vectors, err)
	// Output: [[0.6 0.8]] <nil>
}
