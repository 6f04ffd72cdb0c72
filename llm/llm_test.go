package llm_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

func TestHashingKeepsTheContract(t *testing.T) {
	llmtest.TestEmbedder(t, new(llmtest.Hashing))
	llmtest.TestEmbedder(t, llmtest.Plain(new(llmtest.Hashing)))
}

// TestEmbedRefusesBadOutput checks that a contract violation is an error and that the vectors
// before it are kept.
func TestEmbedRefusesBadOutput(t *testing.T) {
	texts := []string{"one", "two", "three", "four"}
	kept := map[llmtest.Fault]int{
		llmtest.NaN: 3, llmtest.Infinite: 3, llmtest.OtherDimension: 3, llmtest.NotUnit: 3, llmtest.Empty: 3, llmtest.HalfThenError: 2,
	}
	for _, fault := range llmtest.Faults {
		t.Run(string(fault), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			if fault == llmtest.Blocks {
				time.AfterFunc(10*time.Millisecond, cancel)
			}
			defer cancel()
			good := new(llmtest.Hashing)
			made, err := llm.Embed(ctx, llmtest.Hostile(good, fault), llm.Passage, texts)
			if err == nil {
				t.Fatal("no error")
			}
			want := []llm.Vector{}
			for _, text := range texts[:kept[fault]] {
				want = append(want, good.Vector(text))
			}
			if diff := cmp.Diff(want, append([]llm.Vector{}, made...)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if _, err := llm.EmbedQuery(ctx, llmtest.Hostile(good, fault), "one"); err == nil && fault != llmtest.OtherDimension {
				t.Error("a query got a vector")
			}
			passages := []assay.Passage{{Text: "one"}, {Text: "two"}, {Text: "three"}, {Text: "four"}}
			if made, err := llm.EmbedPassages(ctx, llmtest.Hostile(good, fault), passages); err == nil || len(made) != kept[fault] {
				t.Errorf("EmbedPassages = %d vectors, %v; want %d and an error", len(made), err, kept[fault])
			}
		})
	}
}

func passageOf(title, text string, headings ...string) assay.Passage {
	return assay.Passage{Title: title, Text: text, Chunk: assay.Chunk{Headings: headings}}
}

func TestEmbedPassages(t *testing.T) {
	numbers := strings.TrimSpace(strings.Repeat("one two three four five six seven eight nine ten ", 9)) // 90 words
	tests := []struct {
		name     string
		passage  assay.Passage
		windows  int
		repeated string // appears in each window
	}{
		{"short", passageOf("Title", "a few words", "Heading"), 1, "title heading"},
		{"just fits", passageOf("", strings.Repeat("w ", 38)), 1, ""},
		{"long", passageOf("Title", numbers, "Heading"), 3, "title heading"},
		{"a title that leaves no room", passageOf(strings.Repeat("title ", 30), numbers), 4, ""},
		{"no word boundaries", passageOf("", strings.Repeat("漢、", 90)), 3, ""},
		{"blank between", passageOf("T", "a"+strings.Repeat(" ", 500)+numbers), 3, "t"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := &llmtest.Hashing{Limit: 40}
			made, err := llm.EmbedPassages(t.Context(), e, []assay.Passage{passageOf("", "first"), test.passage, passageOf("", "last")})
			if err != nil || len(made) != 3 {
				t.Fatalf("%d vectors, %v", len(made), err)
			}
			texts := e.Texts()
			texts = texts[1 : len(texts)-1]
			if len(texts) < test.windows {
				t.Errorf("%d windows, want at least %d", len(texts), test.windows)
			}
			var words []string
			for _, text := range texts {
				w := strings.Fields(strings.ToLower(text))
				if !strings.HasPrefix(strings.Join(w, " "), test.repeated) {
					t.Errorf("window %q does not begin with %q", text, test.repeated)
				}
				words = append(words, w[len(strings.Fields(test.repeated)):]...)
			}
			want := strings.Fields(strings.ToLower(test.passage.Words()))[len(strings.Fields(test.repeated)):]
			if got := strings.Join(words, ""); got != strings.Join(want, "") {
				t.Errorf("the windows hold %q, want all of the text", got)
			}
			if diff := cmp.Diff(new(llmtest.Hashing).Vector("last"), made[2]); diff != "" {
				t.Errorf("the passage after it (-want +got):\n%s", diff)
			}
			checkUnit(t, made)

			// Without a token counter the result is about the same.
			plain, err := llm.EmbedPassages(t.Context(), llmtest.Plain(e), []assay.Passage{passageOf("", "first"), test.passage, passageOf("", "last")})
			if err != nil || len(plain) != 3 {
				t.Fatalf("without a counter: %d vectors, %v", len(plain), err)
			}
			checkUnit(t, plain)
			if got := dot(made[1], plain[1]); got < 0.9 {
				t.Errorf("without a counter its vector is another: cosine %.3f", got)
			}
		})
	}
}

