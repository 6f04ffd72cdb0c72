package pdflayout

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/pdfium"
)

// A style is the measures of a document's text.
type style struct {
	body    float32 // size of most characters
	bold    bool    // most characters are bold
	italic  bool    // most characters are italic
	fixed   bool    // most characters are of a fixed width
	font    string  // of most characters
	outline outline
}

// bodySize returns the size of most characters that are not at the edges of pages.
func (a *Analyzer) bodySize() float32 {
	count := map[float32]int{}
	for _, p := range a.pages {
		for _, ar := range p.areas {
			if ar.table != nil {
				count[roundSize(ar.size)] += ar.chars
			}
			for _, l := range ar.lines {
				if !l.drop && !l.fixed {
					count[roundSize(l.size)] += l.chars
				}
			}
		}
	}
	best := float32(0)
	for size, n := range count {
		if m := count[best]; n > m || n == m && size > best {
			best = size
		}
	}
	return max(best, 1)
}

func roundSize(size float32) float32 { return float32(math.Round(float64(size)*4) / 4) }

// measure returns the measures of the text without furniture.
func (a *Analyzer) measure() style {
	s := style{body: a.bodySize()}
	var bold, italic, fixed, all int
	fonts := map[string]int{}
	for _, p := range a.pages {
		for _, ar := range p.areas {
			for _, l := range ar.lines {
				if l.drop {
					continue
				}
				all += l.chars
				fonts[l.font] += l.chars
				if l.bold {
					bold += l.chars
				}
				if l.italic {
					italic += l.chars
				}
				if l.fixed {
					fixed += l.chars
				}
			}
		}
	}
	s.bold, s.italic, s.fixed = 2*bold > all, 2*italic > all, 2*fixed > all
	for name, n := range fonts {
		if m := fonts[s.font]; n > m || n == m && name < s.font {
			s.font = name
		}
	}
	return s
}

// isLarge reports whether a size is clearly larger than that of the text.
func (s *style) isLarge(size float32) bool { return size > 1.12*s.body }

// Bounds of a heading.
const (
	maxHeadingLines = 4
	maxHeadingChars = 200
	maxHeadingBytes = 4 * maxHeadingChars
)

var (
	numbered    = lazyregexp.New(`^((chapter|section|part|appendix|kapitel|abschnitt|teil|anhang)\s+)?([0-9]{1,3}|[A-Z]|[IVX]{1,5})((\.[0-9]{1,3})*)[.:)]?\s+\S`)
	captionName = lazyregexp.New(`^((?i:figure|fig\.|table|tab\.|listing|algorithm|exhibit|chart|scheme|plate|abbildung|abb\.|tabelle|tableau|figura|tabla|tabela|quadro|рис\.|рисунок|таблица|图|圖|表|図|그림|표|شكل|جدول|شکل))\s*([0-9۰-۹٠-٩]+|[IVXLC]+\b|[A-Z]\b)([.\-–][0-9]+)*\s*([.:：|—–-]|$)?`)
)

// unranked is the level of a heading that its style decides, see rank.
const unranked = -1

// level returns the level of the heading that consecutive lines of one style are, unranked, or 0 if
// they are none. Next is the line after them in the column, or nil.
func (s *style) level(lines []*line, text string, next *line) int {
	first := lines[0]
	if n := first.tag.heading; n > 0 {
		return n
	}
	if len(lines) > maxHeadingLines || utf8.RuneCountInString(text) > maxHeadingChars || first.fixed && !s.fixed {
		return 0
	}
	if n := s.outline.level(text, first); n > 0 {
		return n
	}
	if first.figure || first.trailing != "" || !isTitle(text) || captionName.MatchString(text) {
		return 0
	}
	switch {
	case s.isLarge(first.size) && (first.bold || first.size > 1.2*s.body || marker(text) == ""):
		return unranked
	case s.isNumberedInOtherFont(lines, text, next):
		return unranked
	case !s.standsOut(first) || first.size < 0.93*s.body || len(lines) > 2:
		return 0
	case next != nil && s.standsOut(next) && abs(next.size-first.size) < 0.5 && !numbered.MatchString(text):
		return 0
	case !first.bold && (len(lines) > 1 || next == nil || strings.HasSuffix(text, ".")):
		return 0
	}
	return unranked
}

