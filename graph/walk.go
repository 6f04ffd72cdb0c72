package graph

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
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
	Score float64 // of the search that found it, 0 or more; it starts with a share proportional to the score's square
}

// A Score is what a passage has of a walk's mass.
type Score struct {
	Chunk string
	Mass  float64 // in (0, 1]; those of all passages sum up to 1 at most
	Path  []Step  // the way by which most of it came, from the passage back to a start; empty: it is a start itself
}

// A Step is one step back on the way to a passage: it was reached because it names
// Entity, which Chunk names too.
type Step struct {
	Entity string // its key
	Chunk  string // ID; empty: the question names it
}

// Options are the settings of a walk; zero values are the defaults.
type Options struct {
	Seeds    int     // that it starts from, the first ones; 0: 3
	Question float64 // share of the mass that starts at the entities of the question, where the graph has them; 0: 0.3, negative: none
	Damping  float64 // share of the mass that goes on with each step; 0: 0.7
	Limit    int     // passages to return; 0: 100
}

// Which entities link passages, and how far a walk goes.
const (
	minCount  = 2    // passages that name one, but for those of the question
	maxShare  = 0.05 // of all passages
	fewNaming = 5    // are never too many
	maxNaming = 1000

	maxHops  = 4       // from passages to passages
	maxEdges = 50_000  // that are followed
	whole    = 1 << 50 // mass is counted in whole parts of it, so that sums depend on no order
	minMass  = whole >> 24
)

// Walk returns the passages with the most mass, best first, ties by chunk ID, at most
// options.Limit: the personalised PageRank of a walker that starts at the seeds and
// at the entities of the question, given by key, and goes from a passage to the
// entities that it names and from those to the passages that name them. An entity
// that n of N passages name has the weight log(N/n), twice that where the passage
// stands under it as its title. What is named by one passage or by more than one in
// twenty or 1000 links nothing. Seeds and entities that are not in the graph are
// left out. Equal graphs give equal results, however they are numbered.
//
// The walk is followed as far as it has notable mass: masses are lower bounds of the
// true ones.
//
// Source: Andersen, Chung and Lang, "Local graph partitioning using PageRank
// vectors", FOCS 2006, for pushing mass on from where it is; all that is pending is
// pushed at a time here, so that no order matters.
func Walk(ctx context.Context, view View, seeds []Seed, question []string, options Options) ([]Score, error) {
	w := &walk{
		view:     view,
		total:    view.Passages(),
		damping:  cmp.Or(options.Damping, 0.7),
		known:    make(map[uint64]uint32),
		entities: make(map[uint32]*entityNode),
	}
	w.most = min(maxNaming, max(fewNaming, int(maxShare*float64(w.total))))
	if err := w.start(seeds[:min(len(seeds), cmp.Or(options.Seeds, 3))], question, cmp.Or(options.Question, 0.3)); err != nil {
		return nil, err
	}
	for range maxHops {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// Both kinds of nodes step at once; what stands at entities of the question is
		// half a step ahead.
		if err := w.step(); err != nil {
			return nil, err
		}
		if err := w.step(); err != nil {
			return nil, err
		}
		if w.edges >= maxEdges {
			break
		}
	}
	return w.best(cmp.Or(options.Limit, 100)), nil
}

type walk struct {
	view    View
	total   int
	most    int // passages that an entity of use has
	damping float64
	edges   int // followed

	passages []passageNode
	known    map[uint64]uint32 // their places in passages
	entities map[uint32]*entityNode
	touched  []uint32 // entities with something pending, in the order in which it came
}

type passageNode struct {
	number        uint64
	seed          bool
	mass          int64
	pending, next int64
	links         []link // nil: not read
	from          int64  // the most that came at once
	via           uint32 // from this entity
}

type entityNode struct {
	number        uint32
	count         int
	weight        float64 // 0: it links nothing
	pending, next int64
	passages      []uint32 // places; nil: not read
	titles        []bool
	shares        int // of the passages: two for a title
	from          int64
	via           uint32 // place of the passage
	queued        bool
}

