package pgvector

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRequired checks that a chunk whose words can reach a score has a word of each required list.
func TestRequired(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		bounds, holding, sum := make([]float64, 1+r.IntN(maxVaried+4)), []int{}, 0.0
		for i := range bounds {
			bounds[i] = float64(1 + r.Int64N(1<<34))
			holding = append(holding, r.IntN(5000))
			sum += bounds[i]
		}
		c := combine(bounds, holding, 10_000)
		last := sum
		for n := 1; n < 100_000; n *= 4 {
			score := c.reached(n)
			if score > last {
				t.Fatalf("%d chunks reach %v, fewer reach %v", n, score, last)
			}
			last = score
		}
		if last != 0 {
			t.Fatalf("more chunks than there are reach %v, want 0", last)
		}
		for _, score := range []float64{0, 1, float64(r.Int64N(int64(sum))), sum} {
			lists := c.required(score)
			if len(lists) < 1 || len(lists) > maxRequired || score < 2 && (len(lists) > 1 || len(lists[0]) != len(bounds)) {
				t.Fatalf("lists of %v for the score %v of %v", lists, score, sum)
			}
			for range 200 {
				has, bound := make(map[int]bool), 0.0
				for w := range bounds {
					if r.IntN(3) == 0 {
						has[w] = true
						bound += bounds[w]
					}
				}
				for _, list := range lists {
					if len(has) > 0 && bound >= score && !slices.ContainsFunc(list, func(w int) bool { return has[w] }) {
						t.Fatalf("a chunk with the words %v can reach %v, but has none of %v", has, score, list)
					}
				}
			}
		}
	}
}

// TestCombinations finds the best of random chunks, whose words depend on each other.
func TestCombinations(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		words := 1 + r.IntN(6)
		type chunk struct {
			has   map[int]bool
			score float64
		}
		bounds, holding := make([]float64, words), make([]int, words)
		for w := range bounds {
			bounds[w] = 1 + 9*r.Float64()
		}
		chunks := make([]chunk, r.IntN(3000))
		for i := range chunks {
			chunks[i].has = make(map[int]bool)
			for w := range words {
				if i%words != w && r.IntN(1+w) == 0 { // never all words
					chunks[i].has[w] = true
					chunks[i].score += bounds[w] * r.Float64()
					holding[w]++
				}
			}
		}
		search := func(lists [][]int, limit int) []float64 {
			var scores []float64
			for _, c := range chunks {
				if !slices.ContainsFunc(lists, func(list []int) bool {
					return !slices.ContainsFunc(list, func(w int) bool { return c.has[w] })
				}) {
					scores = append(scores, -c.score)
				}
			}
			slices.Sort(scores)
			return scores[:min(limit, len(scores))]
		}
		all := make([]int, words)
		for w := range all {
			all[w] = w
		}
		limit := 1 + r.IntN(100)
		var got []float64
		c := combine(bounds, holding, len(chunks))
		err := c.best(limit, func(score float64) (int, float64, error) {
			if got = search(c.required(score), limit); len(got) == 0 {
				return 0, 0, nil
			}
			return len(got), -got[len(got)-1], nil
		})
		if want := search([][]int{all}, limit); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d of %d chunks, %v: %v, want %v", limit, len(chunks), err, got, want)
		}
	}
	broken := errors.New("broken")
	if err := combine([]float64{1}, []int{5}, 10).best(3, func(float64) (int, float64, error) { return 0, 0, broken }); !errors.Is(err, broken) {
		t.Errorf("best = %v, want %v", err, broken)
	}
}
