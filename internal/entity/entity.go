package entity

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// limits of what is taken from one passage.
const (
	maxKeyBytes = 64
	maxWords    = 8 // of a name
	maxEntities = 128
)

// An Entity is something that a passage names.
type Entity struct {
	Key   string // under which all its wordings meet: lower case, without accents, articles and marks
	Title bool   // the passage stands under it: it is its title or last heading
}

// A Finder finds entities. It keeps room from one passage to the next, and is not
// safe for concurrent use.
type Finder struct {
	scan  scanner
	inner scanner // of what stands within
	words []word  // of scan
	key   []byte
	found map[string]int // by key
	list  []Entity
	weak  []string // keys of single words that begin a sentence
	rules *rules
	seed  bool
}

type rules struct {
	nouns bool // all nouns are capitalised
}

var (
	plain  = &rules{}
	german = &rules{nouns: true}
)

func rulesOf(language string) *rules {
	if l, _, _ := strings.Cut(strings.ToLower(language), "-"); l == "de" || l == "lb" {
		return german
	}
	return plain
}

// Passage returns the entities of a passage, each once, in the order in which they
// come; the list is valid until the next call.
func (f *Finder) Passage(title string, headings []string, text, language string) []Entity {
	f.begin(language)
	f.title(title)
	for i, h := range headings {
		if i == len(headings)-1 {
			f.title(h)
		} else {
			f.text(h)
		}
	}
	f.text(text)
	f.settle()
	return f.list
}

// Question returns the keys of the entities that a question names.
func (f *Finder) Question(text, language string) []string {
	f.begin(language)
	f.seed = true
	f.text(text)
	for _, k := range f.weak {
		f.add([]byte(k), false)
	}
	var keys []string
	for _, e := range f.list {
		keys = append(keys, e.Key)
	}
	return keys
}

func (f *Finder) begin(language string) {
	if f.found == nil {
		f.found = make(map[string]int)
	}
	clear(f.found)
	f.list, f.weak, f.seed = f.list[:0], f.weak[:0], false
	f.rules = rulesOf(language)
}

// settle adds the single words that begin a sentence where the passage names them
// elsewhere too; they are there already then.
func (f *Finder) settle() {}

// add notes an entity.
func (f *Finder) add(key []byte, title bool) {
	if len(key) < 2 || len(key) > maxKeyBytes {
		return
	}
	if i, ok := f.found[string(key)]; ok {
		f.list[i].Title = f.list[i].Title || title
		return
	}
	if len(f.list) >= maxEntities {
		return
	}
	k := string(key)
	f.found[k] = len(f.list)
	f.list = append(f.list, Entity{k, title})
}

// title notes a title as a whole, without what it says in brackets, and what
// stands before its first comma or colon, and the names in it.
func (f *Finder) title(text string) {
	if !strings.Contains(text, " ") {
		text = strings.ReplaceAll(text, "_", " ")
	}
	f.whole(text)
	if i := strings.IndexAny(text, "(["); i > 0 {
		text = text[:i]
		f.whole(text)
	}
	for _, sep := range []string{", ", ": ", " - ", " – "} {
		if before, _, ok := strings.Cut(text, sep); ok {
			f.whole(before)
		}
	}
	f.text(text)
}

// whole notes a text as one entity.
func (f *Finder) whole(text string) {
	f.inner.scan(text, true)
	if len(f.inner.words) <= maxWords {
		f.add(f.keyOf(text, f.inner.words), true)
	}
}

// text notes the entities that a text names.
func (f *Finder) text(text string) {
	f.scan.scan(text, false)
	f.words = f.scan.words
	f.quotes(text)
	for i := 0; i < len(f.words); {
		i = f.span(text, i)
	}
}

// quotes notes what stands between quotation marks.
func (f *Finder) quotes(text string) {
	const maxBytes = 60
	from := 0
	for _, open := range f.scan.quotes {
		if open < from {
			continue
		}
		r, size := utf8.DecodeRuneInString(text[open:])
		closing := "\""
		switch r {
		case '`':
			closing = "`"
		case '“':
			closing = "”"
		case '„':
			closing = "“"
		case '«':
			closing = "»"
		case '‘':
			closing = "’"
		}
		rest := text[open+size : min(len(text), open+size+maxBytes)]
		n := strings.Index(rest, closing)
		if n <= 0 || strings.Contains(rest[:n], "\n") {
			continue
		}
		from = open + size + n + len(closing)
		f.inner.scan(rest[:n], true)
		if words := f.inner.words; len(words) > 0 && len(words) <= maxWords && (words[0].form.has(upper) || words[0].form.identifier()) {
			f.add(f.keyOf(rest[:n], words), false)
		}
	}
}

// span reads the name that begins with word i, if one does, and returns the word
// after it.
func (f *Finder) span(text string, i int) int {
	w := f.words[i]
	if w.form.identifier() {
		f.identifier(text, w)
	}
	if !w.form.has(upper) || w.form.has(initial) && !w.form.has(capitals) && !f.follows(text, i) {
		return i + 1
	}
	if f.ordinary(text, w) {
		return i + 1
	}
	end := i + 1 // the word after the span
	parts := 0
	last := i // where its last part begins
	for end < len(f.words) && end-i < maxWords {
		next := f.words[end]
		switch {
		case next.gap == gapAnd && next.form.has(upper):
			end++
			continue
		case next.gap != gapBlank:
		case next.form.has(upper) && !(f.ordinary(text, next) && !next.form.has(initial)), next.form.has(digits) && next.end-next.start <= 4:
			end++
			continue
		default:
			if n := f.linked(text, end); n > 0 {
				parts++
				end += n
				last = end
				end++
				continue
			}
		}
		break
	}
	span := f.words[i:end]
	f.name(text, span)
	if parts > 0 {
		f.name(text, f.words[last:end])
	}
	return end
}

