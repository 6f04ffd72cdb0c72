package ground

import (
	"fmt"
	"slices"
	"strings"
)

// exchanged says around which word a claim has exchanged what its source says: "B is done
// before A" for "A is done before B", "B bought A" for "A bought B". It is asked of claims
// alone that have hardly a word of their own, and "B was bought by A" is no exchange of
// "A bought B". Empty: none.
func (s *comparison) exchanged(part int, c *piece) string {
	b := s.bestOf(part)
	if b == nil || len(c.words) > mostWords || s.shareOf(part, b) < leastBorrowed {
		return ""
	}
	for i, w := range c.words {
		if !pivots[w.lower] && !verbal(w) || i == 0 && !strings.Contains(c.text, ",") {
			continue // "Until noon it was open" is no exchange of "It was open until noon"
		}
		for j, o := range b.words {
			pivot := pivots[w.lower]
			mine, theirs := clauseBounds(c, i, pivot), clauseBounds(b, j, pivot)
			switch {
			case o.lower != w.lower:
				continue
			case pivot:
			case !onlyOnce(c, w) || !onlyOnce(b, o) || beenBefore(c, i) != beenBefore(b, j):
				continue // which of them is it?
			case passiveAt(c, i) != passiveAt(b, j) || !hasContent(c.words[mine[0]:i]):
				continue // of an "expired key" nothing is said
			}
			if ratio(sharedIn(b, stretch{theirs[0], theirs[1]}, c), contentIn(b, stretch{theirs[0], theirs[1]})) < leastOfSource {
				continue // it says much more
			}
			if same, crossed := sidesWithin(c, i, mine, b, j, theirs); crossed > 1 && crossed > same {
				return fmt.Sprintf("what stands before and after %q is exchanged", w.raw)
			}
		}
	}
	return ""
}

// leastOfSource is the share of the words of its source, in the clause, that such a claim has.
const leastOfSource = 0.6

// onlyOnce reports whether a sentence has a word once.
func onlyOnce(p *piece, w token) bool { return p.stems[w.stem] == 1 }

// leastBorrowed is the share of its content words that such a claim has from the source.
const leastBorrowed = 0.9

// pivots are words that put two things in an order, one before them and one behind.
var pivots = wordSet("before after because causes caused until than unless")

// verbal reports whether a word is, by its form, most likely a verb.
func verbal(w token) bool {
	return w.kind == plain && (finiteWord.MatchString(w.lower) || strings.HasSuffix(w.lower, "ed") || baseOf(w.lower) != w.lower && baseVerb.MatchString(baseOf(w.lower)))
}

func hasContent(words []token) bool {
	return slices.ContainsFunc(words, func(w token) bool { return w.kind != small })
}

// passiveAt reports whether a form of "be" stands closely before a word, or "by" behind it.
func passiveAt(p *piece, i int) bool {
	for _, w := range p.words[i:min(len(p.words), i+6)] {
		if w.lower == "by" {
			return true
		}
	}
	return beenBefore(p, i)
}

// beenBefore reports whether a form of "be" stands closely before a word.
func beenBefore(p *piece, i int) bool {
	return slices.ContainsFunc(p.words[max(0, i-3):i], func(w token) bool { return being[w.lower] })
}

// clauseBounds are the words around one that no comma, semicolon, colon or word that puts
// clauses in an order sets apart; of such a word, that no punctuation does.
func clauseBounds(p *piece, i int, pivot bool) [2]int {
	apart := func(k int) bool {
		return strings.ContainsAny(p.text[p.words[k].end:p.words[k+1].start], ",;:") || !pivot && (joins[p.words[k].lower] || joins[p.words[k+1].lower])
	}
	from, to := i, i+1
	for from > 0 && !apart(from-1) {
		from--
	}
	for to < len(p.words) && !apart(to-1) {
		to++
	}
	return [2]int{from, to}
}

// joins are words between two clauses.
var joins = wordSet("before after because until unless when while if although though whereas and but since once")

// sidesWithin counts, as sides does, the words of two clauses.
func sidesWithin(a *piece, i int, mine [2]int, b *piece, j int, theirs [2]int) (same, crossed int) {
	for x := mine[0]; x < mine[1]; x++ {
		w := a.words[x]
		if w.kind == small || x == i {
			continue
		}
		before, after := false, false
		for y := theirs[0]; y < theirs[1]; y++ {
			if y != j && b.words[y].stem == w.stem {
				before, after = before || y < j, after || y > j
			}
		}
		switch {
		case before && after || !before && !after:
		case before == (x < i):
			same++
		default:
			crossed++
		}
	}
	return same, crossed
}
