package ground

import (
	"slices"
	"strings"
)

// A stretch is a clause: a part of a sentence with a verb of its own: words [from, to).
type stretch struct{ from, to int }

// clausesOf cuts a sentence into clauses: at semicolons, colons, dashes and brackets, and
// before what joins two clauses.
func clausesOf(p *piece) []stretch {
	var out []stretch
	from := 0
	for k := 1; k < len(p.words); k++ {
		if k > from && parting(p, from, k) {
			out = append(out, stretch{from, k})
			from = k
		}
	}
	return append(out, stretch{from, len(p.words)})
}

// parting reports whether a new clause begins at word k of a sentence, the last one having
// begun at from.
func parting(p *piece, from, k int) bool {
	gap := p.text[p.words[k-1].end:p.words[k].start]
	w := p.words[k].lower
	switch {
	case strings.ContainsAny(gap, ";:—–()") || strings.Contains(gap, " - "):
		return strings.Contains(gap, ";") || !being[w] && !having[w] && phrases[w]&modal == 0 // "(… ) is empty" goes on
	case joining[w]:
		return true
	case strings.Contains(gap, ",") && (outright[w] || deniesAlone(p, k)):
		return true
	case !strings.Contains(gap, ",") && w != "and" && w != "or" && w != "nor":
		return false
	case w == "which" || w == "who" || w == "where" || w == "whose" || w == "nor":
		return true
	}
	if (w == "and" || w == "or") && k+1 < len(p.words) && hasVerb(p.words[from:k]) && finiteWord.MatchString(p.words[k+1].lower) && !baseVerb.MatchString(p.words[k+1].lower) {
		return true // "and became"
	}
	const reach = 5 // words in which its verb stands
	return hasVerb(p.words[from:k]) && hasVerb(p.words[k:min(len(p.words), k+reach)])
}

// deniesAlone reports whether what begins at word k, up to the next comma, denies something
// and has no verb: "and the others not at all".
func deniesAlone(p *piece, k int) bool {
	to := k + 1
	for to < len(p.words) && !strings.ContainsAny(p.text[p.words[to-1].end:p.words[to].start], ",;:") {
		to++
	}
	return !hasVerb(p.words[k:to]) && slices.ContainsFunc(p.words[k:to], func(w token) bool { return outright[w.lower] })
}

// joining are words before which a clause ends whatever stands there.
var joining = wordSet("but whereas while although though because unless if since whenever when")

// hasVerb reports whether some words have a verb in a form that makes a clause.
func hasVerb(words []token) bool {
	return slices.ContainsFunc(words, func(w token) bool {
		return being[w.lower] || having[w.lower] || phrases[w.lower]&(modal|isPast|isNeed) != 0 || w.lower == "cannot" || w.lower == "do" || w.lower == "does" || strings.HasSuffix(w.lower, "s") && finiteWord.MatchString(w.lower)
	})
}

// clauseAt is the clause of a list that has word i.
func clauseAt(list []stretch, i int) stretch {
	for _, c := range list {
		if i < c.to {
			return c
		}
	}
	return stretch{}
}

func contentIn(p *piece, c stretch) int {
	n := 0
	for _, w := range p.words[c.from:c.to] {
		n += int(oneIf(w.kind != small))
	}
	return n
}

// sharedIn counts the content words of a clause that a sentence has.
func sharedIn(p *piece, c stretch, other *piece) int {
	n := 0
	for _, w := range p.words[c.from:c.to] {
		n += int(oneIf(w.kind != small && other.stems[w.stem] > 0))
	}
	return n
}

// bounded reports whether a clause bounds a quantity: who is not younger than four is four.
func bounded(p *piece, c stretch) bool {
	if c.from >= c.to {
		return false
	}
	text := p.text[p.words[c.from].start:p.words[c.to-1].end]
	return slices.ContainsFunc(quantities(text), func(q quantity) bool { return q.bound != exact })
}

// inBoth counts the content words of a clause that one of another sentence has.
func inBoth(p *piece, c stretch, other *piece, o stretch) int {
	n := 0
	for _, w := range p.words[c.from:c.to] {
		n += int(oneIf(w.kind != small && slices.ContainsFunc(other.words[o.from:o.to], func(x token) bool { return x.stem == w.stem })))
	}
	return n
}

// likest is the clause of a sentence that has the most of a claim's, if no other has as much.
func likest(c *piece, m stretch, b *piece, theirs []stretch) (best stretch, ok bool) {
	most := 0
	for _, t := range theirs {
		switch n := inBoth(c, m, b, t); {
		case n > most:
			best, most, ok = t, n, true
		case n == most:
			ok = false
		}
	}
	return best, ok
}

// inLikest reports whether a word of a sentence stands in the clause that has the most of the
// one in which a claim's word stands.
func inLikest(c *piece, i int, b *piece, j int) bool {
	t, ok := likest(c, clauseAt(clausesOf(c), i), b, clausesOf(b))
	return ok && j >= t.from && j < t.to
}
