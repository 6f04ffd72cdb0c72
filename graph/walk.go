package graph

import (
	"cmp"
	"context"
)

// A View is the graph of the passages that a search may find. Passages and entities
// are numbers in it; entities are counted up from 0 in the order in which they are
// met.
type View interface {
	// Passages returns how many passages there are.
	Passages() int
	// Passage returns the number of a chunk's passage; ok is false when it is not in
	// the graph.
	Passage(chunk string) (passage uint64, ok bool)
	// Chunk returns the ID of the chunk that a passage is.
	Chunk(passage uint64) string
	// Compare orders passages by the IDs of their chunks.
	Compare(a, b uint64) int
	// Entity returns the number of the entity with this key.
	Entity(key string) uint32
	// Key returns the key of an entity.
	Key(entity uint32) string
	// Entities calls f for each entity that a passage names, in the order of their
	// keys; title: it is one that the passage stands under.
	Entities(passage uint64, f func(entity uint32, title bool)) error
	// Count returns how many passages name an entity.
	Count(entity uint32) (int, error)
	// Named calls f for each of them, in any order.
	Named(entity uint32, f func(passage uint64, title bool)) error
}

// A Seed is a passage that a walk starts from.
type Seed struct {
	Chunk string  // ID
	Score float64 // of the search that found it; positive, else it is left out; it starts with a share proportional to its power of Options.Power
}

// A Score is what a passage has of a walk's mass.
type Score struct {
	Chunk string
	Mass  float64 // in (0, 1]; those of all passages sum up to 1 at most
	// Received is the part of Mass that came over links; the rest it has as a seed.
	Received float64
	Path     []Step // the way by which most of it came, from the passage back to a start; empty: it is a start itself
}

// A Step is one step back on the way to a passage: it was reached because it names
// Entity, which Chunk names too.
type Step struct {
	Entity string // its key
	Chunk  string // ID; empty: the question names it
}

// Options are the settings of a walk; zero values are the defaults.
type Options struct {
	Seeds    int     // that it starts from, the first ones; 0: 5
	Power    float64 // of the seeds' scores; 0: 10
	Question float64 // share of the mass that starts at the entities of the question, where the graph has them; 0: 0.3, negative: none
	Damping  float64 // share of the mass that goes on with each step; 0: 0.8
	Limit    int     // passages to return; 0: 100
}

// The defaults of Options, chosen on the nine shared sets, with gte-small and BM25
// fused and half the root of mass/max(mass) added: nDCG@10 and all gold in the first
// ten on hotpotqa-train100 0.848 and 0.83 to 0.900 and 0.96, musique-train100 0.723
// and 0.50 to 0.772 and 0.63, anthropic-docs 0.785 and 0.72 to 0.799 and 0.78,
// mtrag-un-reference 0.849 and 0.85 to 0.850 and 0.85. Three seeds by their squares
// and damping 0.7 give 0.899, 0.755, 0.778 and 0.844: a hit that is only a little
// worse than the best starts with too much.
const (
	defaultSeeds    = 5
	defaultPower    = 10
	defaultQuestion = 0.3
	defaultDamping  = 0.8
)

// Which entities link passages.
const (
	minCount  = 2    // passages that name one; 1 where the question names it
	maxShare  = 0.05 // of all passages
	fewNaming = 5    // are never too many
	maxNaming = 1000

	// What the question names itself leads on from a passage by this part of its
	// weight: what is new does more. nDCG@10 on hotpotqa-train100 0.898 to 0.908, on
	// musique-train100 0.772 to 0.782, elsewhere the same (0.5: 0.903 and 0.778).
	askedWeight = 0.2
)

// How far a walk goes. On the shared sets all gold is in the first ten as often with
// these as when every mass is followed for good, for a fifth of the edges.
const (
	maxHops  = 4 // from passages to passages
	maxEdges = 20_000
	minMass  = whole >> 10 // what is less does not go on
	minPart  = whole >> 14 // nor does an entity's mass, when each passage would get less
)

// whole is a walk's mass. It is counted in whole numbers, so that sums depend on no
// order.
const whole = 1 << 50

// Walk returns the passages with the most mass, best first, ties by chunk ID, at most
// options.Limit: the personalised PageRank of a walker that starts at the seeds and
// at the entities of the question, given by key, and goes from a passage to the
// entities that it names and from those to the passages that name them. An entity
// that n of N passages name has the weight log(N/n), twice that where the passage
// stands under it as its title, and from a passage on a fifth of that where the
// question names it. What is named by one passage, by more than one in twenty or by
// more than 1000 links nothing. Seeds and entities that are not in the graph are left
// out. Equal graphs give equal results, however they are numbered.
//
// Mass is followed as far as it is notable, over at most 20,000 links: what a
// passage has is a lower bound.
//
// Source: Andersen, Chung and Lang, "Local graph partitioning using PageRank
// vectors", FOCS 2006, for pushing mass on from where it is; all that is pending is
// pushed at a time here, so that no order matters.
func Walk(ctx context.Context, view View, seeds []Seed, question []string, options Options) ([]Score, error) {
	w := newWalk(view, cmp.Or(options.Damping, defaultDamping))
	seeds = seeds[:min(len(seeds), cmp.Or(options.Seeds, defaultSeeds))]
	if err := w.start(seeds, cmp.Or(options.Power, defaultPower), question, cmp.Or(options.Question, defaultQuestion)); err != nil {
		return nil, err
	}
	// Passages and entities step at once: what starts at entities of the question is
	// half a hop ahead.
	for range 2 * maxHops {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := w.step(); err != nil {
			return nil, err
		}
	}
	return w.best(cmp.Or(options.Limit, 100)), nil
}
