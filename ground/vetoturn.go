package ground

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/surface"
)

// turnedPairs are words of which one says the opposite of the other.
var turnedPairs = func() map[string]map[string]bool {
	m := map[string]map[string]bool{}
	for line := range strings.Lines(`longer : shorter
larger bigger greater : smaller
earlier sooner : later
older : younger newer
faster quicker : slower
higher : lower
more : less fewer
better : worse
above over exceeding exceeds : below under beneath
before : after
until till : after since
most majority mostly usually often typically normally frequently always : few minority seldom rarely hardly never
minimum smallest least shortest : maximum largest most longest
oldest : newest youngest
rare rarely seldom : frequent frequently common often usually
first : last
double twice : half
inside within : outside
forbidden prohibited banned : permitted allowed
excluded : included
`) {
		one, other, _ := strings.Cut(line, ":")
		for a := range strings.FieldsSeq(one) {
			for b := range strings.FieldsSeq(other) {
				for _, p := range [][2]string{{a, b}, {b, a}} {
					if m[p[0]] == nil {
						m[p[0]] = map[string]bool{}
					}
					m[p[0]][p[1]] = true
				}
			}
		}
	}
	return m
}()

// turned says which word of a claim says the opposite of one that the sentence nearest to
// it has in its place; empty: none. What compares two things the other way round, "A is
// slower than B" for "B is faster than A", is not turned.
func (s *comparison) turned(part int, c *piece) string {
	b := s.bestOf(part)
	if b == nil || len(c.words) > mostWords || s.shareOf(part, b) < minTurned {
		return ""
	}
	for i, w := range c.words {
		against := turnedPairs[w.lower]
		if against == nil || b.has(w.lower) {
			continue
		}
		for j, o := range b.words {
			if !against[o.lower] || c.has(o.lower) {
				continue
			}
			if evenDenials(c, i, b, j) {
				continue
			}
			same, crossed := sides(c, i, b, j)
			switch {
			case permission[w.lower]:
			case prepositions[w.lower] && !sameObject(c, i, b, j), !prepositions[w.lower] && (same == 0 || same < crossed || crossed > 0 && c.has("than") != b.has("than")):
				continue
			}
			return fmt.Sprintf("%q stands for %q", w.raw, o.raw)
		}
	}
	return ""
}

var (
	permission   = wordSet("forbidden prohibited banned permitted allowed excluded included")
	prepositions = wordSet("before after until till since inside within outside above over below under beneath")
)

// sameObject reports whether two sentences share one of the next content words behind two
// of their words.
func sameObject(a *piece, i int, b *piece, j int) bool {
	next := func(p *piece, i int) []string {
		const most = 3
		var stems []string
		for _, w := range p.words[i+1:] {
			if w.kind != small && len(stems) < most {
				stems = append(stems, w.stem)
			}
		}
		return stems
	}
	theirs := next(b, j)
	return slices.ContainsFunc(next(a, i), func(stem string) bool { return slices.Contains(theirs, stem) })
}

// crossed says which comparison of a claim has its two sides exchanged: "A is slower than
// B" for "B is slower than A". Empty: none.
func (s *comparison) crossed(part int, c *piece) string {
	b := s.bestOf(part)
	if b == nil || !c.has("than") || !b.has("than") || s.shareOf(part, b) < minTurned {
		return ""
	}
	for i, w := range c.words {
		if turnedPairs[w.lower] == nil || prepositions[w.lower] || i+2 < len(c.words) && c.words[i+2].kind == number {
			continue // "more than 36"
		}
		for j, o := range b.words {
			if o.lower != w.lower || evenDenials(c, i, b, j) {
				continue
			}
			if same, other := sides(c, i, b, j); other > same && other > 1 {
				return fmt.Sprintf("what is %s than what is exchanged", w.raw)
			}
		}
	}
	return ""
}