type link struct {
	entity *entityNode
	weight float64
}

// noPassage stands for the question as the source of mass.
const noPassage = math.MaxUint32

// start puts the mass where the walk begins.
func (w *walk) start(seeds []Seed, question []string, share float64) error {
	var places []uint32
	var weights []float64
	sum := 0.0
	for _, s := range seeds {
		if number, ok := w.view.Passage(s.Chunk); ok && s.Score > 0 {
			places = append(places, w.place(number))
			weights = append(weights, s.Score*s.Score)
			sum += s.Score * s.Score
		}
	}
	var asked []*entityNode
	for _, key := range question {
		e, err := w.entity(w.view.Entity(key), true)
		if err != nil {
			return err
		}
		if e.weight > 0 && !slices.Contains(asked, e) {
			asked = append(asked, e)
		}
	}
	if len(asked) == 0 || share < 0 {
		share = 0
	}
	if len(places) == 0 && share > 0 {
		share = 1
	}
	for i, p := range places {
		w.passages[p].seed = true
		w.passages[p].pending += int64((1 - share) * weights[i] / sum * whole)
	}
	for _, e := range asked {
		e.pending = int64(share / float64(len(asked)) * whole)
		e.from, e.via = math.MaxInt64, noPassage
		w.queue(e)
	}
	return nil
}

// place returns where the node of a passage is.
func (w *walk) place(number uint64) uint32 {
	p, ok := w.known[number]
	if !ok {
		p = uint32(len(w.passages))
		w.known[number] = p
		w.passages = append(w.passages, passageNode{number: number})
	}
	return p
}

// entity returns the node of an entity; asked: the question names it, so that one
// passage is enough for it to lead somewhere.
func (w *walk) entity(number uint32, asked bool) (*entityNode, error) {
	e, ok := w.entities[number]
	if !ok {
		count, err := w.view.Count(number)
		if err != nil {
			return nil, err
		}
		e = &entityNode{number: number, count: count}
		if count >= minCount && count <= w.most {
			e.weight = math.Log(float64(w.total) / float64(count))
		}
		w.entities[number] = e
	}
	if asked && e.count == 1 {
		e.weight = math.Log(float64(w.total))
	}
	return e, nil
}

func (w *walk) queue(e *entityNode) {
	if !e.queued {
		e.queued = true
		w.touched = append(w.touched, e.number)
	}
}

// step moves all that is pending by one step.
func (w *walk) step() error {
	entities := w.touched
	w.touched = nil
	for _, n := range entities {
		w.entities[n].queued = false
	}
	for _, p := range w.pendingPassages() {
		if err := w.pushPassage(p); err != nil {
			return err
		}
	}
	for _, n := range w.byMass(entities) {
		if err := w.pushEntity(w.entities[n]); err != nil {
			return err
		}
	}
	for i := range w.passages {
		p := &w.passages[i]
		p.mass += int64((1 - w.damping) * float64(p.pending))
		p.pending, p.next = p.next, 0
	}
	for _, n := range entities {
		w.entities[n].pending = 0
	}
	for _, n := range w.touched {
		e := w.entities[n]
		e.pending, e.next = e.pending+e.next, 0
	}
	return nil
}

// pendingPassages returns the passages with mass to move, most first.
func (w *walk) pendingPassages() []uint32 {
	var list []uint32
	for i := range w.passages {
		if w.passages[i].pending >= minMass {
			list = append(list, uint32(i))
		}
	}
	slices.SortFunc(list, func(a, b uint32) int {
		if c := cmp.Compare(w.passages[b].pending, w.passages[a].pending); c != 0 {
			return c
		}
		return strings.Compare(w.chunk(a), w.chunk(b))
	})
	return list
}

