package rerank_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/rerank"
)

func hit(title, text string, fused float64) assay.Hit {
	return assay.Hit{Title: title, Text: text, Scores: assay.Scores{Fused: &fused}}
}

func under(heading string, h assay.Hit) assay.Hit {
	h.Chunk.Headings = []string{"Part", heading}
	return h
}

func TestBridge(t *testing.T) {
	first := hit("Hamlet", "A play by William Shakespeare, who was born in Stratford.", 1)
	last := hit("Barley", "A cereal.", 0)
	tests := []struct {
		name string
		hit  assay.Hit
		want bool
	}{
		{"named by its title", hit("William Shakespeare", "A poet.", 0.5), true},
		{"parentheses do not count", hit("Stratford (London)", "A town.", 0.5), true},
		{"named by its heading", under("Stratford", hit("Towns of England", "One.", 0.5)), true},
		{"not named", hit("Marlowe", "A poet.", 0.5), false},
		{"a word is not a part of a word", hit("Strat", "A guitar.", 0.5), false},
		{"another case is another word", hit("Play", "What children do.", 0.5), false},
		{"too short", hit("A", "A letter.", 0.5), false},
		{"about the same", hit("Hamlet", "A prince.", 0.5), false},
		{"no title", hit("", "A poet.", 0.5), false},
	}
	for _, tt := range tests {
		got := rerank.Features(assay.Results{Hits: []assay.Hit{first, tt.hit, last}})
		want := 0.0
		if tt.want {
			want = 1 - math.Log(2)/math.Log(3) // two of the three name it, itself one of them
		}
		if diff := cmp.Diff([][]float64{{1, 0}, {0.5, want}, {0, 0}}, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestLeaders checks that only the first hits lead to others, and more strongly the better they
// are.
func TestLeaders(t *testing.T) {
	hits := []assay.Hit{
		hit("One", "of the first", 1),
		hit("Two", "of the first", 0.8),
		hit("Three", "leads to Four Seasons", 0.6),
		hit("Four Seasons", "leads to Five Elements", 0.4),
		hit("Five Elements", "leads to nothing", 0),
	}
	got := rerank.Features(assay.Results{Hits: hits})
	rare := 1 - math.Log(2)/math.Log(5)
	if diff := cmp.Diff([]float64{0, 0, 0, 0.6 * rare, 0}, column(got, 1), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("bridges (-want +got):\n%s", diff)
	}
}

func column(rows [][]float64, i int) []float64 {
	var out []float64
	for _, r := range rows {
		out = append(out, r[i])
	}
	return out
}

func TestLocal(t *testing.T) {
	m := rerank.Default()
	m.Vector, m.Words = []float64{1, 2}, []float64{1, 0}
	ranker, err := rerank.New(m)
	if err != nil {
		t.Fatal(err)
	}
	found := assay.Results{Hits: []assay.Hit{
		hit("Hamlet", "A play by William Shakespeare.", 1),
		hit("Barley", "A cereal.", 0.5),
		hit("William Shakespeare", "A poet.", 0),
	}}
	byWords, err := ranker.Rank(t.Context(), assay.Query{}, found)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{1, 0.5, 0}, byWords); diff != "" {
		t.Errorf("scores by words (-want +got):\n%s", diff)
	}
	for i := range found.Hits {
		cosine := 0.5
		found.Hits[i].Scores.Vector = &cosine
	}
	got, err := ranker.Rank(t.Context(), assay.Query{}, found)
	if err != nil {
		t.Fatal(err)
	}
	if !(got[2] > got[1]) || got[0] != 1 {
		t.Errorf("scores %v, want what the first leads to above what it does not", got)
	}
	if got, err := ranker.Rank(t.Context(), assay.Query{}, assay.Results{}); err != nil || len(got) != 0 {
		t.Errorf("no hits: %v, %v", got, err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ranker.Rank(done, assay.Query{}, found); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

func TestNewRefusesOtherModels(t *testing.T) {
	for name, change := range map[string]func(*rerank.Model){
		"other features":   func(m *rerank.Model) { m.Features = []string{"fused", "length"} },
		"a weight too few": func(m *rerank.Model) { m.Vector = m.Vector[:1] },
		"none by words":    func(m *rerank.Model) { m.Words = nil },
		"not a number":     func(m *rerank.Model) { m.Words = []float64{1, math.NaN()} },
	} {
		m := rerank.Default()
		change(&m)
		if _, err := rerank.New(m); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

// A lengthReranker scores texts by their length.
type lengthReranker struct {
	answer func(scores []float64) ([]float64, error)
	texts  []string
}

func (r *lengthReranker) Model() string { return "length" }

func (r *lengthReranker) Rerank(ctx context.Context, _ string, texts []string) ([]float64, error) {
	r.texts = texts
	var scores []float64
	for _, t := range texts {
		scores = append(scores, float64(len(t)))
	}
	if r.answer == nil {
		return scores, nil
	}
	return r.answer(scores)
}

func TestTexts(t *testing.T) {
	found := assay.Results{Hits: []assay.Hit{hit("A", "bb", 1), under("Deep", hit("A", "bb", 0.9)), hit("A", "b", 0.8), hit("A", "bbbb", 0.7)}}
	model := &lengthReranker{}
	got, err := rerank.Texts{Model: model, Best: 2}.Rank(t.Context(), assay.Query{Text: "q"}, found)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"A\nbb", "A\nPart\nDeep\nbb"}, model.texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{4, 14, 3, 2}, got); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
}

func TestTextsRefuseWrongAnswers(t *testing.T) {
	broken := errors.New("broken")
	tests := map[string]func([]float64) ([]float64, error){
		"too few":      func(s []float64) ([]float64, error) { return s[1:], nil },
		"too many":     func(s []float64) ([]float64, error) { return append(slices.Clone(s), 1), nil },
		"none":         func([]float64) ([]float64, error) { return nil, nil },
		"not a number": func(s []float64) ([]float64, error) { s[0] = math.NaN(); return s, nil },
		"infinite":     func(s []float64) ([]float64, error) { s[1] = math.Inf(-1); return s, nil },
		"fails":        func([]float64) ([]float64, error) { return nil, broken },
	}
	found := assay.Results{Hits: []assay.Hit{hit("A", "b", 1), hit("A", "bb", 0.9)}}
	for name, answer := range tests {
		got, err := rerank.Texts{Model: &lengthReranker{answer: answer}, Best: 20}.Rank(t.Context(), assay.Query{}, found)
		if err == nil || got != nil || !strings.Contains(err.Error(), "length") {
			t.Errorf("%s: %v, %v; want an error that names the model", name, got, err)
		}
	}
}

// slow returns only when its context ends.
type slow struct{}

func (slow) Model() string { return "slow" }

func (slow) Rerank(ctx context.Context, _ string, _ []string) ([]float64, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("stopped: %w", ctx.Err())
}

func TestTextsLimit(t *testing.T) {
	found := assay.Results{Hits: []assay.Hit{hit("A", "b", 1)}}
	_, err := rerank.Texts{Model: slow{}, Best: 1, Limit: time.Millisecond}.Rank(t.Context(), assay.Query{}, found)
	if err == nil || !strings.Contains(err.Error(), "slow did not answer within 1ms") {
		t.Errorf("too slow: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (rerank.Texts{Model: slow{}, Best: 1, Limit: time.Minute}).Rank(ended, assay.Query{}, found); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
