package graph_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay/internal/graph"
)

// A plainView is a graph in memory. A name with a star is a title.
type plainView struct {
	chunks []string // by passage number
	names  [][]string
	keys   []string // by entity number
	failAt int      // number of calls until errBroken; 0: never
}

var errBroken = errors.New("broken")

// viewOf returns a graph of passages. Each is given as a chunk ID, a colon and the keys that it
// names, such as "a: x y*".
func viewOf(passages ...string) *plainView {
	v := new(plainView)
	for _, p := range passages {
		chunk, names, _ := strings.Cut(p, ":")
		list := strings.Fields(names)
		slices.Sort(list)
		v.chunks, v.names = append(v.chunks, chunk), append(v.names, list)
	}
	return v
}

func (v *plainView) broken() error {
	if v.failAt > 0 {
		if v.failAt--; v.failAt == 0 {
			return errBroken
		}
	}
	return nil
}

func (v *plainView) Passages() int { return len(v.chunks) }

func (v *plainView) Passage(chunk string) (uint64, bool) {
	i := slices.Index(v.chunks, chunk)
	return uint64(i), i >= 0
}

func (v *plainView) Chunk(passage uint64) string { return v.chunks[passage] }
func (v *plainView) Compare(a, b uint64) int     { return cmp.Compare(v.chunks[a], v.chunks[b]) }
func (v *plainView) Key(entity uint32) string    { return v.keys[entity] }

func (v *plainView) Entity(key string) uint32 {
	i := slices.Index(v.keys, key)
	if i < 0 {
		i = len(v.keys)
		v.keys = append(v.keys, key)
	}
	return uint32(i)
}

func (v *plainView) Entities(passage uint64, f func(uint32, bool)) error {
	for _, name := range v.names[passage] {
		key, title := strings.CutSuffix(name, "*")
		f(v.Entity(key), title)
	}
	return v.broken()
}

func (v *plainView) Count(entity uint32) (int, error) {
	n := 0
	err := v.Named(entity, func(uint64, bool) { n++ })
	return n, err
}

func (v *plainView) Named(entity uint32, f func(uint64, bool)) error {
	for p, names := range v.names {
		for _, name := range names {
			if key, title := strings.CutSuffix(name, "*"); key == v.keys[entity] {
				f(uint64(p), title)
			}
		}
	}
	return v.broken()
}

func walk(t testing.TB, view graph.View, seeds []graph.Seed, question []string, o graph.Options) []graph.Score {
	t.Helper()
	scores, err := graph.Walk(t.Context(), view, seeds, question, o)
	if err != nil {
		t.Fatal(err)
	}
	return scores
}

// The mass that remains after each of the first steps, with damping 0.8.
const restart, first, second = 0.2, 0.2 * 0.8, 0.2 * 0.8 * 0.8

