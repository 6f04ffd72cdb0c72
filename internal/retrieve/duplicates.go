package retrieve

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lexical"
)

// Thresholds for near-duplicates: two passages share nearly all of their words and, if their
// vectors are known, have nearly equal vectors. A cosine alone is not enough. Of the pairs of
// passages with a cosine of 0.95 or more (gte-small), in scifact none of 119 shares half of its
// words, and in ten both answer one question; of mtrag's 696 such pairs 623 share less than half.
const (
	sameWords  = 0.9 // share of the distinct words of two texts that both have
	sameCosine = 0.95
)

// titledWords is the least number of words of a text that is compared by itself. A shorter text is
// compared together with its title and headings.
const titledWords = 12

// fingerprint holds the word hashes of a passage, used to find near-duplicates.
type fingerprint struct {
	exact     uint64   // hash of all words, in order
	words     []uint64 // sorted hashes of the distinct words
	text      string
	particles string // names, numbers and negations; "" until computed
}

var wordSeed = maphash.MakeSeed()

func fingerprintOf(h assay.Hit) *fingerprint {
	words := lexical.Words(strings.ToLower(h.Text))
	text := h.Text
	if len(words) < titledWords {
		about := strings.Join(append([]string{h.Title}, h.Chunk.Headings...), " ")
		words = append(lexical.Words(strings.ToLower(about)), words...)
		text = about + "\n" + text
	}
	s := &fingerprint{text: text, exact: maphash.String(wordSeed, strings.Join(words, " "))}
	for _, w := range words {
		s.words = append(s.words, maphash.String(wordSeed, w))
	}
	slices.Sort(s.words)
	s.words = slices.Compact(s.words)
	return s
}

// Deduper finds near-duplicate hits by word overlap. Its zero value is empty.
type Deduper struct{ seen []*fingerprint }

// Add looks for a near-duplicate of h among the hits added before. If it finds one, it returns its
// index and true. Otherwise it adds h and returns h's index and false.
func (s *Deduper) Add(h assay.Hit) (i int, known bool) {
	own := fingerprintOf(h)
	for i, o := range s.seen {
		if own.duplicates(o) {
			return i, true
		}
	}
	s.seen = append(s.seen, own)
	return len(s.seen) - 1, false
}

// duplicates reports whether two texts are near-duplicates by their words.
func (s *fingerprint) duplicates(o *fingerprint) bool {
	return s.exact == o.exact || s.sharesWords(o) && s.facts() == o.facts()
}

// sharesWords reports whether two texts have nearly all of their words in common. For most pairs it
// stops after a few words.
func (s *fingerprint) sharesWords(o *fingerprint) bool {
	all := len(s.words) + len(o.words)
	spare := all - int(math.Ceil(2*sameWords/(1+sameWords)*float64(all)-1e-9)) // how many words may be in only one of them
	for i, j := 0, 0; i < len(s.words) && j < len(o.words); {
		switch a, b := s.words[i], o.words[j]; {
		case a == b:
			i, j = i+1, j+1
			continue
		case a < b:
			i++
		default:
			j++
		}
		if spare--; spare < 0 {
			return false
		}
	}
	return s.wordOverlap(o) >= sameWords
}

// wordOverlap returns the share of the distinct words of two texts that both have.
func (s *fingerprint) wordOverlap(o *fingerprint) float64 {
	both := 0
	for i, j := 0, 0; i < len(s.words) && j < len(o.words); {
		switch a, b := s.words[i], o.words[j]; {
		case a == b:
			both, i, j = both+1, i+1, j+1
		case a < b:
			i++
		default:
			j++
		}
	}
	return float64(both) / float64(max(1, len(s.words)+len(o.words)-both))
}

// facts returns the names, the numbers and the number of negations of a text. Texts that differ in
// any of these are not duplicates, however many words they share.
func (s *fingerprint) facts() string {
	if s.particles == "" {
		names := lexical.Names(s.text)
		for i, n := range names {
			names[i] = strings.ToLower(n)
		}
		slices.Sort(names)
		numbers := lexical.Numbers(s.text)
		slices.Sort(numbers)
		s.particles = fmt.Sprintf("%q %q %d", slices.Compact(names), slices.Compact(numbers), lexical.Negations(s.text))
	}
	return s.particles
}

// compared is how many of the best hits each candidate is compared with, so that a search for
// thousands of hits does not compare every pair. Exact duplicates are found among all hits.
const compared = 1000

// dropDuplicates removes candidates that nearly repeat a better one, down to the rank that hits can
// come from. A note reports how many were removed.
func (s *search) dropDuplicates(ctx context.Context) error {
	var kept []*candidate
	var said []*fingerprint
	exact := map[uint64]int{} // hash → index into kept
	dropped, rest := 0, len(s.found)
	for i, c := range s.found {
		if len(kept) >= s.maxHits() {
			rest = i
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		own := fingerprintOf(c.hit)
		of := -1
		for j := 0; j < min(len(said), compared) && of < 0; j++ {
			same, err := s.duplicates(ctx, c, own, kept[j], said[j])
			if err != nil {
				return err
			}
			if same {
				of = j
			}
		}
		if j, known := exact[own.exact]; known && of < 0 {
			of = j
		}
		if of >= 0 {
			dropped++
			s.drops = append(s.drops, Drop{Chunk: c.hit.Chunk.ID, URI: c.hit.URI, Line: c.hit.Line, Of: kept[of].hit.Chunk.ID})
			continue
		}
		exact[own.exact] = len(kept)
		kept, said = append(kept, c), append(said, own)
	}
	s.found = append(kept, s.found[rest:]...)
	switch {
	case dropped == 1:
		s.note("a near-duplicate of a better hit is left out")
	case dropped > 1:
		s.note(fmt.Sprintf("%d near-duplicates of better hits are left out", dropped))
	}
	return nil
}

// maxHits is how many of the best candidates can become hits. It exceeds the limit because several
// candidates may be merged into one.
func (s *search) maxHits() int { return 2 * s.query.Limit }

// duplicates reports whether two candidates are near-duplicates.
func (s *search) duplicates(ctx context.Context, a *candidate, saysA *fingerprint, b *candidate, saysB *fingerprint) (bool, error) {
	if saysA.exact == saysB.exact || !saysA.duplicates(saysB) {
		return saysA.exact == saysB.exact, nil
	}
	x, ok, err := s.cosineOf(ctx, a, b)
	return !ok || x >= sameCosine, err
}

// cosineOf returns the cosine of two candidates' vectors; ok is false if one of the vectors is not
// known.
func (s *search) cosineOf(ctx context.Context, a, b *candidate) (x float64, ok bool, err error) {
	if unknown(a) || unknown(b) {
		return 0, false, nil
	}
	if err := s.vectors(ctx, []*candidate{a, b}); err != nil {
		return 0, false, err
	}
	x, ok = cosine(a.vector, b.vector)
	return x, ok, nil
}

// vectors reads the vectors of candidates that were not read yet. If that fails, words alone are
// compared and a note reports it.
func (s *search) vectors(ctx context.Context, list []*candidate) error {
	var ids []string
	var lacking []*candidate
	for _, c := range list {
		if c.vector == nil && known(c) && !slices.Contains(lacking, c) {
			ids, lacking = append(ids, c.hit.Chunk.ID), append(lacking, c)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	vectors, err := s.Index.Vectors(ctx, s.access, s.Embedder.Model(), ids)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.note("similarity is computed from words alone: " + trimmed(err))
		return nil
	}
	for i, c := range lacking {
		c.vector = vectors[i]
	}
	return nil
}
