package llm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

func TestCacheReadings(t *testing.T) {
	read := map[string]int{}
	broken := false
	r := llm.CacheReadings(&llmtest.Reader{OnRead: func(question string, p llm.Excerpt) (llm.Reading, error) {
		if broken {
			return llm.Reading{}, errors.New("broken")
		}
		read[question+"|"+p.Heading+"|"+p.Text]++
		return llm.Reading{Answerable: float64(len(p.Text)) / 10, Relevance: float64(len(question)) / 10}, nil
	}}, 3)
	ask := func(question string, texts ...string) []llm.Reading {
		t.Helper()
		var ps []llm.Excerpt
		for _, text := range texts {
			ps = append(ps, llm.Excerpt{Heading: "H", Text: text})
		}
		got, err := r.Read(t.Context(), question, ps)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := ask("q", "a", "bb")
	second := ask("q", "ccc", "bb", "a")
	if diff := cmp.Diff([]llm.Reading{{Answerable: 0.3, Relevance: 0.1}, first[1], first[0]}, second); diff != "" {
		t.Errorf("the second time (-want +got):\n%s", diff)
	}
	ask("other", "a")
	want := map[string]int{"q|H|a": 1, "q|H|bb": 1, "q|H|ccc": 1, "other|H|a": 1}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	for i := range 6 { // more than its capacity
		ask("q", fmt.Sprint("fill", i))
	}
	if ask("q", "a"); read["q|H|a"] != 2 {
		t.Errorf("what left the cache was read %d times, want 2", read["q|H|a"])
	}
	broken = true
	if _, err := r.Read(t.Context(), "new", []llm.Excerpt{{Text: "x"}}); err == nil {
		t.Error("an error of the reader is lost")
	}
	broken = false
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(ctx, "q", []llm.Excerpt{{Heading: "H", Text: "a"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}
