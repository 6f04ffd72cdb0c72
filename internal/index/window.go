package index

import (
	"context"
	"encoding/binary"
	"math/bits"
	"slices"
)

// windowSize is the number of chunks in a window.
//
// Chunks are scored window by window. In a window, each term's contributions are bounded by the
// blocks that overlap the window (bound.go). The terms with the lowest bounds are not essential if
// the sum of these bounds is less than the worst score among the best so far, because no chunk that
// holds only these terms can be among the best. So the essential terms are added up first. Of the
// chunks that hold one, only those remain that can still be among the best with the most that the
// other terms can add. The other terms are then added to these chunks, one by one from the highest
// bound, and chunks that can no longer be among the best are dropped after each. The result is the
// same as that of adding up everything.
//
// Sources: Turtle and Flood, "Query Evaluation: Strategies and Optimizations", IP&M 1995
// (MaxScore); Ding and Suel, "Faster Top-k Document Retrieval Using Block-Max Indexes", SIGIR 2011
// (bounds by block); Chakrabarti, Chaudhuri and Ganti, "Interval-Based Pruning for Top-k Processing
// over Compressed Lists", ICDE 2011 (by interval).
//
// The scores of 4,096 chunks leave space in the first-level cache for the postings. Half and double
// that size are slower on 200,000 chunks (short queries take 0.159 and 0.154 ms, and 0.150 ms with
// 4,096).
const windowSize = 4096

// The number of kept chunks in a window decides how they are scored. Up to fewKept, each kept chunk
// is looked up in the postings. Up to mostKept, the postings of kept chunks are selected before
// they are scored. Above that, it is cheaper to score all chunks and drop those that are not kept.
const (
	fewKept  = windowSize / 64
	mostKept = windowSize * 3 / 4
)

// A scorer searches views one after another.
type scorer struct {
	saturation saturation
	best       bestCandidates
	total      int // number of chunks found; not counted on from MaxTotal
	cursors    []cursor
	order      []*cursor // those with postings left, ascending by bound

	view       *textView
	first, end uint32 // of the window
	// scores of the window's chunks are too high by base. The score is 0 for a chunk that is not
	// among the found, or no longer.
	scores   [windowSize]uint64
	base     uint64
	hidden   bool     // found chunks of the window that are not kept must be dropped
	kept     []uint64 // words of the window, if postings of kept chunks must be selected
	selected [blockSize]uint8
	found    []uint16 // distinct offsets of chunks in the window; capacity for one more than all
}

// A cursor is a position in a term's postings.
type cursor struct {
	list       blockList
	units      float64 // idf · scoreUnit
	at         int     // first block that reaches into the window
	bound      uint64  // bound of a contribution in the window; 0: no postings there
	bounded    int     // block that blockBound belongs to; -1: none
	blockBound uint64
	decoded    int // block that is decoded; -1: none
	block      block
}

// search scores the chunks of a view.
func (s *scorer) search(ctx context.Context, view int, v *textView) error {
	s.view = v
	if err := s.open(); err != nil {
		return err
	}
	chunks := v.chunks()
	for first := uint32(0); first < chunks && len(s.order) > 0; first = s.end {
		if err := ctx.Err(); err != nil {
			return err
		}
		if v.kept != nil {
			next, ok := v.kept.next(first)
			if !ok {
				break
			}
			first = next / windowSize * windowSize
		}
		s.first, s.end = first, min(first+windowSize, chunks)
		if err := s.scoreWindow(); err != nil {
			return err
		}
		for _, i := range s.found {
			s.best.offer(candidate{view: view, chunk: first + uint32(i), score: s.scores[i] - s.base})
			s.scores[i] = 0
		}
	}
	return nil
}

// open sets the cursors to the start of the view's terms.
func (s *scorer) open() error {
	terms := s.view.terms
	s.cursors = slices.Grow(s.cursors[:0], len(terms))[:len(terms)]
	s.order = s.order[:0]
	s.found = slices.Grow(s.found[:0], windowSize+1)
	for i, t := range terms {
		if t.postings.count == 0 {
			continue
		}
		list, err := t.postings.open()
		if err != nil {
			return err
		}
		c := &s.cursors[i]
		c.list, c.units, c.at, c.bounded, c.decoded = list, t.idf*scoreUnit, 0, -1, -1
		s.order = append(s.order, c)
	}
	return nil
}