func TestWalk(t *testing.T) {
	filler := func(n int) []string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("f%02d:", i))
		}
		return list
	}
	everywhere := []string{"a: x", "b: x y"}
	for i := range 6 {
		everywhere = append(everywhere, fmt.Sprintf("h%d: y", i))
	}
	one := []graph.Seed{{Chunk: "a", Score: 3}}
	for _, test := range []struct {
		name     string
		view     *plainView
		seeds    []graph.Seed
		question []string
		want     []graph.Score // with minimum masses; more may follow
	}{
		{name: "nothing", view: viewOf()},
		{name: "no seeds", view: viewOf("a: x", "b: x", "c:")},
		{name: "a seed without links", view: viewOf("a: x", "b:"), seeds: one, want: []graph.Score{{Chunk: "a", Mass: restart}}},
		{
			name: "seeds that are unknown, worth nothing or no number", view: viewOf("a:", "b:"),
			seeds: []graph.Seed{{Chunk: "z", Score: 1}, {Chunk: "b", Score: 0}, {Chunk: "b", Score: -1}, {Chunk: "b", Score: math.NaN()}, {Chunk: "a", Score: 1}},
			want:  []graph.Score{{Chunk: "a", Mass: restart}},
		},
		{
			name: "over one link", view: viewOf("a: x", "b: x", "c:", "d:"), seeds: one,
			want: []graph.Score{
				{Chunk: "a", Mass: restart + second/2, Received: second / 2},
				{Chunk: "b", Mass: second / 2, Received: second / 2, Path: []graph.Step{{Entity: "x", Chunk: "a"}}},
			},
		},
		{
			name: "a title counts twice", view: viewOf("a: x", "b: x*", "c: x", "d:", "e:", "f:"), seeds: one,
			want: []graph.Score{
				{Chunk: "a", Mass: restart + second/4, Received: second / 4},
				{Chunk: "b", Mass: second / 2, Received: second / 2, Path: []graph.Step{{Entity: "x", Chunk: "a"}}},
				{Chunk: "c", Mass: second / 4, Received: second / 4, Path: []graph.Step{{Entity: "x", Chunk: "a"}}},
			},
		},
		{
			name: "two hops", view: viewOf("a: x", "b: x y", "c: y", "d:", "e:"), seeds: one,
			want: []graph.Score{
				{Chunk: "a", Mass: restart + second/2, Received: second / 2},
				{Chunk: "b", Mass: second / 2, Received: second / 2, Path: []graph.Step{{Entity: "x", Chunk: "a"}}},
				{Chunk: "c", Mass: 0.2 * 0.4096 / 8, Received: 0.2 * 0.4096 / 8, Path: []graph.Step{{Entity: "y", Chunk: "b"}, {Entity: "x", Chunk: "a"}}},
			},
		},
		{
			name: "what too many name links nothing", view: viewOf(everywhere...), seeds: []graph.Seed{{Chunk: "h0", Score: 1}},
			want: []graph.Score{{Chunk: "h0", Mass: restart}},
		},
		{
			name: "the question's entities alone", view: viewOf("a: x", "b: x", "c:", "d:"), question: []string{"x", "x", "nobody"},
			want: []graph.Score{
				{Chunk: "a", Mass: first / 2, Received: first / 2, Path: []graph.Step{{Entity: "x"}}},
				{Chunk: "b", Mass: first / 2, Received: first / 2, Path: []graph.Step{{Entity: "x"}}},
			},
		},
		{
			name: "what one passage names leads to it from the question", view: viewOf("a: x", "b:"), question: []string{"x"},
			want: []graph.Score{{Chunk: "a", Mass: first, Received: first, Path: []graph.Step{{Entity: "x"}}}},
		},
		{
			name: "seeds and question", view: viewOf("a:", "b: x", "c:"), seeds: one, question: []string{"x"},
			want: []graph.Score{
				{Chunk: "a", Mass: 0.7 * restart},
				{Chunk: "b", Mass: 0.3 * first, Received: 0.3 * first, Path: []graph.Step{{Entity: "x"}}},
			},
		},
		{
			name: "a little worse than the best is much less", view: viewOf("a:", "b:"), seeds: []graph.Seed{{Chunk: "a", Score: 1}, {Chunk: "b", Score: 0.5}},
			want: []graph.Score{{Chunk: "a", Mass: restart * 1024 / 1025}, {Chunk: "b", Mass: restart / 1025}},
		},
		{
			name: "five seeds", view: viewOf(filler(9)...), want: []graph.Score{{Chunk: "f00", Mass: restart / 5}, {Chunk: "f01", Mass: restart / 5}, {Chunk: "f02", Mass: restart / 5}, {Chunk: "f03", Mass: restart / 5}, {Chunk: "f04", Mass: restart / 5}},
			seeds: []graph.Seed{{"f04", 2}, {"f03", 2}, {"f02", 2}, {"f01", 2}, {"f00", 2}, {"f05", 2}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := walk(t, test.view, test.seeds, test.question, graph.Options{})
			if diff := gocmp.Diff(test.want, got, cmpopts.IgnoreFields(graph.Score{}, "Mass", "Received"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			for i, w := range test.want {
				// The masses in the table leave out what flows back later.
				if i < len(got) && (got[i].Mass < w.Mass-1e-9 || got[i].Received < w.Received-1e-9) {
					t.Errorf("%s has mass %v, received %v, want %v and %v or more", w.Chunk, got[i].Mass, got[i].Received, w.Mass, w.Received)
				}
			}
		})
	}
}

// randomView returns a graph of passages that name a few of the given number of entities. The first
// entities are named most often.
func randomView(random *rand.Rand, passages, entities int) *plainView {
	var list []string
	for i := range passages {
		line := fmt.Sprintf("p%03d:", i)
		seen := map[int]bool{}
		for range random.IntN(6) {
			e := min(random.IntN(entities), random.IntN(entities))
			if seen[e] {
				continue
			}
			seen[e] = true
			line += fmt.Sprintf(" e%03d", e)
			if random.IntN(5) == 0 {
				line += "*"
			}
		}
		list = append(list, line)
	}
	return viewOf(list...)
}

// pageRank returns the mass of all passages, computed by iterating 60 times over the whole graph.
func pageRank(v *plainView, seeds []graph.Seed) map[string]float64 {
	const damping = 0.8
	most := max(5, len(v.chunks)/20)
	weight := map[string]float64{}
	counts := map[string]int{}
	for _, names := range v.names {
		for _, n := range names {
			counts[strings.TrimSuffix(n, "*")]++
		}
	}
	for key, n := range counts {
		if n >= 2 && n <= most {
			weight[key] = math.Log(float64(len(v.chunks)) / float64(n))
		}
	}
	of := func(name string) (key string, w float64) {
		key, title := strings.CutSuffix(name, "*")
		if w = weight[key]; title {
			w *= 2
		}
		return key, w
	}
	start := map[int]float64{}
	sum := 0.0
	for _, s := range seeds {
		sum += math.Pow(s.Score, 10)
	}
	for _, s := range seeds {
		p, _ := v.Passage(s.Chunk)
		start[int(p)] = math.Pow(s.Score, 10) / sum
	}
	at, mass := start, map[string]float64{}
	for range 60 {
		entities := map[string]float64{}
		for p, m := range at {
			mass[v.chunks[p]] += (1 - damping) * m
			sum := 0.0
			for _, n := range v.names[p] {
				_, w := of(n)
				sum += w
			}
			for _, n := range v.names[p] {
				if key, w := of(n); w > 0 {
					entities[key] += damping * m * w / sum
				}
			}
		}
		sums := map[string]float64{}
		for _, names := range v.names {
			for _, n := range names {
				key, w := of(n)
				sums[key] += w
			}
		}
		at = map[int]float64{}
		for p, names := range v.names {
			for _, n := range names {
				if key, w := of(n); entities[key] > 0 {
					at[p] += damping * entities[key] * w / sums[key]
				}
			}
		}
	}
	return mass
}

// TestWalkIsPageRank checks that masses are those of the full iteration, less what was not
// followed.
func TestWalkIsPageRank(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 4))
		v := randomView(random, 150, 60)
		seeds := []graph.Seed{{"p000", 1}, {"p001", 0.9}, {"p002", 0.95}}
		want := pageRank(v, seeds)
		total := 0.0
		for _, s := range walk(t, v, seeds, nil, graph.Options{Limit: 1000}) {
			total += s.Mass
			if s.Mass > want[s.Chunk]+1e-9 || s.Mass < want[s.Chunk]-0.02 {
				t.Errorf("seed %d: %s has mass %v, want a little less than %v", seed, s.Chunk, s.Mass, want[s.Chunk])
			}
		}
		if total > 1+1e-9 {
			t.Errorf("seed %d: all masses are %v", seed, total)
		}
	}
}

