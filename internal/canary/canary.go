// Package canary finds the text of canary documents in other text. A canary document has a text that
// occurs nowhere else, so its appearance elsewhere shows that documents leak.
//
// A canary is known by hashes of its shingles, the runs of five consecutive words, so that its mark
// does not spread the text. A text holds the canary if it holds four different shingles, which takes
// at least eight of its words. Case, white space, punctuation and the Unicode form do not matter.
package canary

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/assay-rag/assay"
)

// The sizes of canaries.
const (
	shingle  = 5 // words
	enough   = 4 // shingles
	held     = shingle + enough - 1
	MinWords = 12
	MaxWords = 2000
)

// A Mark identifies the text of a canary without containing it.
type Mark struct {
	Words    int      `json:"words"`
	Shingles []string `json:"shingles"` // hexadecimal
}

// Of returns the mark of a text. The error is assay.ErrInvalid if the text has fewer than MinWords
// or more than MaxWords words, or repeats itself so much that it has too few shingles.
func Of(text string) (Mark, error) {
	var all []uint64
	s := scan{each: func(hash uint64) { all = append(all, hash) }}
	s.feed(text)
	slices.Sort(all)
	all = slices.Compact(all)
	m := Mark{Words: s.words}
	if s.words < MinWords || s.words > MaxWords || len(all) < held {
		return m, fmt.Errorf("the text of a canary has %d words, want %d to %d different ones: %w", s.words, MinWords, MaxWords, assay.ErrInvalid)
	}
	for _, hash := range all {
		m.Shingles = append(m.Shingles, fmt.Sprintf("%016x", hash))
	}
	return m, nil
}

// A Set is a set of canaries. A nil Set is empty. It is safe for concurrent use.
type Set struct {
	names  []string
	owners map[uint64][]int // canaries by shingle
}

// NewSet returns the set of the marks by their names. The error is assay.ErrDamaged for a mark that
// Of did not make.
func NewSet(marks map[string]Mark) (*Set, error) {
	s := &Set{owners: map[uint64][]int{}}
	for name, m := range marks {
		if len(m.Shingles) < held {
			return nil, fmt.Errorf("the mark of canary %q: %w", name, assay.ErrDamaged)
		}
		for _, text := range m.Shingles {
			b, err := hex.DecodeString(text)
			if err != nil || len(b) != 8 {
				return nil, fmt.Errorf("the mark of canary %q: %w", name, assay.ErrDamaged)
			}
			hash := asNumber(b)
			s.owners[hash] = append(s.owners[hash], len(s.names))
		}
		s.names = append(s.names, name)
	}
	return s, nil
}

// Empty reports whether the set has no canary.
func (s *Set) Empty() bool { return s == nil || len(s.names) == 0 }

