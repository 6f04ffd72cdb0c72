package ground

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// vetoScore is the most that the probability is where there is a veto.
const vetoScore = 0.04

// veto says why a claim cannot be supported whatever a model makes of its words: a number,
// date, unit or name that what is nearest to it does not have, a bound that lies on the
// other side, or a denial on one side alone. Empty: there is nothing of that kind.
func (s *comparison) veto() string {
	for i, c := range s.claim {
		v := s.vetoes(i, c)
		if v[sidesMixed] != "" && v[sidesMixed] == s.mixed(i, c) {
			v[sidesMixed] = s.mixedSurely(i, c)
		}
		if reason := cmp.Or(cmp.Or(v[:]...), s.exchanged(i, c), s.leftOut(i, c), s.onlyAsked(i, c), s.together(i, c)); reason != "" {
			return reason
		}
	}
	return ""
}

// onlyAsked says that a claim's sentence states what the source asks: the sentence nearest to
// it is a question that has most of its words, and no other one has as many.
func (s *comparison) onlyAsked(part int, c *piece) string {
	const most = 0.7
	b := s.bestOf(part)
	if b == nil || !asks(b.text) || asks(c.text) || s.shareOf(part, b) < most {
		return ""
	}
	for _, p := range s.evidence {
		if !asks(p.text) && s.shareOf(part, p) >= most {
			return ""
		}
	}
	return "the source asks it, and does not say it"
}

// together says that the sentence nearest to a claim's denies two things together of which
// the claim has one.
func (s *comparison) together(part int, c *piece) string {
	if b := s.bestOf(part); b != nil && deniedTogether(b.text, read(c.text).terms) {
		return "the source denies it together with something else"
	}
	return ""
}

// vetoKinds are the kinds of reasons, in the order in which vetoes gives them.
var vetoKinds = [...]string{"quantity", "bound", "changed", "turned", "crossed", "denied", "name"}

// sidesMixed is the index in vetoKinds of "crossed", whose reasons may be those of mixed.
const sidesMixed = 4

// vetoed are the sentences in which a claim's quantities have to stand.
const vetoed = 3

// vetoes are the reasons against one sentence of the claim, one for each of vetoKinds.
func (s *comparison) vetoes(part int, c *piece) (reasons [len(vetoKinds)]string) {
	near := s.near[part][:min(vetoed, len(s.near[part]))]
	if len(near) == 0 {
		return reasons
	}
	mine := quantities(c.text)
	var theirs [][]quantity
	for _, p := range near {
		theirs = append(theirs, quantities(p.text))
	}
	return [...]string{
		s.otherQuantity(part, c, mine, theirs), againstBound(c, near[0], mine, theirs[0]),
		s.changed(part, c), s.turned(part, c), s.crossed(part, c), s.denied(part, c), s.otherName(part, c),
	}
}

// otherQuantity names a quantity of a sentence of the claim that what is nearest to it has
// not; theirs are those of the nearest sentences.
func (s *comparison) otherQuantity(part int, c *piece, mine []quantity, theirs [][]quantity) string {
	near := s.near[part]
	used := make([]bool, len(theirs[0]))
	var open []quantity // that the nearest sentence has not
	for _, q := range mine {
		if k := slices.IndexFunc(theirs[0], func(o quantity) bool { return q.same(o) }); k >= 0 {
			if used[k] {
				for l, o := range theirs[0] {
					if !used[l] && q.same(o) {
						k = l
					}
				}
			}
			used[k] = true
			continue
		}
		open = append(open, q)
	}
	sure := s.sure(part, near[0])
	for _, q := range mine {
		if q.weak && sure && otherRate(mine, q, theirs[0]) {
			return fmt.Sprintf("%s: the source tells it of another time", strings.TrimSpace(c.text[q.start:q.end]))
		}
	}
	for _, q := range open {
		if q.trivial() || q.dim == times && q.value <= 2 && !slices.ContainsFunc(theirs[0], func(o quantity) bool { return o.dim == times }) || derived(c.text, q, theirs) {
			continue
		}
		rival := slices.ContainsFunc(indices(used), func(k int) bool { return !used[k] && q.rivals(theirs[0][k]) })
		switch {
		case q.weak && sure && slices.ContainsFunc(theirs[0], func(o quantity) bool {
			return o.weak && o.dim != "night" && likeRate(mine, q, theirs[0], o)
		}) && !slices.ContainsFunc(theirs[0], func(o quantity) bool { return o.weak && q.same(o) }):
			return fmt.Sprintf("%s: what says the rest has another one", strings.TrimSpace(c.text[q.start:q.end]))
		case rival && sure && !s.elsewhere(part, near[0], func(p *piece) bool { return slices.ContainsFunc(quantities(p.text), q.same) }):
			return fmt.Sprintf("%s: what says the rest has another one", strings.TrimSpace(c.text[q.start:q.end]))
		case !s.tells(q) && !q.partOf(s.told) && !q.excused(theirs) && (sure || !s.foreign(q)):
			return fmt.Sprintf("%s is nowhere in the source", strings.TrimSpace(c.text[q.start:q.end]))
		}
	}
	return ""
}