// isNumberedInOtherFont reports whether a line begins with a number and is in another font than the text,
// which follows.
func (s *style) isNumberedInOtherFont(lines []*line, text string, next *line) bool {
	l := lines[0]
	if len(lines) > 1 || next == nil || l.font == s.font || next.font != s.font || l.size < 0.93*s.body || l.fixed {
		return false
	}
	return numbered.MatchString(text) || startItem.MatchString(text)
}

// standsOut reports whether a line is bold or italic in a document whose text is not.
func (s *style) standsOut(l *line) bool { return l.bold && !s.bold || l.italic && !s.italic }

// rank sets the levels of the headings that were unranked: 1 for the largest and those at least twice
// as large as the text, one more for each smaller size. Of headings in one size, those with more
// subdivisions in their number are deeper.
func (s *style) rank(blocks []Block) {
	var sizes []float32
	for _, b := range blocks {
		if b.Level == unranked {
			sizes = append(sizes, min(b.size, 2*s.body))
		}
	}
	slices.SortFunc(sizes, func(a, b float32) int { return compare(b, a) })
	var steps []float32
	for _, size := range sizes {
		if n := len(steps); n == 0 || size < 2*s.body && steps[n-1]-size > max(0.4, 0.06*size) {
			steps = append(steps, size)
		}
	}
	least := map[int]int{} // depth of the numbers at a step
	for pass := range 2 {
		for i := range blocks {
			b := &blocks[i]
			if b.Level != unranked {
				continue
			}
			step := 0
			for step+1 < len(steps) && b.size <= steps[step+1] {
				step++
			}
			d := depth(b.Text)
			if n, ok := least[step]; pass == 0 && (!ok || d < n) {
				least[step] = d
			}
			if pass == 1 {
				b.Level = min(step+1+d-least[step], 6)
			}
		}
	}
}

// depth returns how many subdivisions the number of a heading has.
func depth(text string) int {
	m := numbered.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	return strings.Count(m[4], ".")
}

// isTitle reports whether a text has the form of a heading: it has a word, does not begin in lower
// case, and does not end like a sentence.
func isTitle(text string) bool {
	letters := 0
	for _, c := range text {
		if unicode.IsLetter(c) {
			letters++
		}
	}
	if letters < 2 {
		return false
	}
	first, _ := utf8.DecodeRuneInString(text)
	if unicode.IsLower(first) || marker(text) != "" && isBullet(marker(text)) {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(text)
	words := len(strings.Fields(text))
	switch last {
	case ',', ';':
		return false
	case '.':
		return words <= 6
	case '?', '!', ':':
		return words <= 12
	case ')':
		return first != '(' || strings.Count(text, "(") > 1
	}
	return true
}

// An outline is the titles of a document's outline by their words.
type outline map[string][]pdfium.OutlineItem

func newOutline(items []pdfium.OutlineItem) outline {
	o := outline{}
	for _, item := range items {
		if key := outlineKey(item.Title); key != "" {
			o[key] = append(o[key], item)
		}
	}
	return o
}

// level returns the level of the outline's item with the text of a heading on its page, or 0.
func (o outline) level(text string, l *line) int {
	if len(o) == 0 || len(text) > maxHeadingBytes {
		return 0
	}
	key := outlineKey(text)
	for _, k := range []string{key, withoutNumber(key)} {
		if k == "" {
			continue
		}
		for _, item := range o[k] {
			if item.Page == 0 || item.Page == l.page {
				return min(item.Level, 6)
			}
		}
	}
	return 0
}

// lines returns how many lines from the first on are the text of an item, at most three, or 0.
func (o outline) lines(lines []*line) int {
	if len(o) == 0 {
		return 0
	}
	text := ""
	for n := 1; n <= min(3, len(lines)); n++ {
		if text += " " + lines[n-1].text; o.level(text, lines[0]) > 0 {
			return n
		}
	}
	return 0
}

// outlineKey returns the letters and digits of a text in lower case.
func outlineKey(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, s)
}

func withoutNumber(key string) string {
	return strings.TrimLeft(key, "0123456789")
}
