package resilient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// TestHedged checks that a hedged read takes the first success, waits for the other attempt to end,
// and counts both.
func TestHedged(t *testing.T) {
	type try struct {
		takes time.Duration
		err   error
	}
	slow, never := 5*time.Second, time.Hour
	tests := map[string]struct {
		tries   []try // in the order of their start
		calls   int
		elapsed time.Duration
		err     error
	}{
		"in time":                    {[]try{{500 * time.Millisecond, nil}}, 1, 500 * time.Millisecond, nil},
		"the second is faster":       {[]try{{never, nil}, {time.Second, nil}}, 2, 2 * time.Second, nil},
		"the first is faster":        {[]try{{slow, nil}, {never, nil}}, 2, slow, nil},
		"the second fails":           {[]try{{slow, nil}, {time.Second, failed(llm.RateLimited)}}, 2, slow, nil},
		"the first fails meanwhile":  {[]try{{2 * time.Second, failed(llm.ServerError)}, {slow, nil}}, 2, slow + time.Second, nil},
		"both fail, then it is fine": {[]try{{2 * time.Second, failed(llm.ServerError)}, {2 * time.Second, failed(llm.ServerError)}, {0, nil}}, 3, 3*time.Second + 8*time.Second, nil},
		"fails before it is hedged":  {[]try{{0, failed(llm.ServerError)}, {0, nil}}, 2, 4 * time.Second, nil},
		"fails for good":             {[]try{{slow, nil}, {time.Second, failed(llm.BadKey)}}, 2, 2 * time.Second, failed(llm.BadKey)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := New(Config{HedgeAfter: time.Second, Backoff: 4 * time.Second, Rand: whole})
				var mu sync.Mutex
				begun, live := 0, 0
				start := time.Now()
				v, spent, err := Do(t.Context(), g, Read{Name: "kb"}, func(ctx context.Context) (int, error) {
					mu.Lock()
					n := begun
					begun++
					live++
					mu.Unlock()
					err := sleep(ctx, test.tries[n].takes)
					mu.Lock()
					defer mu.Unlock()
					if live--; err != nil {
						return 0, err
					}
					return n + 1, test.tries[n].err
				})
				elapsed := time.Since(start).Round(10 * time.Millisecond)
				if live != 0 || begun != test.calls || spent.Usage.Calls != test.calls || elapsed != test.elapsed {
					t.Errorf("%d calls, %d told, %d left, after %v; want %d, after %v", begun, spent.Usage.Calls, live, elapsed, test.calls, test.elapsed)
				}
				if (err == nil) != (test.err == nil) || err == nil && v == 0 {
					t.Errorf("%d, %v; want the error %v", v, err, test.err)
				}
				if e, _ := errors.AsType[*llm.Error](err); err != nil && (e == nil || e.Usage.Calls != test.calls) {
					t.Errorf("%v with %+v", err, e)
				}
			})
		})
	}
}

// TestReadOnce checks that a read with Once is made once, even if it is slow and fails.
func TestReadOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		calls := 0
		_, spent, err := Do(t.Context(), New(Config{HedgeAfter: time.Second}), Read{Name: "guardrail", Once: true}, func(ctx context.Context) (int, error) {
			calls++
			if err := sleep(ctx, 5*time.Second); err != nil {
				return 0, err
			}
			return 0, failed(llm.Overloaded)
		})
		if e, _ := errors.AsType[*llm.Error](err); e == nil || e.Kind != llm.Overloaded || calls != 1 || spent.Usage.Calls != 1 {
			t.Errorf("%d calls, %+v, %v", calls, spent, err)
		}
	})
}

// TestHedgedCancelled checks that a cancelled read ends, hedged or not, and leaves no goroutine.
func TestHedgedCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, spent, err := Do(ctx, New(Config{HedgeAfter: time.Second}), Read{Name: "kb"}, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || spent.Usage.Calls != 2 || time.Since(start) != 3*time.Second {
			t.Errorf("%v, %+v after %v", err, spent, time.Since(start))
		}
	})
}

// TestReadNilInside checks that a nil *llm.Error in an error interface is an error, before and
// after the context ends.
func TestReadNilInside(t *testing.T) {
	for _, patience := range []time.Duration{time.Minute, 3 * time.Second} {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, _, err := Do(ctx, New(Config{HedgeAfter: time.Second}), Read{Name: "kb"}, func(ctx context.Context) (int, error) {
				sleep(ctx, 5*time.Second) // the result of the sleep is ignored
				return 0, (*llm.Error)(nil)
			})
			if e, _ := errors.AsType[*llm.Error](err); e == nil || ctx.Err() == nil && e.Kind != llm.BadReply {
				t.Errorf("with %v: %v", patience, err)
			}
		})
	}
}

