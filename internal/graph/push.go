package graph

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
)

// A walk is the part of a graph that mass has reached.
type walk struct {
	view    View
	total   int
	most    int // most passages that may name an entity for it to link them
	damping float64
	edges   int // links followed so far

	passages []passageNode
	places   map[uint64]uint32 // index in passages, by passage number
	entities []entityNode
	known    map[uint32]uint32 // index in entities, by entity number

	// Nodes with mass to move on, in this step and in the next.
	passagesNow, passagesNext []uint32
	entitiesNow, entitiesNext []uint32
}

// A flow is the mass that moves through a node.
type flow struct {
	pending, next int64
	most          int64  // largest single amount received
	from          uint32 // its origin, the place of a node of the other kind
}

type passageNode struct {
	flow
	number uint64
	seed   bool
	mass   int64
	own    int64 // part of mass that it has as a seed
	read   bool
	links  []link // to entities that link passages
	weight float64
}

type link struct {
	entity uint32 // place of the entity
	weight float64
}

type entityNode struct {
	flow
	number   uint32
	count    int
	asked    bool    // named by the question
	weight   float64 // 0: it links no passages
	passages []share // nil: not read
	shares   int     // sum over passages
}

// A share is a passage's part of an entity's mass: two for a title, else one.
type share struct {
	passage uint32 // place of the passage
	shares  int
}

// theQuestion is the origin of the initial mass.
const theQuestion = math.MaxUint32

func newWalk(view View, damping float64) *walk {
	total := view.Passages()
	return &walk{
		view:    view,
		total:   total,
		most:    min(maxNaming, max(fewNaming, int(maxShare*float64(total)))),
		damping: damping,
		places:  make(map[uint64]uint32),
		known:   make(map[uint32]uint32),
	}
}

// start distributes the initial mass. The given share goes to the entities of the question and the
// rest to the seeds. If one of the two is empty, the other gets all mass.
func (w *walk) start(seeds []Seed, power float64, question []string, share float64) error {
	var places []uint32
	var weights []float64
	sum := 0.0
	seeds = slices.DeleteFunc(slices.Clone(seeds), func(s Seed) bool { return !(s.Score > 0) || math.IsInf(s.Score, 1) })
	best := 0.0 // scores are relative to it, so that no power overflows
	for _, s := range seeds {
		best = max(best, s.Score)
	}
	for _, s := range seeds {
		number, ok := w.view.Passage(s.Chunk)
		if !ok {
			continue
		}
		weight := math.Pow(s.Score/best, power)
		places = append(places, w.passage(number))
		weights = append(weights, weight)
		sum += weight
	}
	asked, err := w.asked(question)
	if err != nil {
		return err
	}
	if len(asked) == 0 || share < 0 {
		share = 0
	} else if len(places) == 0 {
		share = 1
	}
	for i, place := range places {
		p := &w.passages[place]
		p.seed = true
		w.toPassage(place, int64((1-share)*weights[i]/sum*whole), theQuestion)
	}
	for _, place := range asked {
		w.toEntity(place, int64(share/float64(len(asked))*whole), theQuestion)
	}
	w.turn()
	for _, place := range w.passagesNow {
		w.passages[place].own = w.passages[place].mass
	}
	return nil
}

// asked returns the places of those entities of the question that lead to a passage.
func (w *walk) asked(question []string) ([]uint32, error) {
	var list []uint32
	for _, key := range question {
		place, err := w.entity(w.view.Entity(key))
		if err != nil {
			return nil, err
		}
		e := &w.entities[place]
		if e.count == 1 && w.total > 1 {
			e.weight = math.Log(float64(w.total))
		}
		if e.weight > 0 && !slices.Contains(list, place) {
			e.asked = true
			list = append(list, place)
		}
	}
	return list, nil
}

// passage returns the place of a passage, adding it if necessary.
func (w *walk) passage(number uint64) uint32 {
	place, ok := w.places[number]
	if !ok {
		place = uint32(len(w.passages))
		w.places[number] = place
		w.passages = append(w.passages, passageNode{number: number})
	}
	return place
}

