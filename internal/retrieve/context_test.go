package retrieve_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/retrieve"
)

func termsOf(text string) []assay.Term {
	var terms []assay.Term
	for _, t := range analysis.Tokens(text, "") {
		terms = append(terms, assay.Term{Text: t.Term, Stem: t.Term, Weight: 1})
	}
	return terms
}

// passageOf returns a hit whose text begins at byte 100 of its document.
func passageOf(text string) assay.Hit {
	const before = 100
	return assay.Hit{Text: text, Chunk: assay.Chunk{Start: before, End: before + len(text), Tokens: len(strings.Fields(text))}}
}

func TestAssembleWhole(t *testing.T) {
	var hits []assay.Hit
	for i := range 5 {
		hits = append(hits, passageOf(fmt.Sprintf("Sentence %d. And more.", i+1)))
	}
	excerpts, left := retrieve.Assemble(hits, termsOf("more"), 1000)
	var order []int
	for _, e := range excerpts {
		order = append(order, e.Hit+1)
		if diff := cmp.Diff([]retrieve.Span{{Start: 100, End: 121}}, e.Spans); diff != "" {
			t.Errorf("hit %d: -want +got\n%s", e.Hit, diff)
		}
	}
	if diff := cmp.Diff([]int{1, 3, 5, 4, 2}, order); diff != "" || left != 0 {
		t.Errorf("%d left out; order -want +got\n%s", left, diff)
	}
	if excerpts, left := retrieve.Assemble(nil, nil, 10); len(excerpts) != 0 || left != 0 {
		t.Errorf("of nothing: %v, %d", excerpts, left)
	}
}

func TestAssembleCompressed(t *testing.T) {
	hits := []assay.Hit{
		passageOf("A poet wrote a novel. The copper bridge was built in 1907. It replaced a ferry. The soldier met the painter."),
		passageOf("The winter was long. The bridge is painted each year."),
		passageOf("Bread is made of barley. The miller has a school."),
	}
	texts := func(tokens int) (got []string, left int) {
		excerpts, left := retrieve.Assemble(hits, termsOf("copper bridge"), tokens)
		for _, e := range excerpts {
			for _, s := range e.Spans {
				got = append(got, hits[e.Hit].Text[s.Start-100:s.End-100])
			}
		}
		return got, left
	}
	for _, test := range []struct {
		tokens int
		want   []string
		left   int
	}{
		{23, []string{"The copper bridge was built in 1907. It replaced a ferry.", "Bread is made of barley.", "The bridge is painted each year."}, 0},
		{14, []string{"The copper bridge was built in 1907.", "The bridge is painted each year."}, 1},
		{8, []string{"The copper bridge was built in 1907."}, 2},
		{2, nil, 3},
	} {
		got, left := texts(test.tokens)
		if diff := cmp.Diff(test.want, got); diff != "" || left != test.left {
			t.Errorf("%d tokens: %d left out, want %d; -want +got\n%s", test.tokens, left, test.left, diff)
		}
	}
}

// TestAssembleHolds checks, for random hits and budgets, that spans lie in their hit, disjoint and
// in order, that they fit the budget, and that each hit occurs once or is left out.
func TestAssembleHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 300 {
		var hits []assay.Hit
		for range r.IntN(7) {
			var b strings.Builder
			for range r.IntN(8) {
				b.WriteString(strings.ToUpper("x") + randomText(r, 1+r.IntN(20)) + []string{" ", "\n\n", "\n- "}[r.IntN(3)])
			}
			hits = append(hits, passageOf(b.String()))
		}
		tokens := r.IntN(150)
		excerpts, left := retrieve.Assemble(hits, termsOf("river castle wolf"), tokens)
		again, _ := retrieve.Assemble(hits, termsOf("river castle wolf"), tokens)
		if diff := cmp.Diff(excerpts, again); diff != "" {
			t.Fatalf("not the same again:\n%s", diff)
		}
		used := 0
		var seen []int
		for _, e := range excerpts {
			end := 0
			for _, s := range e.Spans {
				h := hits[e.Hit]
				if s.Start < h.Chunk.Start || s.Start < end || s.End < s.Start || s.End > h.Chunk.End {
					t.Fatalf("span %+v of a hit at %d to %d, after %d", s, h.Chunk.Start, h.Chunk.End, end)
				}
				end = s.End
				used += len(strings.Fields(h.Text[s.Start-100 : s.End-100]))
			}
			seen = append(seen, e.Hit)
		}
		slices.Sort(seen)
		if n := len(slices.Compact(seen)); n != len(excerpts) || n+left != len(hits) {
			t.Fatalf("%d excerpts of %d hits, %d left out of %d", len(excerpts), n, left, len(hits))
		}
		if used > tokens+len(hits)+tokens/3 { // words are at most about the tokens by bytes
			t.Fatalf("%d words, want at most about %d", used, tokens)
		}
	}
}
