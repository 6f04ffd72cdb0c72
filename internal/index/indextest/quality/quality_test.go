package quality

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/llm"
)

func TestWorse(t *testing.T) {
	for _, tt := range []struct {
		d    stat.Interval
		want bool
	}{
		{stat.Interval{}, false},
		{stat.Interval{Mean: 0.1, Low: -0.1, High: 0.2}, false},
		{stat.Interval{Mean: -0.009, Low: -0.02, High: -0.004}, false},
		{stat.Interval{Mean: -0.009, Low: -0.02, High: -0.006}, true},
		{stat.Interval{Mean: -0.011, Low: -0.03, High: 0.01}, true},
	} {
		if got := worse(tt.d); got != tt.want {
			t.Errorf("worse(%+v) is %v, want %v", tt.d, got, tt.want)
		}
	}
}

func TestShorten(t *testing.T) {
	var set testset.Set
	for i := range 100 {
		id := fmt.Sprint(i)
		set.Passages = append(set.Passages, testset.Passage{ID: id})
		set.Queries = append(set.Queries, testset.Query{ID: id, Relevant: map[string]int{id: 1}})
	}
	few, more := shorten(set, 10, 30), shorten(set, 20, 200)
	if len(few.Queries) != 10 || len(few.Passages) != 30 || len(more.Queries) != 20 || len(more.Passages) != 100 {
		t.Fatalf("%d questions and %d passages, %d and %d; want 10 and 30, 20 and 100", len(few.Queries), len(few.Passages), len(more.Queries), len(more.Passages))
	}
	for _, q := range few.Queries {
		if !slices.ContainsFunc(few.Passages, func(p testset.Passage) bool { return p.ID == q.ID }) {
			t.Errorf("the relevant passage of question %s is left out", q.ID)
		}
		if !slices.ContainsFunc(more.Queries, func(other testset.Query) bool { return other.ID == q.ID }) {
			t.Errorf("question %s is among 10 and not among 20", q.ID)
		}
	}
	if all := join([]testset.Set{few, more}); len(all.Queries) != 30 || len(all.Passages) != 130 {
		t.Errorf("joined: %d questions and %d passages, want 30 and 130", len(all.Queries), len(all.Passages))
	}
}

// letters embeds a text by its letters.
type letters struct{}

func (letters) Model() string { return "letters/26" }

func (letters) Embed(_ context.Context, _ llm.Purpose, texts []string) ([]llm.Vector, error) {
	var list []llm.Vector
	for _, text := range texts {
		v, sum := make(llm.Vector, 26), float32(0)
		for _, c := range []byte(text) {
			if 'a' <= c && c <= 'z' && v[c-'a'] == 0 {
				v[c-'a'] = 1
				sum++
			}
		}
		for i := range v {
			v[i] /= float32(math.Sqrt(float64(sum)))
		}
		list = append(list, v)
	}
	return list, nil
}

// changed is an index whose hits are changed.
type changed struct {
	index.Index
	text, near func([]index.Hit) []index.Hit
}

func (x changed) Search(ctx context.Context, access assay.Access, q assay.Query) (index.Result, error) {
	result, err := x.Index.Search(ctx, access, q)
	result.Hits = x.text(slices.Clone(result.Hits))
	return result, err
}

func (x changed) Nearest(ctx context.Context, access assay.Access, q assay.Query, v index.Vector) (index.Result, error) {
	result, err := x.Index.Nearest(ctx, access, q, v)
	result.Hits = x.near(slices.Clone(result.Hits))
	return result, err
}

// TestJudge checks that an engine that finds the same passes, and that one that misses the best hits
// of a search, or changes the last bits of its scores, does not.
func TestJudge(t *testing.T) {
	set := testset.Set{Name: "words"}
	for i := range 200 {
		word := fmt.Sprintf("%c%c%c", 'a'+i%26, 'a'+i/26, 'a'+(i*7+i/26)%26)
		id := fmt.Sprint(i)
		set.Passages = append(set.Passages, testset.Passage{ID: id, Text: word + " is a word " + strings.Repeat("of many ", i%5)})
		if i%4 == 0 {
			set.Queries = append(set.Queries, testset.Query{ID: id, Text: word, Relevant: map[string]int{id: 1}})
		}
	}
	opened, err := retrieval.Open(t.Context(), set, retrieval.Parts{Embedder: letters{}})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	m, err := newMeasurement(t.Context(), opened)
	if err != nil {
		t.Fatal(err)
	}
	own, err := m.measure(t.Context(), opened.Index)
	if err != nil {
		t.Fatal(err)
	}
	same := func(hits []index.Hit) []index.Hit { return hits }
	rest := func(hits []index.Hit) []index.Hit { return hits[min(6, len(hits)):] }
	rounded := func(hits []index.Hit) []index.Hit {
		for i := range hits {
			hits[i].BM25 = float64(float32(hits[i].BM25))
		}
		return hits
	}
	for _, tt := range []struct {
		name       string
		text, near func([]index.Hit) []index.Hit
		want       []string // of the problems
	}{
		{"same", same, same, nil},
		{"text", rest, same, []string{"text: nDCG@10", "text searches differ"}},
		{"rounded", rounded, same, []string{"text searches differ"}},
		{"vectors", same, rest, []string{"vectors: recall@10", "overlap@10"}},
	} {
		got, err := m.measure(t.Context(), changed{opened.Index, tt.text, tt.near})
		if err != nil {
			t.Fatal(err)
		}
		lines, problems := Engine{Name: tt.name, SameText: true, Overlap: 0.99}.judge(own, got)
		all := strings.Join(problems, "\n")
		for _, want := range tt.want {
			if !strings.Contains(all, want) {
				t.Errorf("%s: no problem is %q\n%s", tt.name, want, strings.Join(lines, "\n"))
			}
		}
		if (all == "") != (tt.want == nil) {
			t.Errorf("%s: problems %s, want %q", tt.name, all, tt.want)
		}
	}
}