// entity returns the place of an entity, adding it if necessary.
func (w *walk) entity(number uint32) (uint32, error) {
	place, ok := w.known[number]
	if ok {
		return place, nil
	}
	count, err := w.view.Count(number)
	if err != nil {
		return 0, err
	}
	e := entityNode{number: number, count: count}
	if count >= minCount && count <= w.most {
		e.weight = math.Log(float64(w.total) / float64(count))
	}
	place = uint32(len(w.entities))
	w.known[number] = place
	w.entities = append(w.entities, e)
	return place, nil
}

// prefetchStart prefetches what start asks for.
func (w *walk) prefetchStart(ctx context.Context, seeds []Seed, question []string) error {
	view, ok := w.view.(Prefetcher)
	if !ok {
		return nil
	}
	chunks := make([]string, len(seeds))
	for i, s := range seeds {
		chunks[i] = s.Chunk
	}
	return view.PrefetchStart(ctx, chunks, question)
}

// prefetch prefetches what the next step asks for.
func (w *walk) prefetch(ctx context.Context) error {
	view, ok := w.view.(Prefetcher)
	if !ok {
		return nil
	}
	var passages []uint64
	for _, place := range w.passagesNow {
		if p := &w.passages[place]; p.pending >= minMass && !p.read {
			passages = append(passages, p.number)
		}
	}
	var entities []uint32
	for _, place := range w.entitiesNow {
		if e := &w.entities[place]; e.moves() && e.passages == nil {
			entities = append(entities, e.number)
		}
	}
	return view.Prefetch(ctx, passages, entities)
}

// moves reports whether the pending mass of e is enough to move on.
func (e *entityNode) moves() bool {
	return e.pending >= minMass && e.pending/int64(2*max(e.count, 1)) >= minPart
}

// step moves all pending mass along one link.
func (w *walk) step() error {
	w.sortPassages(w.passagesNow)
	w.sortEntities(w.entitiesNow)
	for _, place := range w.passagesNow {
		if err := w.pushPassage(place); err != nil {
			return err
		}
	}
	for _, place := range w.entitiesNow {
		if err := w.pushEntity(place); err != nil {
			return err
		}
	}
	for _, place := range w.passagesNow {
		w.passages[place].pending = 0
	}
	for _, place := range w.entitiesNow {
		w.entities[place].pending = 0
	}
	w.turn()
	return nil
}

// turn makes the received mass pending and gives passages their part of it.
func (w *walk) turn() {
	w.passagesNow, w.passagesNext = w.passagesNext, w.passagesNow[:0]
	w.entitiesNow, w.entitiesNext = w.entitiesNext, w.entitiesNow[:0]
	for _, place := range w.passagesNow {
		p := &w.passages[place]
		p.pending, p.next = p.next, 0
		p.mass += int64((1 - w.damping) * float64(p.pending))
	}
	for _, place := range w.entitiesNow {
		e := &w.entities[place]
		e.pending, e.next = e.next, 0
	}
}

// toPassage moves mass from an entity to a passage.
func (w *walk) toPassage(place uint32, mass int64, from uint32) {
	p := &w.passages[place]
	if mass > p.most || mass == p.most && mass > 0 && w.key(from) < w.key(p.from) {
		p.most, p.from = mass, from
	}
	if p.next == 0 && mass > 0 {
		w.passagesNext = append(w.passagesNext, place)
	}
	p.next += mass
}

// toEntity moves mass from a passage to an entity.
func (w *walk) toEntity(place uint32, mass int64, from uint32) {
	e := &w.entities[place]
	if mass > e.most || mass == e.most && mass > 0 && w.byChunk(from, e.from) < 0 {
		e.most, e.from = mass, from
	}
	if e.next == 0 && mass > 0 {
		w.entitiesNext = append(w.entitiesNext, place)
	}
	e.next += mass
}

// byChunk orders passages by chunk ID, with the question first.
func (w *walk) byChunk(a, b uint32) int {
	if a == theQuestion || b == theQuestion {
		return cmp.Compare(b, a)
	}
	return w.view.Compare(w.passages[a].number, w.passages[b].number)
}

// chunk returns the chunk ID of a passage, or "" for the question.
func (w *walk) chunk(place uint32) string {
	if place == theQuestion {
		return ""
	}
	return w.view.Chunk(w.passages[place].number)
}

