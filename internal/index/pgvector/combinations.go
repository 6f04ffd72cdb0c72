package pgvector

import (
	"cmp"
	"slices"
)

// Limits of combinations. With more of either, searches of real questions in 200,000 chunks cost the same.
const (
	maxVaried   = 12 // words whose combinations are told apart
	maxRequired = 16 // lists of words
)

// combinations tell which words a chunk must have to be among the best, because GIN cannot skip postings
// by their scores. They are the sets of the commonest words of a query. A set is a number with a
// bit for each of them.
//
// The bound of a set is more than its words can add to a score together, as in MaxScore: Turtle and
// Flood, "Query evaluation: strategies and optimizations", 1995.
type combinations struct {
	common, rare []int // words, by their index in the query; rare ones are in no set
	bounds       []float64
	chunks       []float64 // expected chunks with these common words and no others
}

// combine returns the combinations of words. For each word, bounds has a number that is more than it adds
// to any score, and holding the number of chunks that have it, of so many chunks. Chunks are expected to
// have words independently of each other; where they do not, searches take longer and find the same.
func combine(bounds []float64, holding []int, chunks int) *combinations {
	words := make([]int, len(bounds))
	for w := range words {
		words[w] = w
	}
	slices.SortStableFunc(words, func(a, b int) int { return cmp.Compare(holding[b], holding[a]) })
	n := min(len(words), maxVaried)
	c := &combinations{common: words[:n], rare: words[n:], bounds: make([]float64, 1<<n), chunks: make([]float64, 1<<n)}
	c.chunks[0] = float64(chunks)
	for i, w := range c.common {
		share := min(1, float64(holding[w])/float64(max(1, chunks)))
		for set := range 1 << i {
			with := set | 1<<i
			c.bounds[with] = c.bounds[set] + bounds[w]
			c.chunks[with] = c.chunks[set] * share
			c.chunks[set] *= 1 - share
		}
	}
	return c
}

// best calls search until it has found the limit best chunks of all. Each call is to score at least the
// chunks whose words have bounds that sum to the given score or more, and returns how many it found, at
// most limit, and the lowest score of these. A score of 0 is that of all chunks that have a word. The hits
// of the last call are the best. If they are fewer than limit, they are all that have a word.
func (c *combinations) best(limit int, search func(score float64) (found int, lowest float64, err error)) error {
	// The first call is for the chunks that can reach a score which few can. If limit chunks reach it,
	// they are the best. Otherwise others may have a score between it and that of the worst of them.
	for expected := 4 * limit; ; expected *= 8 {
		score := c.reached(expected)
		found, lowest, err := search(score)
		if err != nil || found < limit && score == 0 {
			return err
		}
		if found < limit {
			continue
		}
		if lowest < score {
			_, _, err = search(lowest)
		}
		return err
	}
}

// reached returns the highest score that the words of n expected chunks can reach, or 0.
func (c *combinations) reached(n int) float64 {
	sets := make([]int, len(c.bounds))
	for set := range sets {
		sets[set] = set
	}
	slices.SortFunc(sets, func(a, b int) int { return cmp.Compare(c.bounds[b], c.bounds[a]) })
	sum := 0.0
	for _, set := range sets {
		if sum += c.chunks[set]; sum >= float64(n) {
			return c.bounds[set]
		}
	}
	return 0
}

// required returns lists of words. A chunk whose score reaches the given one has a word of each list.
// Others may have that too.
//
// A chunk cannot reach the score if it only has words of a set with a lower bound: it must have another.
// Each list has all words but those of a largest such set, and the sets are taken that exclude the most
// chunks.
func (c *combinations) required(score float64) [][]int {
	left := slices.Clone(c.chunks) // chunks that are to be excluded
	for set, bound := range c.bounds {
		if set != 0 && bound >= score {
			left[set] = 0
		}
	}
	var lists [][]int
	for len(lists) < maxRequired {
		excluded := 0
		for set := range left {
			if left[set] > left[excluded] {
				excluded = set
			}
		}
		if left[excluded] < 1 && len(lists) > 0 {
			break
		}
		for i := range c.common {
			if with := excluded | 1<<i; c.bounds[with] < score {
				excluded = with
			}
		}
		for set := range left {
			if set&^excluded == 0 {
				left[set] = 0
			}
		}
		list := slices.Clone(c.rare)
		for i, w := range c.common {
			if excluded&(1<<i) == 0 {
				list = append(list, w)
			}
		}
		lists = append(lists, list)
	}
	return lists
}