// scoreWindow sets found to the kept chunks of the window that may be among the best, and computes
// their scores.
func (s *scorer) scoreWindow() error {
	if err := s.enter(); err != nil {
		return err
	}
	needed, others := s.split()
	s.found = s.found[:0]
	if needed == len(s.order) {
		return nil
	}
	s.takeKept()
	for _, c := range s.order[needed:] {
		if err := s.add(c); err != nil {
			return err
		}
	}
	if s.hidden {
		s.dropHidden()
	}
	if s.total < MaxTotal {
		s.drop(1)
		s.total += len(s.found)
	}
	threshold := s.best.threshold()
	s.drop(threshold - min(others, threshold-1))
	for i := needed - 1; i >= 0 && len(s.found) > 0; i-- {
		if err := s.look(s.order[i]); err != nil {
			return err
		}
		others -= s.order[i].bound
		s.drop(threshold - min(others, threshold-1))
	}
	return nil
}

// enter moves the cursors into the window and sorts them by their bounds there. It removes cursors
// that have reached their end.
func (s *scorer) enter() error {
	n := 0
	for _, c := range s.order {
		if c.at = c.list.find(s.first, c.at); c.at == c.list.blocks() {
			continue
		}
		if err := c.setBound(s); err != nil {
			return err
		}
		i := n // insertion sort, because the order hardly changes
		for ; i > 0 && s.order[i-1].bound > c.bound; i-- {
			s.order[i] = s.order[i-1]
		}
		s.order[i] = c
		n++
	}
	s.order = s.order[:n]
	return nil
}

// split returns the number of terms that are not essential, which come first in the order, and the
// sum of their bounds. As long as the found chunks must be counted, all terms are essential.
func (s *scorer) split() (needed int, others uint64) {
	threshold := s.best.threshold()
	if s.total < MaxTotal {
		threshold = 1
	}
	for needed < len(s.order) && others+s.order[needed].bound < threshold {
		others += s.order[needed].bound
		needed++
	}
	return needed, others
}

// takeKept decides how the kept chunks of the window are selected.
func (s *scorer) takeKept() {
	s.base, s.kept, s.hidden = 0, nil, false
	if s.view.kept == nil {
		return
	}
	words := s.view.kept[s.first/64 : (s.end+63)/64]
	n := 0
	for _, word := range words {
		n += bits.OnesCount64(word)
	}
	switch {
	case n <= fewKept:
		s.findKept(words)
	case n <= mostKept:
		s.kept = words
	default:
		s.hidden = n < int(s.end-s.first)
	}
}

// findKept makes the kept chunks the found ones. With a base of 1, contributions are added only to
// chunks that are already found.
func (s *scorer) findKept(words []uint64) {
	s.base = 1
	for w, word := range words {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			s.found = append(s.found, uint16(i))
			s.scores[i&(windowSize-1)] = 1
		}
	}
}

// dropHidden drops found chunks that are not kept.
func (s *scorer) dropHidden() {
	words := s.view.kept[s.first/64 : (s.end+63)/64]
	n := 0
	for _, i := range s.found {
		kept := words[i/64] >> (i & 63) & 1
		s.scores[i&(windowSize-1)] &= -kept
		s.found[n] = i
		n += int(kept)
	}
	s.found = s.found[:n]
}

// drop drops found chunks with a score less than least, which is at least 1. It does not branch on
// scores, because such branches would be unpredictable.
func (s *scorer) drop(least uint64) {
	least += s.base
	n := 0
	for _, i := range s.found {
		score := &s.scores[i&(windowSize-1)]
		_, under := bits.Sub64(*score, least, 0)
		*score &= under - 1
		s.found[n] = i
		n += int(1 - under)
	}
	s.found = s.found[:n]
}

// add adds a term to all chunks of the window, or only to the found ones if base is positive.
func (s *scorer) add(c *cursor) error {
	if s.base > 0 {
		return s.look(c)
	}
	for i := c.at; c.reaches(i, s.end); i++ {
		if err := c.decode(i); err != nil {
			return err
		}
		from, to := c.within(s.first, s.end)
		if s.kept != nil {
			s.addSelected(c, s.selectKept(c, from, to))
		} else {
			s.addAll(c, from, to)
		}
	}
	return nil
}

// addAll adds the postings from to to-1 of a block and adds their chunks to found.
func (s *scorer) addAll(c *cursor, from, to int) {
	// The loop uses local variables, because the compiler would reload struct fields after each
	// store.
	saturation, units, lengths, first := s.saturation, c.units, s.view.lengths, s.first
	tfs, width, mask := c.block.tfs, c.block.tfWidth&63, uint64(1)<<(c.block.tfWidth&63)-1
	scores, found, n := &s.scores, s.found[:windowSize+1], len(s.found)
	bit := uint(from) * width
	for _, chunk := range c.block.chunks[from:to] {
		tf := 1 + uint32(binary.LittleEndian.Uint64(tfs[bit>>3:])>>(bit&7)&mask)
		bit += width
		i := (chunk - first) & (windowSize - 1)
		before := scores[i]
		scores[i] = before + saturation.contribution(units, tf, binary.LittleEndian.Uint32(lengths[4*int(chunk):]))
		_, fresh := bits.Sub64(before, 1, 0)
		found[n] = uint16(i)
		n += int(fresh)
	}
	s.found = found[:n]
}