// key returns an entity's key, or "" for the question.
func (w *walk) key(place uint32) string {
	if place == theQuestion {
		return ""
	}
	return w.view.Key(w.entities[place].number)
}

// sortPassages puts the passages with the most pending mass first, because they are pushed only
// while the budget of links lasts.
func (w *walk) sortPassages(list []uint32) {
	slices.SortFunc(list, func(a, b uint32) int {
		if c := cmp.Compare(w.passages[b].pending, w.passages[a].pending); c != 0 || w.passages[a].pending < minMass {
			return c
		}
		return w.byChunk(a, b)
	})
}

func (w *walk) sortEntities(list []uint32) {
	slices.SortFunc(list, func(a, b uint32) int {
		if c := cmp.Compare(w.entities[b].pending, w.entities[a].pending); c != 0 || w.entities[a].pending < minMass {
			return c
		}
		return strings.Compare(w.key(a), w.key(b))
	})
}

// follow reports whether the given number of links may still be followed, and counts them if so.
func (w *walk) follow(links int) bool {
	if w.edges+links > maxEdges {
		return false
	}
	w.edges += links
	return true
}

// pushPassage moves a passage's mass to the entities that it names.
func (w *walk) pushPassage(place uint32) error {
	if w.passages[place].pending < minMass {
		return nil
	}
	if err := w.readLinks(place); err != nil {
		return err
	}
	p := &w.passages[place]
	if len(p.links) == 0 || !w.follow(len(p.links)) {
		return nil
	}
	for _, l := range p.links {
		w.toEntity(l.entity, int64(w.damping*float64(p.pending)*(l.weight/p.weight)), place)
	}
	return nil
}

// readLinks reads the entities that a passage names.
func (w *walk) readLinks(place uint32) error {
	p := &w.passages[place]
	if p.read {
		return nil
	}
	p.read = true
	var failed error
	err := w.view.Entities(p.number, func(number uint32, title bool) {
		place, err := w.entity(number)
		if err != nil {
			failed = cmp.Or(failed, err)
			return
		}
		weight := w.entities[place].weight
		if w.entities[place].asked {
			weight *= askedWeight
		}
		if title {
			weight *= 2
		}
		if weight > 0 {
			p.links = append(p.links, link{place, weight})
			p.weight += weight
		}
	})
	return cmp.Or(failed, err)
}

// pushEntity moves an entity's mass to the passages that name it.
func (w *walk) pushEntity(place uint32) error {
	e := &w.entities[place]
	if !e.moves() || !w.follow(e.count) {
		return nil
	}
	if e.passages == nil {
		err := w.view.Named(e.number, func(passage uint64, title bool) {
			s := share{w.passage(passage), 1}
			if title {
				s.shares = 2
			}
			e.passages = append(e.passages, s)
			e.shares += s.shares
		})
		if err != nil {
			return err
		}
	}
	one := w.damping * float64(e.pending) / float64(max(e.shares, 1))
	for _, s := range e.passages {
		w.toPassage(s.passage, int64(float64(s.shares)*one), place)
	}
	return nil
}

// best returns the passages with the most mass.
func (w *walk) best(limit int) []Score {
	var order []uint32
	for place := range w.passages {
		if w.passages[place].mass > 0 {
			order = append(order, uint32(place))
		}
	}
	slices.SortFunc(order, func(a, b uint32) int {
		if c := cmp.Compare(w.passages[b].mass, w.passages[a].mass); c != 0 {
			return c
		}
		return w.byChunk(a, b)
	})
	scores := make([]Score, 0, min(limit, len(order)))
	for _, place := range order[:min(limit, len(order))] {
		p := &w.passages[place]
		scores = append(scores, Score{
			Chunk:    w.chunk(place),
			Mass:     float64(p.mass) / whole,
			Received: float64(p.mass-p.own) / whole,
			Path:     w.path(place),
		})
	}
	return scores
}

// path returns the path on which most of a passage's mass came.
func (w *walk) path(place uint32) []Step {
	var path []Step
	for range maxHops {
		p := &w.passages[place]
		if p.seed {
			break
		}
		e := &w.entities[p.from]
		path = append(path, Step{Entity: w.key(p.from), Chunk: w.chunk(e.from)})
		if e.from == theQuestion {
			break
		}
		place = e.from
	}
	return path
}