// TestWindowsAreWeighted checks that the vector of a windowed passage is the mean of its windows'
// vectors, weighted by tokens.
func TestWindowsAreWeighted(t *testing.T) {
	e := &llmtest.Hashing{Limit: 12}
	body := strings.TrimSpace(strings.Repeat("alpha ", 10) + strings.Repeat("beta ", 7))
	made, err := llm.EmbedPassages(t.Context(), e, []assay.Passage{passageOf("", body)})
	if err != nil {
		t.Fatal(err)
	}
	sum := make([]float64, len(made[0]))
	for _, text := range e.Texts() {
		for d, x := range e.Vector(text) {
			sum[d] += float64(len(strings.Fields(text))) * float64(x)
		}
	}
	square := 0.0
	for _, x := range sum {
		square += x * x
	}
	for d, x := range made[0] {
		if math.Abs(float64(x)-sum[d]/math.Sqrt(square)) > 1e-5 {
			t.Fatalf("dimension %d is %g, want %g", d, x, sum[d]/math.Sqrt(square))
		}
	}
}

// TestEmbedPassagesThatFitNowhere checks that the error names the passage that fits no window, and
// that the vectors before it are kept.
func TestEmbedPassagesThatFitNowhere(t *testing.T) {
	e := &llmtest.Hashing{Limit: 2}
	passages := []assay.Passage{passageOf("", "..."), passageOf("", "word")}
	for _, e := range []llm.Embedder{e, llmtest.Plain(e)} {
		made, err := llm.EmbedPassages(t.Context(), e, passages)
		long, ok := errors.AsType[*llm.TooLongError](err)
		if !ok || long.Text != 1 || len(made) > 1 {
			t.Errorf("%d vectors, %v; want an error about passage 1", len(made), err)
		}
	}
}

func TestEmbedPassagesKeepsAPrefix(t *testing.T) {
	e := llmtest.Refusing(new(llmtest.Hashing), "poison")
	made, err := llm.EmbedPassages(t.Context(), e, []assay.Passage{passageOf("", "a"), passageOf("", "b"), passageOf("poison", "c"), passageOf("", "d")})
	if !errors.Is(err, llmtest.ErrBroken) || len(made) != 2 {
		t.Errorf("%d vectors, %v; want 2 and the error", len(made), err)
	}
}

func checkUnit(t *testing.T, vectors []llm.Vector) {
	t.Helper()
	for i, v := range vectors {
		if n := dot(v, v); math.Abs(n-1) > 1e-4 {
			t.Errorf("vector %d has the length %g", i, math.Sqrt(n))
		}
	}
}

func dot(a, b llm.Vector) float64 {
	sum := 0.0
	for d := range a {
		sum += float64(a[d]) * float64(b[d])
	}
	return sum
}

func TestTooLongError(t *testing.T) {
	for want, e := range map[string]llm.TooLongError{
		"text 3 has 600 tokens, m takes 512":             {Model: "m", Text: 3, Tokens: 600, Limit: 512},
		"text 3, of about 600 tokens, is too long for m": {Model: "m", Text: 3, Tokens: 600},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%+v is %q, want %q", e, got, want)
		}
	}
}

// TestEstimateTokens checks that text with many tokens for its length is not estimated as prose:
// budgets are reserved by the estimate.
func TestEstimateTokens(t *testing.T) {
	for text, least := range map[string]int{ // lower bounds from the vocabularies of BERT and SentencePiece, which have no long numbers
		"": 0, "Thirty days of annual leave.": 6, "1234567890": 10, "| 12.5 | 7.5 | 0.31 |": 14, "192.168.0.12:8080": 13, "if (x[i] != y[j]) { z++ }": 12, "Größenänderung": 6,
	} {
		if got := llm.EstimateTokens(text); got < least || got > len(text) {
			t.Errorf("EstimateTokens(%q) = %d, want %d to %d", text, got, least, len(text))
		}
	}
}

// TestCostCached checks that cached input has its own price, if that is known, and never a higher
// one.
func TestCostCached(t *testing.T) {
	u := assay.Usage{InputTokens: 1000, OutputTokens: 100}
	for _, tt := range []struct {
		facts  llm.Facts
		cached int
		want   int64
	}{
		{llm.Facts{Input: 2_000_000, Output: 10_000_000}, 900, 3000},
		{llm.Facts{Input: 2_000_000, Output: 10_000_000, Cached: 200_000}, 0, 3000},
		{llm.Facts{Input: 2_000_000, Output: 10_000_000, Cached: 200_000}, 900, 1380},
		{llm.Facts{Input: 2_000_000, Output: 10_000_000, Cached: 200_000}, 5000, 1200},
		{llm.Facts{Input: 2_000_000, Output: 10_000_000, Cached: 200_000}, -1, 3000},
		{llm.Facts{Input: 2_000_000, Output: 10_000_000, Cached: 9_000_000}, 900, 3000},
		{llm.Facts{Input: 1, Cached: 1}, 1000, 1},
	} {
		if got := tt.facts.CostCached(u, tt.cached); got != tt.want || got > tt.facts.Cost(u) {
			t.Errorf("%+v, %d cached: %d, want %d", tt.facts, tt.cached, got, tt.want)
		}
	}
}
