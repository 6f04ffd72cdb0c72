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
larger bigger greater higher : smaller less lower
still : no-longer
favour favor : against
always : exceptional exceptionally
earlier sooner : later
older : younger newer
faster quicker : slower
higher : lower
more : less fewer smaller cheaper
better : worse
above over exceeding exceeds : below under beneath
before : after once
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
	if reason := contrary(c, b); reason != "" {
		return reason
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
			if c.has("than") && b.has("than") && !prepositions[w.lower] {
				continue // crossed sees to it
			}
			if floats := floating[w.lower] && floating[o.lower]; floats && (unevenClauses(c, i, b, j) || !inLikest(c, i, b, j)) {
				continue
			}
			if !prepositions[w.lower] && evenDenials(c, i, b, j) || prepositions[w.lower] && unevenClauses(c, i, b, j) {
				continue
			}
			same, crossed := sides(c, i, b, j)
			switch {
			case permission[w.lower]:
			case floating[w.lower] && floating[o.lower] && s.shareOf(part, b) >= sureOfName:
			case prepositions[w.lower] && !sameObject(c, i, b, j), !prepositions[w.lower] && (same == 0 || same < crossed || crossed > 0 && c.has("than") != b.has("than")):
				continue
			}
			return fmt.Sprintf("%q stands for %q", w.raw, o.raw)
		}
	}
	return ""
}

// contrary says which word of a claim is against one of its source ("fell" for "rose") that
// stands between the same words, where neither has another one that agrees, and as many of
// the clauses that they stand in deny something.
func contrary(c, b *piece) string {
	if c.has("than") && b.has("than") {
		return "" // crossed sees to it
	}
	mine, theirs := clausesOf(c), clausesOf(b)
	for i, w := range c.words {
		if w.kind != plain || converse[lemma(w.lower)] {
			continue
		}
		m := clauseAt(mine, i)
		t, ok := likest(c, m, b, theirs)
		if !ok || hasStem(b.words[t.from:t.to], w.stem) {
			continue
		}
		for j := t.from; j < t.to; j++ {
			o := b.words[j]
			if o.kind != plain || !against(w, o) || c.stems[o.stem] > 0 || seconded(b, w, o) || seconded(c, o, w) || unevenClauses(c, i, b, j) {
				continue
			}
			if same, crossed := sidesWithin(c, i, [2]int{m.from, m.to}, b, j, [2]int{t.from, t.to}); same > 0 && crossed == 0 {
				return fmt.Sprintf("%q stands for %q", w.raw, o.raw)
			}
		}
	}
	return ""
}

func hasStem(words []token, stem string) bool {
	return slices.ContainsFunc(words, func(w token) bool { return w.stem == stem })
}

// against reports whether one of two words says the opposite of the other.
func against(a, b token) bool {
	return opposed[lemma(a.lower)][lemma(b.lower)] && !strings.HasPrefix(a.lower+" ", "option ") && !strings.HasPrefix(b.lower+" ", "option ") // stemmed as "optional"
}

// seconded reports whether a sentence has a word, beside other, that says what w does: one that
// is against what is against it.
func seconded(p *piece, w, other token) bool {
	return slices.ContainsFunc(p.words, func(x token) bool {
		return x.stem != other.stem && x.stem != w.stem && against(other, x) && !against(w, x)
	})
}

// converse are the stems of words that say the same of two with their sides exchanged, or
// that stand for those who take part.
var converse = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("buy purchase acquire sell sold win won win lose lost male man men female woman women husband wife father mother brother sister son daughter boy girl teacher student employer employee parent child children day daily night nightly year left right lead include contain come leave use last") {
		m[lemma(w)] = true
	}
	return m
}()

var (
	permission   = wordSet("forbidden prohibited banned permitted allowed excluded included")
	floating     = wordSet("most mostly usually often typically normally frequently always few seldom rarely hardly never exceptional exceptionally common rare")
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
	return slices.ContainsFunc(next(a, i), func(stem string) bool {
		return slices.ContainsFunc(theirs, func(o string) bool { return o == stem || spelling(o, stem) > 0 })
	})
}