// TestReadPanics checks that a panic of a read is an error, also in a hedged attempt.
func TestReadPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, spent, err := Do(t.Context(), New(Config{HedgeAfter: time.Second}), Read{Name: "kb"}, func(ctx context.Context) (int, error) {
			if err := sleep(ctx, 2*time.Second); err != nil {
				return 0, err
			}
			panic("broken")
		})
		e, _ := errors.AsType[*llm.Error](err)
		if e == nil || e.Kind != llm.BadReply || e.Model != "kb" || spent.Usage.Calls != 2 {
			t.Errorf("%v, %+v", err, spent)
		}
	})
}

func TestEmbedderKeepsTheContract(t *testing.T) {
	for _, hedge := range []time.Duration{0, time.Nanosecond} {
		g := New(Config{HedgeAfter: hedge})
		llmtest.TestEmbedder(t, g.Embedder(new(llmtest.Hashing)))
		llmtest.TestEmbedder(t, g.Embedder(llmtest.Plain(new(llmtest.Hashing))))
	}
	if _, counts := New(Config{}).Embedder(llmtest.Plain(new(llmtest.Hashing))).(llm.TokenCounter); counts {
		t.Error("it counts tokens, and what it guards does not")
	}
}

// TestHedgedQueries checks that queries are hedged and passages are not.
func TestHedgedQueries(t *testing.T) {
	for purpose, want := range map[llm.Purpose]int{llm.Query: 2, llm.Passage: 1} {
		bubble(t, func(t *testing.T) {
			slow := &slowly{Hashing: new(llmtest.Hashing), takes: 5 * time.Second}
			_, err := New(Config{HedgeAfter: time.Second}).Embedder(slow).Embed(t.Context(), purpose, []string{"one"})
			if err != nil || slow.begun != want {
				t.Errorf("purpose %d: %d calls, %v; want %d", purpose, slow.begun, err, want)
			}
		})
	}
}

type slowly struct {
	*llmtest.Hashing
	takes time.Duration

	mu    sync.Mutex
	begun int
}

func (s *slowly) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	s.mu.Lock()
	s.begun++
	s.mu.Unlock()
	if err := sleep(ctx, s.takes); err != nil {
		return nil, err
	}
	return s.Hashing.Embed(ctx, p, texts)
}

// TestEmbedderInParts checks that vectors keep the order of their texts across parts, and that
// those before an error are kept.
func TestEmbedderInParts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		words := new(llmtest.Hashing)
		var texts []string
		var want []llm.Vector
		for i := range 3*partTexts + 5 {
			texts = append(texts, fmt.Sprintf("text %d", i))
			want = append(want, words.Vector(texts[i]))
		}
		made, err := New(Config{}).Embedder(words).Embed(t.Context(), llm.Passage, texts)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, made); diff != "" {
			t.Errorf("vectors (-want +got):\n%s", diff)
		}
		made, err = New(Config{}).Embedder(llmtest.Refusing(words, "text 250")).Embed(t.Context(), llm.Passage, texts)
		if diff := cmp.Diff(want[:250], made); !errors.Is(err, llmtest.ErrBroken) || diff != "" {
			t.Errorf("%v, kept (-want +got):\n%s", err, diff)
		}
		_, err = New(Config{}).Embedder(&llmtest.Hashing{Limit: 4}).Embed(t.Context(), llm.Passage, append(texts[:100:100], "one two three"))
		if long, _ := errors.AsType[*llm.TooLongError](err); long == nil || long.Text != 100 {
			t.Errorf("%v, want it about text 100", err)
		}
	})
}

// TestHostileEmbedders checks that the texts of a flaky embedder are embedded, that those of a
// hostile one are not, and that no call hangs.
func TestHostileEmbedders(t *testing.T) {
	for _, fault := range llmtest.Faults {
		t.Run(string(fault), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				texts := []string{"one", "two", "three", "four"}
				made, err := New(Config{}).Embedder(llmtest.Hostile(new(llmtest.Hashing), fault)).Embed(ctx, llm.Passage, texts)
				if err == nil || len(made) >= len(texts) || ctx.Err() != nil {
					t.Errorf("%d vectors, %v", len(made), err)
				}
				for i, v := range made {
					if diff := cmp.Diff(new(llmtest.Hashing).Vector(texts[i]), v); diff != "" {
						t.Errorf("vector %d (-want +got):\n%s", i, diff)
					}
				}
			})
		})
	}
}

