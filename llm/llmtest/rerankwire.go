package llmtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay/llm"
)

// A RerankWire is a reranker over HTTP with the server side of its format, for [TestRerankWire].
type RerankWire struct {
	// Open opens a reranker with Canary as each of its credentials. It makes each request once.
	Open func(t testing.TB, s Setup) llm.Reranker

	// Texts decodes a request.
	Texts func(t testing.TB, r *http.Request, body []byte) (query string, texts []string)

	// Reply returns a server's reply with the scores, in the order given.
	Reply func(scores []Score) Body

	// Fail is as in Wire.
	Fail func(f Failure) (Body, bool)

	Lacks []Feature // only RetryAfter is relevant
}

// A Score is a server's score of a text. Value is JSON: "0.25", "1e999".
type Score struct {
	Index int
	Value string
}

// TestReranker checks a reranker against the contract of llm.Reranker.
func TestReranker(t *testing.T, r llm.Reranker) {
	query := "days of leave"
	texts := []string{"Five days of leave may be carried over.", "The server drains its connections.", "a", "Ünïcödé, 漢字 and 😀", "Leave " + strings.Repeat("and more ", 20), "The server drains its connections."}
	score := func(t *testing.T, ctx context.Context, texts []string) []float64 {
		scores, err := r.Rerank(ctx, query, texts)
		if err != nil || len(scores) != len(texts) {
			t.Fatalf("%d scores for %d texts, %v", len(scores), len(texts), err)
		}
		for i, s := range scores {
			if math.IsNaN(s) || math.IsInf(s, 0) {
				t.Fatalf("the score of text %d is %v", i, s)
			}
		}
		return scores
	}
	t.Run("order", func(t *testing.T) {
		turned := slices.Clone(texts)
		slices.Reverse(turned)
		scores, other := score(t, t.Context(), texts), score(t, t.Context(), turned)
		slices.Reverse(other)
		for i := range scores {
			if math.Abs(scores[i]-other[i]) > tolerance*max(1, math.Abs(scores[i])) {
				t.Errorf("text %d (%.20q) scores %g, and %g when the texts come in another order", i, texts[i], scores[i], other[i])
			}
		}
	})
	t.Run("nothing", func(t *testing.T) { score(t, t.Context(), nil) })
	t.Run("concurrent", func(t *testing.T) {
		g, ctx := errgroup.WithContext(t.Context())
		for range 4 {
			g.Go(func() error {
				_, err := r.Rerank(ctx, query, texts)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if scores, err := r.Rerank(ctx, query, texts); err == nil && len(scores) < len(texts) || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %d scores, %v", len(scores), err)
		}
	})
}

// TestRerankWire checks a reranker, including how it reads its server's format, against the
// contract of llm.Reranker. It must not run in parallel with other tests, because it counts
// goroutines.
func TestRerankWire(t *testing.T, w RerankWire) {
	t.Run("contract", func(t *testing.T) {
		h := serve(t, w.reply(t, nil))
		TestReranker(t, w.Open(t, Setup{BaseURL: h.url, HTTP: h.client}))
	})
	t.Run("request", w.testRequest)
	t.Run("scores", w.testScores)
	reading{
		open: func(t testing.TB, s Setup) (string, func(context.Context) (int, error)) {
			m := w.Open(t, s)
			return m.Model(), func(ctx context.Context) (int, error) {
				scores, err := m.Rerank(ctx, "days of leave", []string{"Five days.", "No days."})
				return len(scores), err
			}
		},
		reply: w.reply(t, nil), fail: w.Fail, lacks: w.Lacks,
	}.test(t)
}

// reply answers with a score for each text, best first, modified by change.
func (w RerankWire) reply(t testing.TB, change func([]Score) []Score) answerer {
	return always(func(r *http.Request, body []byte) Body {
		var scores []Score
		_, texts := w.Texts(t, r, body)
		for i, text := range texts {
			scores = append(scores, Score{Index: i, Value: fmt.Sprint(scoreOf(text))})
		}
		slices.SortStableFunc(scores, func(a, b Score) int { return strings.Compare(b.Value, a.Value) })
		if change != nil {
			scores = change(scores)
		}
		return w.Reply(scores)
	})
}

// scoreOf is the score that the suite's server assigns to a text.
func scoreOf(text string) float64 { return float64(len(text)%97) / 97 }

// testRequest checks that query and texts arrive, and that each text gets its own score.
func (w RerankWire) testRequest(t *testing.T) {
	h := serve(t, w.reply(t, nil))
	texts := []string{"a longer text — 漢字 😀 \"<&>\"\n", "short", "a text", "short"}
	scores, err := w.Open(t, Setup{BaseURL: h.url, HTTP: h.client}).Rerank(bounded(t), "days of \"leave\"", texts)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float64, len(texts))
	for i, text := range texts {
		want[i] = scoreOf(text)
	}
	// Some formats have scores in single precision.
	if diff := cmp.Diff(want, scores, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
	requests, bodies := h.seen()
	if len(requests) != 1 {
		t.Fatalf("%d requests", len(requests))
	}
	query, sent := w.Texts(t, requests[0], bodies[0])
	if diff := cmp.Diff(texts, sent); diff != "" || query != "days of \"leave\"" {
		t.Errorf("the query is %q, the texts (-want +got):\n%s", query, diff)
	}
}

// testScores checks that replies with wrong scores are errors.
func (w RerankWire) testScores(t *testing.T) {
	value := func(json string) func([]Score) []Score {
		return func(s []Score) []Score {
			s[0].Value = json
			return s
		}
	}
	index := func(i int) func([]Score) []Score {
		return func(s []Score) []Score {
			s[0].Index = i
			return s
		}
	}
	tests := map[string]func([]Score) []Score{
		"one too few":    func(s []Score) []Score { return s[1:] },
		"one too many":   func(s []Score) []Score { return append(s, s[0]) },
		"none":           func([]Score) []Score { return nil },
		"an index twice": func(s []Score) []Score { s[0].Index = s[1].Index; return s },
		"over the end":   index(3), "far over the end": index(1 << 40), "under 0": index(-1),
		"infinite": value("1e999"), "no number": value(`"high"`), "an object": value("{}"), "null": value("null"),
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			h := serve(t, w.reply(t, change))
			m, ctx := w.Open(t, Setup{BaseURL: h.url, HTTP: h.client}), bounded(t)
			scores, err := m.Rerank(ctx, "days of leave", []string{"one", "two and", "three"})
			if kindOf(err) != llm.BadReply || len(scores) > 0 {
				t.Fatalf("%v, %v; want an error of the kind %q", scores, err, llm.BadReply)
			}
			checkKept(ctx, t, m.Model(), err)
		})
	}
}