// denials counts the words of a text that deny, also those that say so by what they mean.
func denials(text string) int {
	n := 0
	for _, w := range surface.Words(boundPhrase.ReplaceAllString(text, "")) {
		lower := strings.ToLower(w)
		if surface.Negations(w) > 0 || denying[lower] {
			n++
		}
	}
	return n
}

var (
	boundPhrase = regexp.MustCompile(`(?i)\b(?:no|not|never) (?:more|less|fewer|later|earlier|longer|shorter|older|younger) than\b|\bno longer than\b|\bnot only\b|\bnot exceed\w*\b`)
	denying     = wordSet("cannot without forbidden prohibited impossible illegal excluded unable ignored rejected refused nobody nothing none neither nor exempt unless")
)

// minTurned is the share of a claim's content words from which on one that is turned round
// is not that of another statement.
const minTurned = 0.4

func (p *piece) has(lower string) bool {
	return slices.ContainsFunc(p.words, func(w token) bool { return w.lower == lower })
}

// shareOf is the share of the content words of a claim's sentence that another one has.
func (s *comparison) shareOf(part int, b *piece) float64 {
	n, of := 0, 0
	for _, w := range s.claim[part].words {
		if w.kind == small {
			continue
		}
		of++
		if b.stems[w.stem] > 0 {
			n++
		}
	}
	return ratio(n, of)
}

// sides counts the words that two sentences share on the same sides of two of their words,
// and on the others.
func sides(a *piece, i int, b *piece, j int) (same, crossed int) {
	for x, w := range a.words {
		if w.kind == small || x == i {
			continue
		}
		for y, o := range b.words {
			if y == j || o.stem != w.stem {
				continue
			}
			if (x < i) == (y < j) {
				same++
			} else {
				crossed++
			}
			break
		}
	}
	return same, crossed
}

// evenDenials reports whether a denial stands before one of two words that say opposite
// things and not before the other: then they say the same.
func evenDenials(a *piece, i int, b *piece, j int) bool {
	return (denialsBefore(a, i)+denialsBefore(b, j))%2 != 0
}

// denialsBefore counts the denials in the five words before one.
func denialsBefore(p *piece, i int) int {
	n := 0
	for _, w := range p.words[max(0, i-5):i] {
		if denial(w) {
			n++
		}
	}
	return n
}

func denial(w token) bool { return surface.Negations(w.raw) > 0 || w.lower == "cannot" }

// changed says what a claim that is nearly word for word a sentence of the source has
// changed in it: a name, a denial, or a word for its opposite. Empty: nothing, or it has
// words of its own.
func (s *comparison) changed(part int, c *piece) string {
	b := s.bestOf(part)
	if b == nil || len(c.words) < 3 {
		return ""
	}
	pairs := align(c.words, b.words)
	if ratio(len(pairs), len(c.words)) < nearlyVerbatim {
		return ""
	}
	from, to := [2]int{-1, -1}, [2]int{}
	for k := 0; k <= len(pairs); k++ {
		if to = [2]int{len(c.words), len(b.words)}; k < len(pairs) {
			to = pairs[k]
		}
		mine, theirs := c.words[from[0]+1:to[0]], b.words[from[1]+1:to[1]]
		outer := from[0] < 0 || k == len(pairs)
		from = to
		if outer && len(mine) == 0 || len(theirs) > 6 && len(mine) > 0 && outer {
			continue
		}
		if reason := edited(mine, theirs, s); reason != "" {
			return reason
		}
	}
	return ""
}

// nearlyVerbatim is the share of a claim's words that stand in the source in their order,
// from which on it is that sentence with something changed.
const nearlyVerbatim = 0.75