// crossed says which comparison of a claim has its two sides exchanged: "A is slower than
// B" for "B is slower than A". Empty: none.
func (s *comparison) crossed(part int, c *piece) string {
	b := s.bestOf(part)
	if reason := s.mixed(part, c); reason != "" {
		return reason
	}
	if b == nil || !c.has("than") || !b.has("than") || s.shareOf(part, b) < minTurned {
		return ""
	}
	mine, theirs := slices.IndexFunc(c.words, thanWord), slices.IndexFunc(b.words, thanWord)
	for i, w := range c.words {
		if !compares(c, i) || prepositions[w.lower] || mine+1 < len(c.words) && c.words[mine+1].kind == number {
			continue // "more than 36"
		}
		for j, o := range b.words {
			opposite := turnedPairs[w.lower][o.lower] || opposed[w.stem][o.stem]
			if !compares(b, j) || o.stem != w.stem && !opposite {
				continue
			}
			same, other := sides(c, mine, b, theirs)
			if o.stem == w.stem {
				same-- // is no side
			}
			odd := opposite != evenDenials(c, i, b, j)
			switch {
			case !odd && other > same && other > 1:
				return fmt.Sprintf("what is %s than what is exchanged", w.raw)
			case odd && same > other && same > 1:
				return fmt.Sprintf("%q stands for %q", w.raw, o.raw)
			}
		}
	}
	return ""
}

func thanWord(w token) bool { return w.lower == "than" }

// compares reports whether the word at i is a comparative, or says what is more or less so.
func compares(p *piece, i int) bool {
	w := p.words[i]
	if turnedPairs[w.lower] != nil {
		return true
	}
	before := i > 0 && (p.words[i-1].lower == "more" || p.words[i-1].lower == "less")
	if w.kind != plain || len(w.lower) < 5 || !strings.HasSuffix(w.lower, "er") {
		return before
	}
	return before || i > 0 && being[p.words[i-1].lower] || i+1 < len(p.words) && thanWord(p.words[i+1]) && !(i > 0 && surface.Function(p.words[i-1].lower))
}

// denials counts the words of a text that deny, also those that say so by what they mean.
func denials(text string) int {
	n := 0
	for _, w := range surface.Words(deniedBefore.ReplaceAllString(boundPhrase.ReplaceAllString(text, ""), "")) {
		lower := strings.ToLower(w)
		if surface.Negations(w) > 0 || denying[lower] {
			n++
		}
	}
	return n
}

var (
	boundPhrase  = regexp.MustCompile(`(?i)\b(?:no|not|never) (?:more|less|fewer|later|earlier|longer|shorter|older|younger) than\b|\bno longer than\b|\bnot only\b|\bnot exceed\w*\b`)
	deniedBefore = regexp.MustCompile(`(?i)\b(?:not|no|never|cannot)\b(?: \w+){0,2} (?:before|over|above|below|under|beyond|exceed\w*|more than|less than|\w+er than)\b`)
	denying      = wordSet("cannot without forbidden prohibited impossible illegal excluded unable ignored rejected refused nobody nothing none neither nor exempt unless")
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

// unevenClauses reports whether of the clauses in which two words stand one denies and the
// other does not, or one of them restricts what it says.
func unevenClauses(a *piece, i int, b *piece, j int) bool {
	count := func(p *piece, i int) (n int, only bool) {
		c := clauseAt(clausesOf(p), i)
		for k := c.from; k < c.to; k++ {
			n += int(oneIf(deniesAt(p, k) || p.words[k].lower == "impossible" || p.words[k].lower == "forbidden"))
			only = only || p.words[k].lower == "only"
		}
		return n, only
	}
	mine, limited := count(a, i)
	theirs, alike := count(b, j)
	return (mine+theirs)%2 != 0 || limited != alike
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

// nearlyVerbatim is the share of a claim's words that stand in the source in their order,
// from which on it is that sentence with something changed.
const nearlyVerbatim = 0.75
