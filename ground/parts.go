package ground

import (
	"cmp"
	"fmt"
	"slices"
)

// joined reports whether a claim joins what two sentences in a row say of one subject,
// or what two sentences each say whole: "A does X. It does Y." as "A does X and does Y".
func joined(claim reading, sources []source, t topic) bool {
	const least = 3 // terms of a part
	terms := claim.terms
	for at := 2; at < len(terms); at++ {
		joint := terms[at].marks&(isAnd|isWhile|isBut) != 0 || terms[at].edge != none
		if !joint || at < least {
			continue
		}
		second := slices.Clone(terms[at:])
		second[0].marks &^= isAnd | isWhile | isBut
		second[0].edge = none
		first := reading{terms: terms[:at], again: claim.again, asks: claim.asks}
		for _, s := range sources {
			if s.says(first, t) && slices.ContainsFunc(sources, func(o source) bool { return follows(o, s, second, terms[:at], t) }) {
				return true
			}
		}
	}
	return false
}

// follows reports whether a source says the second part of a claim, whose first part
// another source says: whole, or of the same subject right after that one.
func follows(o, s source, second, first []term, t topic) bool {
	const least = 2
	if len(second) < least {
		return false
	}
	if !o.again && len(second) > least && o.says(reading{terms: second}, t) {
		return true
	}
	next := o.before != nil && o.before.text == s.text && s.text != ""
	if o.again && next && o.says(reading{terms: second}, t) {
		return true
	}
	if !next {
		return false
	}
	for n := 1; n <= maxSubject && n < len(first); n++ {
		whole := slices.Concat(first[:n], second)
		if len(o.terms) > n && len(s.terms) > n && equal(o.terms[:n], s.terms[:n]) && first[n].marks&hangs == 0 && holds(o.terms, whole) {
			return true
		}
	}
	return false
}

// unlike says how a claim differs from the source that is nearest to it.
func unlike(claim []term, sources []source) string {
	best, lacks, lacked := -1, 0, ""
	marks := ""
	for i, s := range sources {
		n, first, other := 0, "", ""
		for _, c := range claim {
			j := slices.IndexFunc(s.terms, func(t term) bool { return t.stem == c.stem && t.number == c.number })
			switch {
			case c.stem == "":
				other = cmp.Or(other, "its end")
			case j < 0:
				if n++; first == "" {
					first = c.word
				}
			case other == "" && !agree(s.terms[j].marks, c.marks, true):
				other = c.word
			}
		}
		if best < 0 || n < lacks {
			best, lacks, lacked, marks = i, n, first, other
		}
	}
	switch {
	case best < 0:
		return "cites nothing that says anything"
	case lacks > 0:
		return fmt.Sprintf("no one sentence of the source has all its words: the nearest lacks %q", lacked)
	case marks != "":
		return fmt.Sprintf("what stands before %q is not the same in the source", marks)
	}
	return "its words stand in the source in another order, or without what the source says with them"
}