// byMass returns the entities with mass to move, most first.
func (w *walk) byMass(list []uint32) []uint32 {
	list = slices.DeleteFunc(slices.Clone(list), func(n uint32) bool { return w.entities[n].pending < minMass })
	slices.SortFunc(list, func(a, b uint32) int {
		if c := cmp.Compare(w.entities[b].pending, w.entities[a].pending); c != 0 {
			return c
		}
		return strings.Compare(w.view.Key(a), w.view.Key(b))
	})
	return list
}

func (w *walk) chunk(place uint32) string { return w.view.Chunk(w.passages[place].number) }

// pushPassage moves a passage's mass to the entities that it names.
func (w *walk) pushPassage(place uint32) error {
	if err := w.readLinks(place); err != nil {
		return err
	}
	p := &w.passages[place]
	sum := 0.0
	for _, l := range p.links {
		sum += l.weight
	}
	if w.edges += len(p.links); w.edges > maxEdges || sum == 0 {
		return nil
	}
	for _, l := range p.links {
		amount := int64(w.damping * float64(p.pending) * (l.weight / sum))
		e := l.entity
		e.next += amount
		w.queue(e)
		if amount > e.from || amount == e.from && amount > 0 && w.chunk(place) < w.chunk(e.via) {
			e.from, e.via = amount, place
		}
	}
	return nil
}

// readLinks reads which entities a passage names.
func (w *walk) readLinks(place uint32) error {
	p := &w.passages[place]
	if p.links != nil {
		return nil
	}
	p.links = []link{}
	var failed error
	err := w.view.Entities(p.number, func(number uint32, title bool) {
		e, err := w.entity(number, false)
		if err != nil {
			failed = cmp.Or(failed, err)
			return
		}
		if e.weight > 0 {
			l := link{e, e.weight}
			if title {
				l.weight *= 2
			}
			p.links = append(p.links, l)
		}
	})
	return cmp.Or(failed, err)
}

// pushEntity moves an entity's mass to the passages that name it.
func (w *walk) pushEntity(e *entityNode) error {
	if w.edges += e.count; w.edges > maxEdges {
		return nil
	}
	if e.passages == nil {
		err := w.view.Named(e.number, func(passage uint64, title bool) {
			e.passages = append(e.passages, w.place(passage))
			e.titles = append(e.titles, title)
			e.shares++
			if title {
				e.shares++
			}
		})
		if err != nil {
			return err
		}
	}
	amount := w.damping * float64(e.pending) / float64(max(e.shares, 1))
	for i, place := range e.passages {
		part := int64(amount)
		if e.titles[i] {
			part = int64(2 * amount)
		}
		p := &w.passages[place]
		p.next += part
		if part > p.from || part == p.from && part > 0 && w.view.Key(e.number) < w.view.Key(p.via) {
			p.from, p.via = part, e.number
		}
	}
	return nil
}

// best returns the passages with the most mass.
func (w *walk) best(limit int) []Score {
	order := make([]uint32, 0, len(w.passages))
	for i := range w.passages {
		p := &w.passages[i]
		p.mass += int64((1 - w.damping) * float64(p.pending))
		if p.mass > 0 {
			order = append(order, uint32(i))
		}
	}
	slices.SortFunc(order, func(a, b uint32) int {
		if c := cmp.Compare(w.passages[b].mass, w.passages[a].mass); c != 0 {
			return c
		}
		return strings.Compare(w.chunk(a), w.chunk(b))
	})
	scores := make([]Score, 0, min(limit, len(order)))
	for _, place := range order[:min(limit, len(order))] {
		scores = append(scores, Score{Chunk: w.chunk(place), Mass: float64(w.passages[place].mass) / whole, Path: w.path(place)})
	}
	return scores
}

// path returns the way by which most of a passage's mass came.
func (w *walk) path(place uint32) []Step {
	var path []Step
	for range maxHops {
		p := &w.passages[place]
		if p.seed || p.from == 0 {
			break
		}
		e := w.entities[p.via]
		if e.via == noPassage {
			return append(path, Step{Entity: w.view.Key(p.via)})
		}
		path = append(path, Step{Entity: w.view.Key(p.via), Chunk: w.chunk(e.via)})
		place = e.via
	}
	return path
}
