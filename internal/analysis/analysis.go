package analysis

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// Version identifies the tokens that this package produces. It grows with every change that gives
// some text other tokens, so that an existing index is not searched for terms it does not have.
const Version = 3

// A Token is one term at one position of a text.
type Token struct {
	Term       string // as indexed: lower-cased, folded, stemmed; never empty
	Start, End int    // byte offsets of its source in the text
	// Position counts words from 0, including stop words, which give no token. A compound has the
	// position of its first part.
	Position int
	Part     bool // part of a compound, or of a pair of characters, that is itself a token
	// Character is true for a single character of a run of Han or Hangul. It is matched only by a
	// query for that character alone, and is a Part.
	Character bool
}

// Tokens returns the tokens of text by Position, a compound before its parts. The language is an
// ISO 639-1 code, as in "en" or "en-GB"; the empty string is treated as English. Words of a
// language without a stemmer here are only lower-cased and stripped of accents, and it has no stop
// words.
func Tokens(text, language string) []Token {
	a := borrow(language)
	defer giveBack(a)
	var tokens []Token
	a.Each(text, func(t Token) { tokens = append(tokens, t) })
	return tokens
}

// maxCompound is the largest size of a compound in bytes. Longer runs (a hash, base64, a hostile
// file) are cut into several compounds.
const maxCompound = 256

// maxCached is the number of different compounds that an Analyzer caches before it clears the
// cache; about 20 MB.
const maxCached = 1 << 17

// An Analyzer finds the tokens of texts in one language. It caches words, so that for many texts it
// is several times faster than Tokens. The cache does not affect the results. It is not safe for
// concurrent use.
type Analyzer struct {
	rules     rules
	compounds map[string]compound
	stems     map[string]string
}

// NewAnalyzer returns an Analyzer for a language, named as for Tokens.
func NewAnalyzer(language string) *Analyzer {
	return &Analyzer{
		rules:     rulesOf(language),
		compounds: make(map[string]compound),
		stems:     make(map[string]string),
	}
}

// Analyzers holds one Analyzer per language, created when needed. The zero value is ready to use.
// It is not safe for concurrent use.
type Analyzers struct{ byCode map[string]*Analyzer }

// In returns the Analyzer for a language, named as for Tokens. Languages without rules share one.
func (s *Analyzers) In(language string) *Analyzer {
	code := canonical(language)
	a := s.byCode[code]
	if a == nil {
		if s.byCode == nil {
			s.byCode = make(map[string]*Analyzer)
		}
		a = NewAnalyzer(code)
		s.byCode[code] = a
	}
	return a
}

// Each calls yield for every token of text, in the order of Tokens. A Term may share memory with
// text; clone it to keep it for long.
func (a *Analyzer) Each(text string, yield func(Token)) {
	position := 0
	for i := 0; i < len(text); {
		switch kind, size := classAt(text, i); kind {
		case letter, digit:
			if n := a.rules.elision(text, i); n > 0 {
				position++
				i += n
				continue
			}
			end := a.rules.compoundEnd(text, i)
			c := a.compound(text[i:end])
			for _, p := range c.pieces {
				yield(Token{Term: p.term, Start: i + p.start, End: i + p.end, Position: position + p.position, Part: p.part})
			}
			position += c.width
			i = end
		case ideograph:
			i, position = bigrams(text, i, position, yield)
		default:
			i += size
		}
	}
}

// compound returns the pieces of one compound, from the cache if possible.
func (a *Analyzer) compound(raw string) compound {
	if c, ok := a.compounds[raw]; ok {
		return c
	}
	if len(a.compounds) >= maxCached {
		clear(a.compounds)
	}
	raw = strings.Clone(raw)
	c := a.split(raw)
	a.compounds[raw] = c
	return c
}

// pools holds idle Analyzers by language, for the functions of the package. Their caches affect
// only speed.
var pools sync.Map // language → *sync.Pool

func borrow(language string) *Analyzer {
	language = canonical(language)
	pool, ok := pools.Load(language)
	if !ok {
		pool, _ = pools.LoadOrStore(language, &sync.Pool{New: func() any { return NewAnalyzer(language) }})
	}
	return pool.(*sync.Pool).Get().(*Analyzer)
}

func giveBack(a *Analyzer) {
	if pool, ok := pools.Load(a.rules.language); ok {
		pool.(*sync.Pool).Put(a)
	}
}

// A class is the role of a character in words.
type class uint8

const (
	separator class = iota
	letter          // starts and continues a compound; combining marks count
	digit
	underscore // continues a compound, does not start one
	ideograph  // treated as a word of its own
)

var asciiClass = func() (t [utf8.RuneSelf]class) {
	for c := range t {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			t[c] = letter
		case '0' <= c && c <= '9':
			t[c] = digit
		case c == '_':
			t[c] = underscore
		}
	}
	return t
}()

// classAt returns the class and size of the character at text[i:], which is not empty. An invalid
// UTF-8 byte is a separator.
func classAt(text string, i int) (class, int) {
	if c := text[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	return runeClass(r), size
}