// follows reports whether a capitalised word follows word i after a blank.
func (f *Finder) follows(text string, i int) bool {
	return i+1 < len(f.words) && f.words[i+1].gap == gapBlank && f.words[i+1].form.has(upper)
}

// linked returns how many small words from i on link a name to the capitalised
// word after them; 0: none.
func (f *Finder) linked(text string, i int) int {
	for n := 1; n <= 2 && i+n < len(f.words); n++ {
		w := f.words[i+n-1]
		if w.gap != gapBlank || !links[text[w.start:w.end]] {
			return 0
		}
		if next := f.words[i+n]; next.gap == gapBlank && next.form.has(upper) && !f.ordinary(text, next) {
			return n
		}
	}
	return 0
}

var links = set(`of the de la le du des der den von van del di da dos do y e al el bin ibn zu zum am für`)

// ordinary reports whether a capitalised word names nothing wherever it stands.
func (f *Finder) ordinary(text string, w word) bool {
	if w.end-w.start > longestOrdinary || !w.form.has(cased) && w.end-w.start > 1 {
		return false
	}
	var room [longestOrdinary]byte
	lower := room[:0]
	for i := w.start; i < w.end; i++ {
		c := text[i]
		if isUpper(c) {
			c += 'a' - 'A'
		}
		lower = append(lower, c)
	}
	if ordinary[string(lower)] {
		return true
	}
	return f.rules.nouns && ordinaryGerman[string(lower)]
}

// name notes a span of words as a name.
func (f *Finder) name(text string, span []word) {
	w := span[0]
	first := w.gap == gapSentence
	if len(span) == 1 {
		if !w.form.has(cased) && w.end-w.start < 2 {
			return
		}
		if first && !w.form.identifier() && !w.form.has(capitals) {
			f.weak = append(f.weak, string(f.keyOf(text, span)))
			return
		}
		if f.rules.nouns && !f.seed && !w.form.has(capitals|inner) && f.articled(text, w) {
			return
		}
	}
	f.add(f.keyOf(text, span), false)
	// "President Barack Obama" is Barack Obama too.
	if len(span) > 2 && honorifics[strings.ToLower(text[w.start:w.end])] {
		f.add(f.keyOf(text, span[1:]), false)
	}
}

// articled reports whether an article or an adjective's ending stands before w.
func (f *Finder) articled(text string, w word) bool {
	before := strings.TrimRight(text[:w.start], " ")
	if len(before) == w.start {
		return false
	}
	i := strings.LastIndexByte(before, ' ') + 1
	return determiners[before[i:]] || !isUpper(before[i]) && endsAsAdjective(before[i:])
}

func endsAsAdjective(s string) bool {
	if len(s) < 5 {
		return false
	}
	for _, e := range []string{"e", "en", "er", "es", "em"} {
		if strings.HasSuffix(s, e) {
			return true
		}
	}
	return false
}

// identifier notes an identifier, and of a qualified one its last part.
func (f *Finder) identifier(text string, w word) {
	s := text[w.start:w.end]
	f.add(f.keyOf(text, []word{w}), false)
	if i := strings.LastIndexAny(s, ".:"); i > 0 && len(s)-i > 3 {
		f.inner.scan(s[i+1:], true)
		if len(f.inner.words) == 1 {
			f.add(f.keyOf(s[i+1:], f.inner.words), false)
		}
	}
}

// keyOf returns the key of some words; it is valid until the next call.
func (f *Finder) keyOf(text string, span []word) []byte {
	f.key = f.key[:0]
	for len(span) > 1 && articles[strings.ToLower(text[span[0].start:span[0].end])] {
		span = span[1:]
	}
	for i, w := range span {
		if i > 0 {
			f.key = append(f.key, ' ')
		}
		s := text[w.start:w.end]
		for _, possessive := range []string{"'s", "’s", "'S"} {
			s = strings.TrimSuffix(s, possessive)
		}
		code := w.form.has(joined) && !w.form.has(initial)
		f.key = appendFolded(f.key, s, code)
	}
	return f.key
}

// appendFolded appends a word in lower case and without accents; the marks that
// join its parts stay in code, else hyphens become blanks and others go.
func appendFolded(b []byte, s string, code bool) []byte {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return appendFoldedRunes(b, s, code)
		}
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case isUpper(c):
			c += 'a' - 'A'
		case c == '-':
			c = ' '
		case (c == '.' || c == ':' || c == '_') && code:
		case !inWord(c):
			continue
		}
		b = append(b, c)
	}
	return b
}

func appendFoldedRunes(b []byte, s string, code bool) []byte {
	for _, r := range norm.NFKD.String(s) {
		switch {
		case unicode.IsMark(r):
		case r == 'ß':
			b = append(b, "ss"...)
		case r == 'ø' || r == 'Ø':
			b = append(b, 'o')
		case r == 'æ' || r == 'Æ':
			b = append(b, "ae"...)
		case r == 'ł' || r == 'Ł':
			b = append(b, 'l')
		case r == '-':
			b = append(b, ' ')
		case (r == '.' || r == ':' || r == '_') && code, unicode.IsLetter(r), unicode.IsDigit(r):
			b = utf8.AppendRune(b, unicode.ToLower(r))
		}
	}
	return b
}
