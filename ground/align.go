package ground

import "slices"

// holds reports whether a sentence says what a claim says: in one of the orders in
// which either may be put, all of the claim's terms stand in it, in the same order and
// with the same marks, and what the claim leaves out takes nothing back.
func holds(source, claim []term) bool {
	if len(claim) == 0 || len(claim) > len(source) || len(source) > maxTerms {
		return false
	}
	for _, s := range orders(source) {
		if within(s, claim) {
			return true
		}
	}
	if c := active(claim); c != nil {
		return within(source, c)
	}
	return false
}

// maxTerms bounds the claims and sentences that are compared term by term. What is
// longer is no sentence.
const maxTerms = 400

// within reports whether claim stands in source in order.
func within(source, claim []term) bool {
	if len(claim) == 0 || len(claim) > len(source) {
		return false
	}
	ends := map[int]bool{} // where in source the claim's terms up to here may end
	for j := range source {
		if same(source[j], claim[0], true) && leads(source[:j], source[j]) {
			ends[j] = true
		}
	}
	for i := 1; i < len(claim); i++ {
		next := map[int]bool{}
		for j := range source {
			if !same(source[j], claim[i], false) {
				continue
			}
			for k := range ends {
				if k < j && skips(source, k, j) {
					next[j] = true
					break
				}
			}
		}
		if len(next) == 0 {
			return false
		}
		ends = next
	}
	for j := range ends {
		if leaves(source[j+1:], claim) {
			return true
		}
	}
	return false
}

// same reports whether a term of a source and one of a claim say the same.
func same(s, c term, first bool) bool {
	if s.stem != c.stem || s.number != c.number {
		return false
	}
	if (s.part || c.part) && s.be != c.be {
		return false
	}
	return agree(s.marks, c.marks, first)
}

// agree reports whether two terms are marked alike. A claim need not say "all" or
// "and", and "in", "on" and "at" are left to its ear.
func agree(s, c marking, first bool) bool {
	free := isAnd | isIn
	if first {
		free |= isBut
	}
	s, c = s&^free, c&^free
	return s == c || s&isNot == 0 && s&^isAll == c
}

// leads reports whether a claim may begin at a term, leaving out all before it: what
// stands before a semicolon, if that announces nothing.
func leads(before []term, at term) bool {
	announces := func(t term) bool { return t.edge == colon }
	return len(before) == 0 || at.edge == strong && !marked(before, restricts) && !slices.ContainsFunc(before, announces)
}

// skips reports whether a claim may go on from source[k] to source[j]: what lies
// between is put in brackets or commas, or is one of what "and" joins.
func skips(source []term, k, j int) bool {
	gap := source[k+1 : j]
	switch {
	case len(gap) == 0:
		return true
	case marked(gap, restricts):
		return false
	case gap[0].edge == comma && source[j].edge == comma:
		return true
	}
	return source[j].marks&isAnd != 0 && !marked(gap, isAnd|isBetween|modal)
}

// leaves reports whether a claim may leave out what follows it in its sentence: a
// further part of it that takes nothing back, or a place or direction that a plain
// statement holds without.
func leaves(rest, claim []term) bool {
	const least = 3 // terms: fewer are no statement
	switch {
	case len(rest) == 0:
		return true
	case marked(rest, restricts) || len(claim) < least || rest[0].edge == colon:
		return false
	case rest[0].edge != none:
		return true
	case rest[0].marks&isAnd != 0:
		return !rest[0].number && !claim[len(claim)-1].number
	case slices.ContainsFunc(rest, func(t term) bool { return t.be || t.marks&modal != 0 }):
		return false // the sentence goes on, and was about something else
	case marked(claim, isNot|isOnly):
		return false
	case marked(claim, modal|isAll|isAny):
		return rest[0].marks == isTo
	}
	return rest[0].marks&(isIn|isTo|isFrom|isFor|isDuring|isBecause|isAs) != 0
}

func marked(terms []term, marks marking) bool {
	return slices.ContainsFunc(terms, func(t term) bool { return t.marks&marks != 0 })
}