// lengths is a reranker that scores texts by length.
type lengths struct {
	change func([]float64) ([]float64, error)
}

func (lengths) Model() string { return "lengths" }

func (l lengths) Rerank(ctx context.Context, _ string, texts []string) ([]float64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	scores := make([]float64, len(texts))
	for i, text := range texts {
		scores[i] = float64(len(text))
	}
	if l.change == nil {
		return scores, nil
	}
	return l.change(scores)
}

func TestRerankerKeepsTheContract(t *testing.T) {
	llmtest.TestReranker(t, New(Config{}).Reranker(lengths{}))
	flaky := 0
	bubble(t, func(t *testing.T) {
		scores, err := New(Config{}).Reranker(lengths{func(s []float64) ([]float64, error) {
			if flaky++; flaky < 3 {
				return nil, failed(llm.Overloaded)
			}
			return s, nil
		}}).Rerank(t.Context(), "q", []string{"a", "bb"})
		if diff := cmp.Diff([]float64{1, 2}, scores); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
	for name, change := range map[string]func([]float64) ([]float64, error){
		"too few":      func(s []float64) ([]float64, error) { return s[1:], nil },
		"too many":     func(s []float64) ([]float64, error) { return append(s, 1), nil },
		"not a number": func(s []float64) ([]float64, error) { s[1] = math.NaN(); return s, nil },
		"infinite":     func(s []float64) ([]float64, error) { s[0] = math.Inf(-1); return s, nil },
		"a panic":      func(s []float64) ([]float64, error) { panic("broken") },
	} {
		scores, err := New(Config{}).Reranker(lengths{change}).Rerank(t.Context(), "q", []string{"a", "bb"})
		if e, _ := errors.AsType[*llm.Error](err); e == nil || e.Kind != llm.BadReply || scores != nil {
			t.Errorf("%s: %v, %v", name, scores, err)
		}
	}
}

// TestHedgesKeepToTheBudget checks that a read is hedged only if the budget has room for both
// attempts.
func TestHedgesKeepToTheBudget(t *testing.T) {
	for most, want := range map[int]int64{1: 1, 2: 2} {
		synctest.Test(t, func(t *testing.T) {
			m := llm.NewMeter(assay.Usage{Calls: most})
			var calls atomic.Int64
			got, _, err := Do(llm.WithMeter(t.Context(), m), New(Config{HedgeAfter: time.Second}), Read{Name: "read"}, func(ctx context.Context) (string, error) {
				if err := llm.Room(ctx, assay.Usage{Calls: 1}); err != nil {
					return "", err
				}
				defer llm.Report(ctx, assay.Usage{Calls: 1})
				calls.Add(1)
				time.Sleep(time.Minute / 2)
				return "found", nil
			})
			if got != "found" || err != nil || calls.Load() != want || m.Spent().Calls != int(want) {
				t.Errorf("with %d calls left: %q, %v, %d calls made and %d told", most, got, err, calls.Load(), m.Spent().Calls)
			}
		})
	}
}

// TestRetriesCountOnce checks that a retried read counts as one call, and that the tokens of each
// attempt count, also if the calls left have room for one only.
func TestRetriesCountOnce(t *testing.T) {
	m := llm.NewMeter(assay.Usage{Calls: 1})
	attempts := 0
	got, _, err := Do(llm.WithMeter(t.Context(), m), New(Config{Backoff: time.Nanosecond}), Read{Name: "read"}, func(ctx context.Context) (string, error) {
		if err := llm.Room(ctx, assay.Usage{Calls: 1, InputTokens: 5}); err != nil {
			return "", err
		}
		defer llm.Report(ctx, assay.Usage{Calls: 1, InputTokens: 5, CostMicros: 2})
		if attempts++; attempts < 3 {
			return "", failed(llm.ServerError)
		}
		return "found", nil
	})
	if want := (assay.Usage{Calls: 1, InputTokens: 15, CostMicros: 6}); got != "found" || err != nil || m.Spent() != want {
		t.Errorf("%q, %v with %+v spent, want %+v", got, err, m.Spent(), want)
	}
}