// look adds a term to the found chunks.
func (s *scorer) look(c *cursor) error {
	blocks := 0
	for i := c.at; c.reaches(i, s.end); i++ {
		blocks++
	}
	if len(s.found) <= lookups*blocks {
		return s.lookEach(c)
	}
	for i := c.at; c.reaches(i, s.end); i++ {
		if err := c.decode(i); err != nil {
			return err
		}
		from, to := c.within(s.first, s.end)
		s.addSelected(c, s.selectFound(c, from, to))
	}
	return nil
}

// lookups is the largest number of found chunks per block for which each chunk is searched for
// separately.
const lookups = 4

// lookEach searches the blocks for each found chunk.
func (s *scorer) lookEach(c *cursor) error {
	slices.Sort(s.found)
	at := c.at
	for _, i := range s.found {
		chunk := s.first + uint32(i)
		if at = c.list.find(chunk, at); at == c.list.blocks() {
			return nil
		}
		if err := c.decode(at); err != nil {
			return err
		}
		if j := c.block.search(chunk); j < c.block.n && c.block.chunks[j] == chunk {
			s.scores[i] += s.saturation.contribution(c.units, c.block.tf(j), u32(s.view.lengths, int(chunk)))
		}
	}
	return nil
}

// selectFound selects the postings of a block whose chunks are found.
func (s *scorer) selectFound(c *cursor, from, to int) []uint8 {
	n := 0
	for j := from; j < to; j++ {
		i := (c.block.chunks[j] - s.first) & (windowSize - 1)
		_, none := bits.Sub64(s.scores[i], 1, 0)
		s.selected[n&(blockSize-1)] = uint8(j)
		n += int(1 - none)
	}
	return s.selected[:n]
}

// selectKept selects the postings of a block whose chunks are kept.
func (s *scorer) selectKept(c *cursor, from, to int) []uint8 {
	n := 0
	for j := from; j < to; j++ {
		i := c.block.chunks[j] - s.first
		s.selected[n&(blockSize-1)] = uint8(j)
		n += int(s.kept[i/64] >> (i & 63) & 1)
	}
	return s.selected[:n]
}

// addSelected adds the selected postings of a block and adds their chunks to found.
func (s *scorer) addSelected(c *cursor, selected []uint8) {
	found := s.found[:cap(s.found)]
	n := len(s.found)
	for _, j := range selected {
		chunk := c.block.chunks[j&(blockSize-1)]
		i := (chunk - s.first) & (windowSize - 1)
		before := s.scores[i]
		s.scores[i] = before + s.saturation.contribution(c.units, c.block.tf(int(j)), binary.LittleEndian.Uint32(s.view.lengths[4*int(chunk):]))
		_, fresh := bits.Sub64(before, 1, 0)
		found[n] = uint16(i)
		n += int(fresh)
	}
	s.found = found[:n]
}

// reaches reports whether block i exists and may have chunks before end.
func (c *cursor) reaches(i int, end uint32) bool {
	return i < c.list.blocks() && c.list.before(i)+1 < int64(end)
}

// decode decodes block i unless it is already decoded.
func (c *cursor) decode(i int) error {
	if c.decoded == i {
		return nil
	}
	c.decoded = -1
	if err := c.list.read(i, &c.block); err != nil {
		return err
	}
	c.decoded = i
	return nil
}

// within returns the range of the decoded block's postings that are in a window.
func (c *cursor) within(first, end uint32) (from, to int) {
	to = c.block.n
	if c.block.chunks[0] < first {
		from = c.block.search(first)
	}
	if c.block.chunks[to-1] >= end {
		to = c.block.search(end)
	}
	return from, to
}

// setBound computes the bound of the term's contributions in the window, starting at the cursor's
// block.
func (c *cursor) setBound(s *scorer) error {
	c.bound = 0
	if len(c.list.table) == 0 {
		return c.setShortBound(s)
	}
	for i := c.at; c.reaches(i, s.end); i++ {
		if c.bounded != i {
			c.bounded, c.blockBound = i, c.list.bound(i, c.units, s.saturation)
		}
		c.bound = max(c.bound, c.blockBound)
	}
	return nil
}

// setShortBound computes the highest contribution of a list without a skip table.
func (c *cursor) setShortBound(s *scorer) error {
	if err := c.decode(0); err != nil {
		return err
	}
	from, to := c.within(s.first, s.end)
	for j := from; j < to; j++ {
		c.bound = max(c.bound, s.saturation.contribution(c.units, c.block.tf(j), u32(s.view.lengths, int(c.block.chunks[j]))))
	}
	return nil
}