// Find returns the names of the canaries whose text one of the texts holds, sorted.
func (s *Set) Find(texts ...string) []string {
	if s.Empty() {
		return nil
	}
	var found []string
	for _, text := range texts {
		f := finder{set: s}
		sc := scan{each: f.see}
		sc.feed(text)
		found = append(found, f.found...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// A finder counts the different shingles of canaries.
type finder struct {
	set   *Set
	seen  map[uint64]bool
	count map[int]int
	found []string
}

func (f *finder) see(hash uint64) {
	owners := f.set.owners[hash]
	if len(owners) == 0 || f.seen[hash] {
		return
	}
	if f.seen == nil {
		f.seen, f.count = map[uint64]bool{}, map[int]int{}
	}
	f.seen[hash] = true
	for _, i := range owners {
		if f.count[i]++; f.count[i] == enough {
			f.found = append(f.found, f.set.names[i])
		}
	}
}

// A Stream is Find for a text that arrives in pieces. It holds the last words back, so that none of
// a run of words that completes a canary has been passed on.
type Stream struct {
	finder  finder
	scan    scan
	pending string // not passed on yet
	scanned int    // bytes of it that were scanned
}

// Stream returns a Stream for one text.
func (s *Set) Stream() *Stream {
	st := &Stream{finder: finder{set: s}}
	st.scan.each = st.finder.see
	return st
}

// Next adds a piece, and returns the part of the text that can be passed on and the canaries that
// were found so far. Once there is one, nothing is passed on.
func (s *Stream) Next(piece string) (ready string, found []string) {
	s.pending += piece
	starts := wordStarts(s.pending)
	if len(starts) == 0 {
		return "", s.finder.found
	}
	last := starts[len(starts)-1] // the last word may go on
	if last > s.scanned {
		s.scan.feed(s.pending[s.scanned:last])
		s.scanned = last
	}
	if len(s.finder.found) > 0 || len(starts) <= held {
		return "", s.finder.found
	}
	cut := starts[len(starts)-1-held]
	ready, s.pending = s.pending[:cut], s.pending[cut:]
	s.scanned -= cut
	return ready, nil
}

// Rest ends the text.
func (s *Stream) Rest() (ready string, found []string) {
	s.scan.feed(s.pending[s.scanned:])
	s.scanned = len(s.pending)
	if len(s.finder.found) > 0 {
		return "", s.finder.found
	}
	ready, s.pending, s.scanned = s.pending, "", 0
	return ready, nil
}

// wordStarts returns where the words of a text begin.
func wordStarts(text string) []int {
	var starts []int
	inside := false
	for i, r := range text {
		switch kindOf(r) {
		case letter:
			if !inside {
				starts = append(starts, i)
			}
			inside = true
		case single:
			starts, inside = append(starts, i), false
		case separator:
			inside = false
		}
	}
	return starts
}

// A scan divides text into words and hashes each run of five.
type scan struct {
	each  func(hash uint64)
	last  [shingle]string // the newest words, in a ring
	words int
	buf   []byte
}

// feed adds text that ends at the end of a word.
func (s *scan) feed(text string) {
	start, plain := -1, true
	for i, r := range text {
		k := kindOf(r)
		if k == letter {
			if start < 0 {
				start, plain = i, true
			}
			plain = plain && r < utf8.RuneSelf
			continue
		}
		if k == ignored && start >= 0 {
			plain = false // removed from the word
			continue
		}
		if start >= 0 {
			s.word(text[start:i], plain)
			start = -1
		}
		if k == single {
			s.word(text[i:i+utf8.RuneLen(r)], false)
		}
	}
	if start >= 0 {
		s.word(text[start:], plain)
	}
}

// word adds a word. A plain one is ASCII.
func (s *scan) word(w string, plain bool) {
	if plain {
		w = strings.ToLower(w)
	} else {
		w = folded(w)
	}
	if w == "" {
		return
	}
	s.last[s.words%shingle] = w
	if s.words++; s.words < shingle {
		return
	}
	s.buf = append(s.buf[:0], "assay canary 1"...)
	for i := range shingle {
		s.buf = append(append(s.buf, 0), s.last[(s.words+i)%shingle]...)
	}
	sum := sha256.Sum256(s.buf)
	s.each(asNumber(sum[:8]))
}

func asNumber(b []byte) uint64 {
	n := uint64(0)
	for _, x := range b[:8] {
		n = n<<8 | uint64(x)
	}
	return n
}

// folded returns a word in the form in which words are compared: compatibility composition, lower
// case, without marks and invisible characters.
//
// Source: Unicode Standard Annex #15.
func folded(w string) string {
	w = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) || kindOf(r) == ignored {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(w))
	return norm.NFC.String(w)
}

// A kind is what a character is to a word.
type kind int

const (
	separator kind = iota
	letter         // part of a word
	single         // a word of its own, in scripts without spaces between words
	ignored        // invisible
)

func kindOf(r rune) kind {
	switch {
	case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9':
		return letter
	case r < utf8.RuneSelf:
		return separator
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && unicode.IsLetter(r):
		return single
	case unicode.In(r, unicode.L, unicode.N, unicode.M):
		return letter
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector):
		return ignored
	}
	return separator
}

// Generate returns the text of a new canary: an internal note with names and numbers that occur
// nowhere else. The first line is its title.
func Generate() (title, text string) {
	person, other, town, project := name(), name(), name(), name()
	title = fmt.Sprintf("Note on the %s allocation", project)
	text = fmt.Sprintf(`%s %s met %s %s in %s about the %s allocation. The sum of %d for depot %s-%d was approved under %s-%d, and %s %s keeps it in cabinet %s-%d. A further %d follows once the %s office in %s has returned form %s-%d. Ask %s-%d.`,
		given(), person, given(), other, town, project, number(900_000)+100_000, code(), number(9000)+1000, code(), number(90_000)+10_000,
		given(), person, code(), number(9000)+1000, number(900_000)+100_000, name(), name(), code(), number(9000)+1000, code(), number(9000)+1000)
	return title, text
}

func number(below int64) int64 {
	n, err := rand.Int(rand.Reader, big.NewInt(below))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return n.Int64()
}

func pick(list []string) string { return list[number(int64(len(list)))] }

// name returns a name that is easy to read and occurs nowhere else.
func name() string {
	var b strings.Builder
	for range 4 {
		b.WriteString(pick([]string{"b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "z", "br", "dr", "kl", "st", "tr"}))
		b.WriteString(pick([]string{"a", "e", "i", "o", "u", "ei", "ou"}))
	}
	b.WriteString(pick([]string{"n", "r", "s", "l", "ck", "nd"}))
	return strings.ToUpper(b.String()[:1]) + b.String()[1:]
}

func given() string {
	return pick([]string{"Anna", "David", "Elena", "Jonas", "Karim", "Lucia", "Marek", "Nadia", "Oskar", "Petra", "Samuel", "Vera"})
}

func code() string {
	const letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"
	return string([]byte{letters[number(int64(len(letters)))], letters[number(int64(len(letters)))], letters[number(int64(len(letters)))]})
}