// edited says what is changed where a claim has some words and its source others.
func edited(mine, theirs []token, s *comparison) string {
	const short = 6
	count := func(words []token) int {
		n := 0
		for _, w := range words {
			if denial(w) || w.lower == "without" {
				n++
			}
		}
		return n
	}
	if n, m := count(mine), count(theirs); len(theirs) <= short && (n+m)%2 != 0 {
		return "one denies and the other does not"
	}
	if n, m := side(mine), side(theirs); n*m < 0 {
		return "it bounds on the other side"
	}
	for _, w := range mine {
		for _, o := range theirs {
			if turnedPairs[w.lower][o.lower] {
				return fmt.Sprintf("%q stands for %q", w.raw, o.raw)
			}
		}
	}
	if len(mine) == 0 || len(mine) > 4 || len(theirs) == 0 || len(theirs) > short {
		return ""
	}
	isNumber := func(w token) bool { return w.kind == number }
	if i := slices.IndexFunc(mine, isNumber); i >= 0 && slices.ContainsFunc(theirs, isNumber) && !slices.ContainsFunc(theirs, func(o token) bool { return o.stem == mine[i].stem }) {
		return fmt.Sprintf("%q stands for %q", mine[i].raw, theirs[slices.IndexFunc(theirs, isNumber)].raw)
	}
	if len(mine) == 1 && len(theirs) == 1 && measures[mine[0].lower].dim != "" && measures[theirs[0].lower].dim != "" && measures[mine[0].lower] != measures[theirs[0].lower] {
		return fmt.Sprintf("%q stands for %q", mine[0].raw, theirs[0].raw)
	}
	isName := func(w token) bool { return w.kind == name || s.named(w, true) }
	if i := slices.IndexFunc(mine, isName); i >= 0 && slices.ContainsFunc(theirs, isName) &&
		!slices.ContainsFunc(theirs, func(o token) bool { return namesAlike(mine[i], o) }) {
		return fmt.Sprintf("%q stands for %q", mine[i].raw, theirs[0].raw)
	}
	return ""
}

// side is above 0 where words bound something from below, and below 0 where from above.
func side(words []token) int {
	n := 0
	for _, w := range words {
		switch w.lower {
		case "least", "more", "over", "above", "from":
			n++
		case "most", "up", "less", "fewer", "under", "below":
			n--
		}
	}
	return n
}

// againstBound says which quantity of a claim lies on the other side of what the source
// bounds by it. Where only one of the two denies something, what lies above for the one may
// lie below for the other.
func againstBound(text, source string, mine, theirs []quantity) string {
	for _, q := range mine {
		if q.bound == exact || q.weak {
			continue
		}
		same, other := false, false
		for _, o := range theirs {
			if !q.same(o) {
				continue
			}
			around := clauseAround(source, o)
			even := (denials(clauseAround(text, q))+denials(around))%2 == 0
			across := q.bound == least && upward.MatchString(source) && exceeding.MatchString(text) || q.bound == most && downward.MatchString(source)
			same = same || o.bound == q.bound || o.bound == exact || !even || across
			other = other || o.bound != exact && o.bound != q.bound
		}
		if other && !same {
			return fmt.Sprintf("%s bounds it on the other side", strings.TrimSpace(text[q.start:q.end]))
		}
	}
	return ""
}

// clauseAround is what stands around a quantity between semicolons.
func clauseAround(text string, q quantity) string {
	start := strings.LastIndexByte(text[:q.start], ';') + 1
	if end := strings.IndexByte(text[q.end:], ';'); end >= 0 {
		return text[start : q.end+end]
	}
	return text[start:]
}

// exceeding says that something lies beyond a bound, not that there is one.
var exceeding = regexp.MustCompile(`(?i)\b(?:exceed\w*|above|beyond|over|more than|in excess of)\b`)

// upward and downward are words for the other side of a bound.
var (
	upward   = regexp.MustCompile(`(?i)\b(?:above|beyond|exceeds?|exceeding) (?:that|this|it|the limit)\b`)
	downward = regexp.MustCompile(`(?i)\b(?:below|under) (?:that|this|it)\b`)
)