// TestWalkNumbering checks that results do not depend on the numbering of passages.
func TestWalkNumbering(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 5))
		v := randomView(random, 200, 80)
		seeds := []graph.Seed{{"p000", 1}, {"p001", 1}, {"p002", 1}}
		question := []string{"e070", "e010"}
		want := walk(t, v, seeds, question, graph.Options{})
		other := new(plainView)
		for _, i := range random.Perm(len(v.chunks)) {
			other.chunks, other.names = append(other.chunks, v.chunks[i]), append(other.names, v.names[i])
		}
		for _, i := range random.Perm(80) {
			other.Entity(fmt.Sprintf("e%03d", i))
		}
		if diff := gocmp.Diff(want, walk(t, other, seeds, question, graph.Options{})); diff != "" {
			t.Errorf("seed %d: -want +numbered otherwise\n%s", seed, diff)
		}
		if again := walk(t, v, seeds, question, graph.Options{}); !gocmp.Equal(want, again) {
			t.Errorf("seed %d: another result the second time", seed)
		}
		if some := walk(t, v, seeds, question, graph.Options{Limit: 3}); !gocmp.Equal(want[:3], some) {
			t.Errorf("seed %d: the best three are not the first three", seed)
		}
	}
}

// TestWalkBounded checks that a walk in a dense graph ends and follows at most 20,000 links.
func TestWalkBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	var list []string
	for i := range 1000 {
		line := fmt.Sprintf("p%03d:", i)
		for _, e := range random.Perm(800)[:32] {
			line += fmt.Sprintf(" e%03d", e)
		}
		list = append(list, line)
	}
	v := &counting{View: viewOf(list...)}
	if got := walk(t, v, []graph.Seed{{"p000", 1}, {"p001", 1}, {"p002", 1}}, nil, graph.Options{}); len(got) != 100 {
		t.Errorf("%d passages, want 100", len(got))
	}
	if v.links > 2*20_000 {
		t.Errorf("%d links were read", v.links)
	}
}

// A counting view counts the links that are read.
type counting struct {
	graph.View
	links int
}

func (c *counting) Named(entity uint32, f func(uint64, bool)) error {
	return c.View.Named(entity, func(p uint64, title bool) {
		c.links++
		f(p, title)
	})
}

func (c *counting) Entities(passage uint64, f func(uint32, bool)) error {
	return c.View.Entities(passage, func(e uint32, title bool) {
		c.links++
		f(e, title)
	})
}

func TestWalkErrors(t *testing.T) {
	seeds := []graph.Seed{{"a", 1}}
	for call := 1; ; call++ {
		v := viewOf("a: x y", "b: x z", "c: y z", "d: w", "e: w")
		v.failAt = call
		_, err := graph.Walk(t.Context(), v, seeds, []string{"w"}, graph.Options{})
		if v.failAt > 0 {
			break // there were fewer calls
		}
		if !errors.Is(err, errBroken) {
			t.Errorf("call %d fails: error %v", call, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := graph.Walk(ctx, viewOf("a: x", "b: x"), seeds, nil, graph.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}