// orders returns a sentence in the orders in which it says the same.
func orders(s []term) [][]term {
	out := [][]term{s}
	if a := active(s); a != nil {
		out = append(out, a)
	}
	if a := addressed(s); a != nil {
		out = append(out, a)
	}
	if len(s) > 1 && people[s[0].stem] && s[0].marks&^isAll == 0 && s[1].marks&hangs == 0 && s[1].edge == none {
		you := slices.Clone(s[1:])
		you[0].marks |= isYou
		out = append(out, you)
	}
	return append(out, turned(s)...)
}

// turned returns a sentence with its end put first and with its beginning put last,
// where that is a place, a time or a condition; of "X is N", where one side is a
// number, also "N is X".
func turned(s []term) [][]term {
	var out [][]term
	turn := func(at int) {
		t := slices.Concat(s[at:], s[:at])
		t[0].edge, t[len(s)-at].edge = none, none
		out = append(out, t)
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[i].marks&adverbial != 0 && s[i].marks&isAnd == 0:
			turn(i)
		case s[i].edge == comma && s[0].marks&adverbial != 0 && !slices.ContainsFunc(s[1:i], func(t term) bool { return t.edge != none }):
			turn(i)
		case equates(s, i):
			turn(i)
		}
	}
	return out
}

// equates reports whether a sentence is of the form "X is N", N from s[i] on, where one
// of the two is a number.
func equates(s []term, i int) bool {
	plain := func(t term) bool { return !t.be && t.edge == none && t.marks == 0 }
	for j, t := range s {
		if t.be = t.be && j != i; !plain(t) {
			return false
		}
	}
	return s[i].be && !s[i].part && numbered(s[:i]) != numbered(s[i:])
}

func numbered(terms []term) bool {
	return slices.ContainsFunc(terms, func(t term) bool { return t.number })
}

// active turns "X is done by Y" into "Y does X"; nil for what is not so.
func active(s []term) []term {
	verb, end, ok := passive(s)
	if !ok {
		return nil
	}
	by := slices.IndexFunc(s[end:], func(t term) bool { return t.marks&isBy != 0 })
	if by < 0 || s[end+by].number || s[end+by].edge != none {
		return nil
	}
	from := end + by
	to := from + 1
	for to < len(s) && s[to].marks&(adverbial|isTo) == 0 && s[to].edge == none {
		to++
	}
	if slices.ContainsFunc(s[from:], func(t term) bool { return t.be || t.marks&modal != 0 }) {
		return nil
	}
	doer := slices.Clone(s[from:to])
	doer[0].marks &^= isBy
	return slices.Concat(doer, done(s[verb:end], 0), s[:verb], s[end:from], s[to:])
}

// addressed turns "X must be done" into "you must do X": whoever reads what is
// demanded or allowed and of nobody else is meant. It is nil for what is not so.
func addressed(s []term) []term {
	verb, end, ok := passive(s)
	person := func(t term) bool { return people[t.stem] || persons[t.stem] }
	if !ok || s[verb].marks&(isMay|isMust|isNeed|isShould) == 0 || marked(s[end:], isBy) || slices.ContainsFunc(s[:verb], person) {
		return nil
	}
	return slices.Concat(done(s[verb:end], isYou), s[:verb], s[end:])
}

// passive finds the one verb in the passive of a sentence that has no other verb
// before it that could be told; its particles belong to it.
func passive(s []term) (verb, end int, ok bool) {
	verb = slices.IndexFunc(s, func(t term) bool { return t.be || t.marks&modal != 0 })
	if verb < 0 || !s[verb].part || !s[verb].be || s[verb].edge != none || slices.ContainsFunc(s[:verb], func(t term) bool { return t.edge != none }) {
		return 0, 0, false
	}
	end = verb + 1
	for end < len(s) && particles[s[end].stem] && s[end].marks == 0 && s[end].edge == none {
		end++
	}
	return verb, end, true
}

// done returns a verb in the active.
func done(verb []term, marks marking) []term {
	out := slices.Clone(verb)
	out[0].be = false
	out[0].marks = out[0].marks&^isPast | marks
	return out
}
