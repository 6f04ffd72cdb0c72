package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/strategy"
)

// TestDocumentedStrategies checks that the documented section has every key and that its values are
// the defaults.
func TestDocumentedStrategies(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(strategies:.*?)```").FindSubmatch(data)
	if m == nil {
		t.Fatal("docs/operations.md does not have the section")
	}
	for _, key := range keys(reflect.TypeFor[fileStrategies]()) {
		if key != "-" && !strings.Contains(string(m[1]), " "+key+":") {
			t.Errorf("the documented section does not have %s", key)
		}
	}
	c := mustLoad(t, string(m[1]), nil)
	if c.Strategy != strategy.Names()[0] {
		t.Errorf("the default strategy is %q", c.Strategy)
	}
	if diff := cmp.Diff(strategy.Defaults(), c.Settings); diff != "" {
		t.Errorf("settings (-default +documented):\n%s", diff)
	}
	want := strategy.DefaultLimits()
	want.Wall = 0 // set by each run
	if diff := cmp.Diff(want, c.Limits); diff != "" {
		t.Errorf("limits (-default +documented):\n%s", diff)
	}
}

// TestDocumentedRetrieval checks that the documented section retrieval has every key and that its
// values are the defaults.
func TestDocumentedRetrieval(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(retrieval:.*?)```").FindSubmatch(data)
	if m == nil {
		t.Fatal("docs/operations.md does not have the section")
	}
	for _, key := range keys(reflect.TypeFor[fileRetrieval]()) {
		if !strings.Contains(string(m[1]), " "+key+":") {
			t.Errorf("the documented section does not have %s", key)
		}
	}
	if c := mustLoad(t, string(m[1]), nil); c.Limits != (strategy.Limits{VectorWeight: retrieve.VectorWeight, BM25: assay.DefaultBM25}) {
		t.Errorf("limits %+v", c.Limits)
	}
	if c := mustLoad(t, "retrieval: {rerank: false}", nil); c.Limits != (strategy.Limits{Unranked: true}) {
		t.Errorf("limits %+v", c.Limits)
	}
}

func TestNoStrategies(t *testing.T) {
	for _, text := range []string{"", "large: local", "strategies:\n", "strategies:\n  crag:\n", "strategies: {}"} {
		c := mustLoad(t, text, nil)
		if c.Strategy != "" || c.Settings != (strategy.Settings{}) || c.Limits != (strategy.Limits{}) {
			t.Errorf("%q: %q, %+v, %+v", text, c.Strategy, c.Settings, c.Limits)
		}
	}
	if c := mustLoad(t, "retrieval: {bm25: {k1: 1.2}}", nil); c.Limits != (strategy.Limits{BM25: assay.BM25{K1: 1.2}}) {
		t.Errorf("limits %+v", c.Limits)
	}
	c := mustLoad(t, "strategies: {default: corrective, crag: {correct: 0.9}, corrective: {keep: 7}, multihop: {hops: 2}}", nil)
	if c.Strategy != "corrective" || c.Settings.CRAG.Correct != 0.9 || c.Settings.CRAG.Incorrect != 0 || c.Limits != (strategy.Limits{Keep: 7}) || c.Settings.Multihop.Hops != 2 {
		t.Errorf("%q, %+v, %+v", c.Strategy, c.Settings, c.Limits)
	}
}

func TestWrongStrategies(t *testing.T) {
	tests := []struct {
		text, detail, hint string
		line               int
	}{
		{"strategies:\n  defualt: auto", `unknown key "defualt"`, "did you mean default? docs/operations.md lists all keys", 2},
		{"large: local\nstrategies:\n  crag:\n    corect: 0.7", `unknown key "corect"`, "did you mean correct? docs/operations.md lists all keys", 4},
		{"strategies:\n  crag:\n    hops: 3", `unknown key "hops"`, "docs/operations.md lists all keys", 3},
		{"strategies:\n  corrective:\n    wall: 3", `unknown key "wall"`, "docs/operations.md lists all keys", 3},
		{"strategies:\n  default: corective", "strategies.default: unknown strategy", "did you mean corrective?", 2},
		{"strategies:\n  default: 3", "strategies.default: unknown strategy", "the strategies are auto", 2},
		{"retrieval:\n  vector_weight: 1.5", "retrieval.vector_weight: 1.5 is not greater than 0 and at most 1", "", 2},
		{"retrieval:\n  vector_weight: 0", "retrieval.vector_weight: 0 is not greater than 0 and at most 1", "", 2},
		{"retrieval:\n  bm25: {k1: 11}", "retrieval.bm25.k1: 11 is not greater than 0 and at most 10", "", 2},
		{"retrieval:\n  bm25: {b: 1.2}", "retrieval.bm25.b: 1.2 is not greater than 0 and at most 1", "", 2},
		{"retrieval:\n  bm25: {b: 0}", "retrieval.bm25.b: 0 is not greater than 0 and at most 1", "", 2},
		{"strategies:\n  auto: {escalate: auto}", `strategies.auto.escalate: auto cannot escalate to "auto"`, "corrective, static, ", 2},
		{"strategies:\n  auto: {escalate: multihpo}", `strategies.auto.escalate: auto cannot escalate to "multihpo"`, "did you mean multihop?", 2},
		{"retrieval:\n  vector_wieght: 1", `unknown key "vector_wieght"`, "did you mean vector_weight? docs/operations.md lists all keys", 2},
		{"retrieval:\n  rerank: 3", "", "", 2},
		{"strategies:\n  crag:\n    correct: 1.5", "strategies.crag.correct: 1.5 is not greater than 0 and at most 1", "", 3},
		{"strategies:\n  crag:\n    correct: 0", "strategies.crag.correct: 0 is not greater than 0 and at most 1", "", 3},
		{"strategies:\n  crag:\n    incorrect: -0.1", "strategies.crag.incorrect: -0.1 is not greater than 0", "", 3},
		{"strategies:\n  crag:\n    incorrect: .nan", "strategies.crag.incorrect: NaN is not greater than 0", "", 3},
		{"strategies:\n  crag:\n    incorrect: 0.8", "strategies.crag: incorrect (0.8) must be less than correct (0.7)", "", 2},
		{"strategies:\n  crag: {correct: 0.3}", "strategies.crag: incorrect (0.3) must be less than correct (0.3)", "", 2},
		{"strategies:\n  crag:\n    relevant: 2.5", "strategies.crag.relevant: got a fraction, want a whole number", "", 3},
		{"strategies:\n  self:\n    iterations: 0", "strategies.self.iterations: 0 is not between 1 and 100", "", 3},
		{"strategies:\n  self:\n    iterations: -1", "strategies.self.iterations: -1 is not between 1 and 100", "", 3},
		{"strategies:\n  corrective:\n    candidates: 1001", "strategies.corrective.candidates: 1001 is not between 1 and 1000", "", 3},
		{"strategies:\n  corrective:\n    context_tokens: 10", "strategies.corrective.context_tokens: 10 is not between 300 and 200000", "", 3},
		{"strategies:\n  fusion:\n    queries: 9", "strategies.fusion.queries: 9 is not between 1 and 8", "", 3},
		{"strategies:\n  react:\n    steps: many", "got text, want a whole number", "", 3},
		{"strategies: auto", "", "", 1},
	}
	for _, test := range tests {
		_, err := load(t, test.text, nil)
		e, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if e.Line != test.line || !strings.HasPrefix(e.Detail, test.detail) || !strings.Contains(e.Hint, test.hint) {
			t.Errorf("%q: line %d: %q; %q", test.text, e.Line, e.Detail, e.Hint)
		}
	}
}