// likeRate reports whether two units that are not counted say how often the same is so:
// "three times a day" and "three times a week", not "20 hours a week" and "28 days a year".
func likeRate(mine []quantity, q quantity, theirs []quantity, o quantity) bool {
	a, counted := rated(mine, q)
	b, both := rated(theirs, o)
	return !counted || !both || a.same(b)
}

// otherRate reports whether what a claim says of a unit, "eight puffs a week", its source says
// of a counted time that is another: "eight puffs in 24 hours".
func otherRate(mine []quantity, unit quantity, theirs []quantity) bool {
	a, ok := rated(mine, unit)
	if !ok {
		return false
	}
	for k, o := range theirs[:max(0, len(theirs)-1)] {
		const closely = 16 // bytes
		next := theirs[k+1]
		if a.same(o) && !next.weak && (next.dim == duration || next.dim == span12) && next.start-o.end < closely && next.bound == exact && !unit.same(next) {
			return true
		}
	}
	return false
}

// rated is what stands before a unit that is not counted: the three times of "three times a
// day".
func rated(all []quantity, unit quantity) (q quantity, ok bool) {
	const closely = 10 // bytes
	for _, o := range all {
		if !o.weak && o.end <= unit.start && unit.start-o.end < closely {
			q, ok = o, true
		}
	}
	return q, ok
}

// sure reports whether the sentence nearest to one of the claim's is the one that says it,
// if any does: it has enough of its words, names and numbers aside.
func (s *comparison) sure(part int, b *piece) bool {
	return len(s.claim[part].words) <= mostWords && s.shareOfPlain(part, b) >= leastSure
}

// mostWords is how many words a claim has that says one thing. Of a longer one several
// sentences may say each a part.
const mostWords = 24

// shareOfPlain is the share of the words of a claim's sentence, names and numbers aside,
// that another one has.
func (s *comparison) shareOfPlain(part int, b *piece) float64 {
	held, of := 0, 0
	for _, m := range s.words {
		if m.part != part || m.kind != plain {
			continue
		}
		of++
		if b.stems[m.stem] > 0 || b == s.bestOf(part) && m.cosineBest >= alikeWord {
			held++
		}
	}
	if of == 0 {
		return 1
	}
	return ratio(held, of)
}

// alikeWord is the cosine of two words from which on one stands for the other.
const alikeWord = 0.82

// leastSure is that share of words.
const leastSure = 0.4

func indices(of []bool) []int {
	all := make([]int, len(of))
	for i := range of {
		all[i] = i
	}
	return all
}

// rivals reports whether another quantity may stand where q should.
func (q quantity) rivals(o quantity) bool {
	timed := (o.dim == duration || o.dim == span12) && (q.dim == duration || q.dim == span12)
	return (o.dim == q.dim || timed) && !o.weak && !q.weak && (o.noun == q.noun || o.noun == "" || q.noun == "" || q.dim != count)
}

// tells reports whether a quantity stands anywhere in what is cited.
func (s *comparison) tells(q quantity) bool {
	if s.told == nil {
		s.told = []quantity{}
		for _, p := range s.evidence {
			s.told = append(s.told, quantities(p.text)...)
		}
	}
	return slices.ContainsFunc(s.told, q.same)
}

// foreign reports whether the number of a quantity is told of something whose name the claim
// has in another language: what it counts stands nowhere in what is cited.
func (s *comparison) foreign(q quantity) bool {
	if q.dim != count || q.noun == "" || q.order || slices.ContainsFunc(s.evidence, func(p *piece) bool { return p.stems[q.noun] > 0 }) {
		return false
	}
	return slices.ContainsFunc(s.told, func(o quantity) bool { return o.dim != count && o.plain == q.plain })
}

// trivial reports whether a quantity is said without counting: "one of", "first".
func (q quantity) trivial() bool {
	return q.dim == count && q.value <= 2 && q.value == q.plain
}

// excused reports whether a unit that is not counted is not missed, since no time at all
// is told there.
func (q quantity) excused(theirs [][]quantity) bool {
	return q.weak && !slices.ContainsFunc(slices.Concat(theirs...), func(o quantity) bool { return o.dim == duration || o.dim == span12 || o.dim == q.dim })
}
