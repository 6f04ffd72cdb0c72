package eval

import (
	"slices"
	"strings"
)

// statementOf makes a statement of a question and its answer: "When did the war begin?" and
// "1914" say that the war began in 1914. What the answer lacks, its article and what it
// stands behind, is looked up in the text that it was taken from. It is not ok where the
// question is not of a shape whose statement is sure to be English.
func statementOf(question, answer, text string) (s saying, ok bool) {
	a, ok := newAnswer(answer, text)
	question = strings.TrimRight(question, " ?.")
	if subject, relation, is := strings.Cut(question, " >> "); is && ok {
		said, known := relations[relation]
		verb, rest, _ := strings.Cut(said, " ")
		return saying{subject: subject, verb: verb, rest: rest + " " + a.text}, known
	}
	if !ok || strings.ContainsAny(question, "?;:()") || strings.Contains(question, " time ") {
		return s, false
	}
	q := asked(strings.Fields(question))
	const least, most = 3, 26
	if len(q) < least || len(q) > most || slices.Contains(q, "or") || q.doubled() {
		return s, false
	}
	if s, ok = inPlace(q, a); ok {
		return s, true
	}
	front := ""
	if i := fronted(q); i > 0 {
		front, q = strings.TrimSuffix(q.text(0, i), ","), q[i:]
	}
	if s, ok = statementOfAsked(q, a); !ok {
		return s, false
	}
	if front == "" {
		front = s.front
	} else if s.front != "" {
		return s, false
	}
	s.front = front
	if front != "" && !startsWithName(s.subject, a) {
		s.subject = strings.ToLower(s.subject[:1]) + s.subject[1:]
	}
	return s, true
}

// relations are how questions that name one are said: "Dune >> author".
var relations = map[string]string{
	"place of birth": "was born in", "place of death": "died in", "performer": "was performed by", "author": "was written by", "composer": "was composed by",
	"director": "was directed by", "producer": "was produced by", "spouse": "is married to", "part of": "is part of", "educated at": "was educated at",
	"located in the administrative territorial entity": "is located in", "country of citizenship": "is a citizen of", "continent": "is in", "member of sports team": "has played for",
}

// doubled reports whether two prepositions stand side by side: what stood between them
// is asked for.
func (q asked) doubled() bool {
	for i := 1; i+1 < len(q); i++ {
		if prepositions[q.at(i)] && prepositions[q.at(i+1)] && !joins[q.at(i)] {
			return true
		}
	}
	return false
}

var joins = wordsOf("as than prior due outside following")

// fronted returns how many words a question has before the one that it asks with, where
// they are said before all else: "In 1912, who ..."; else 0.
func fronted(q asked) int {
	for i := 1; i < len(q) && i < 9; i++ {
		if strings.HasSuffix(q[i-1], ",") && asks[q.at(i)] && prepositions[q.at(0)] && !asks[q.at(1)] {
			return i
		}
	}
	return 0
}

var asks = wordsOf("who what which when where how why whom whose")

func startsWithName(subject string, a answerText) bool {
	word, _, _ := strings.Cut(subject, " ")
	lower := strings.ToLower(word)
	return !(determiners[lower] || prepositions[lower] || pronouns[lower] || lower == "there") || strings.HasPrefix(subject, a.text) && a.name
}

// statementOfAsked makes one of a question that begins with the word that it asks with,
// or with a preposition before that.
func statementOfAsked(q asked, a answerText) (saying, bool) {
	switch first := q.at(0); first {
	case "who", "whom":
		return q.ofThing(1, a, first)
	case "what", "which":
		return q.ofWhat(a)
	case "when", "where":
		return q.ofAdverb(1, first, a)
	case "why":
		if !reasons[a.first()] {
			return saying{}, false
		}
		return q.withEnd(1, a.text)
	case "how":
		return q.ofHow(a)
	default:
		if w := q.at(1); prepositions[first] && (w == "what" || w == "which" || w == "whom") {
			return q.ofPreposition(first, a)
		}
	}
	return saying{}, false
}

var reasons = wordsOf("because to due for as since")

// finite says what kind of finite verb word i is, if it is one.
func (q asked) finite(i int) (kind string) {
	w := q.at(i)
	switch {
	case q.possessive(max(i, 0)), q.capital(i):
		return ""
	case helpers[w]:
		return "help"
	case beings[w]:
		return "be"
	case havings[w]:
		return "have"
	case modals[w]:
		return "modal"
	case verbs.ofPast[w] != "", verbs.isParticiple(w) && strings.HasSuffix(w, "ed"):
		return "past"
	case verbs.ofThird[w] != "" && (i == 1 || plainVerbs[verbs.ofThird[w]] && !nounVerbs[verbs.ofThird[w]]):
		return "third"
	}
	return ""
}

// ofWhat makes a statement of "what ..." and "which ...".
func (q asked) ofWhat(a answerText) (saying, bool) {
	k := 1
	for ; k < len(q) && q.finite(k) == ""; k++ {
		if relatives[q.at(k)] || q.possessive(k) {
			return saying{}, false
		}
	}
	switch {
	case k == 1 && q.finite(2) != "third" && q.finite(2) != "past":
		return q.ofThing(1, a, "what")
	case k == 1, k == len(q):
		return saying{}, false
	}
	adverb := ""
	noun := q.text(1, k)
	if w := q.at(k - 1); k > 2 && (w == "first" || w == "originally" || w == "also" || strings.HasSuffix(w, "ly") && len(w) > 5) {
		adverb, noun = w+" ", q.text(1, k-1)
	}
	b, ok := a.asNoun(noun)
	if !ok || strings.ContainsAny(noun, "0123456789,") {
		return saying{}, false
	}
	if adverb != "" {
		s, ok := q.ofThing(k, b, "what")
		if s.verb = adverb + s.verb; s.base != "" {
			s.base = adverb + s.base
		}
		return s, ok && s.subject == b.text && !strings.Contains(s.verb, " not")
	}
	switch last := q.at(k - 1); last {
	case "year", "century", "decade", "month", "day", "date":
		if kind := q.finite(k); kind == "help" || kind == "be" || kind == "modal" || kind == "have" {
			if prepositions[q.at(len(q)-1)] {
				return q.ofThing(k, b, "what")
			}
			if kind == "be" && verbs.isParticiple(q.at(k+1)) {
				return saying{}, false
			}
			return q.ofAdverb(k, "when", b)
		}
	}
	return q.ofThing(k, b, "what")
}

// ofThing makes a statement of a question after who or what, whose finite verb is word k.
func (q asked) ofThing(k int, a answerText, word string) (saying, bool) {
	switch q.finite(k) {
	case "help":
		return q.ofObject(k, a)
	case "past":
		w := q.at(k)
		if w == "happened" && !a.article() || !q.opensObject(k+1) && verbs.ofPast[w] == "" || k > 1 && q.reduced(k) {
			return saying{}, false
		}
		return saying{subject: a.text, verb: w, base: verbs.ofPast[w], helper: "did", rest: q.text(k+1, len(q))}, true
	case "third":
		base := verbs.ofThird[q.at(k)]
		if a.plural {
			return saying{subject: a.text, verb: base, base: base, helper: "do", rest: q.text(k+1, len(q))}, !a.unsure
		}
		return saying{subject: a.text, verb: q.at(k), base: base, helper: "does", rest: q.text(k+1, len(q))}, !a.unsure
	case "modal":
		if plainVerbs[q.at(k+1)] || nounVerbs[q.at(k+1)] && q.opensObject(k+2) || q.at(k+1) == "be" {
			return saying{subject: a.text, verb: q.at(k), rest: q.text(k+1, len(q))}, true
		}
		v := q.verbAfter(k + 1)
		return q.withGap(k, v, v, a)
	case "have":
		return q.ofHaving(k, a)
	case "be":
		return q.ofBeing(k, a, word)
	}
	return saying{}, false
}

// reduced reports whether word k may be a participle that belongs to the noun before it:
// "which song written by ...", with a verb behind.
func (q asked) reduced(k int) bool {
	if !verbs.isParticiple(q.at(k)) || !prepositions[q.at(k+1)] {
		return false
	}
	for i := k + 2; i < len(q); i++ {
		if relatives[q.at(i)] {
			return false
		}
		if q.finite(i) != "" && !q.inside(i) {
			return true
		}
	}
	return q.at(k+1) == "by"
}

// agreed is a form of "to be" or "to have" that agrees with an answer.
func agreed(verb string, a answerText) string {
	forms := map[string]string{"is": "are", "was": "were", "has": "have"}
	for one, many := range forms {
		switch {
		case a.plural && verb == one:
			return many
		case !a.plural && verb == many && one != "has":
			return one
		}
	}
	return verb
}

func (q asked) ofHaving(k int, a answerText) (saying, bool) {
	w := q.at(k)
	for i := k + 1; i < len(q); i++ {
		if (verbs.isParticiple(q.at(i)) || q.at(i) == "been") && (i == k+1 || !q.inside(i)) {
			if i == k+1 || i == k+2 && strings.HasSuffix(q.at(k+1), "ly") {
				return saying{subject: a.text, verb: agreed(w, a), rest: q.text(k+1, len(q))}, !a.unsure
			}
			if q.at(i) == "been" {
				return saying{}, false
			}
			return q.withGap(k, i, i, a)
		}
	}
	if !q.opensObject(k + 1) {
		return saying{}, false
	}
	base := map[string]string{"has": "does", "had": "did", "have": "do"}[w]
	return saying{subject: a.text, verb: agreed(w, a), base: "have", helper: base, rest: q.text(k+1, len(q))}, !a.unsure
}

// ofBeing makes a statement of "what is", "who was" and the like.
func (q asked) ofBeing(k int, a answerText, word string) (saying, bool) {
	w, next := q.at(k), q.at(k+1)
	last := q.at(len(q) - 1)
	switch {
	case k+1 >= len(q), next == "there", next == "it", strings.Contains(q.text(k, len(q)), "called "), strings.Contains(q.text(k, len(q)), " like"):
		return saying{}, false
	case k > 1 && strings.HasSuffix(next, "est"), verbs.isParticiple(next), predicates[next] && next != "known", strings.HasSuffix(next, "ly") && (verbs.isParticiple(q.at(k+2)) || predicates[q.at(k+2)]):
		if prepositions[last] && len(q)-k > 3 && q.opensObject(k+1) {
			return saying{}, false
		}
		return saying{subject: a.text, verb: agreed(w, a), rest: q.text(k+1, len(q))}, !a.unsure
	case strings.HasSuffix(next, "ing") && len(next) > 5, prepositions[next]:
		if k == 1 && word == "what" && prepositions[next] {
			return saying{subject: a.text, verb: agreed(w, a), rest: q.text(k+1, len(q))}, !a.unsure && !prepositions[last]
		}
		return saying{subject: a.text, verb: agreed(w, a), rest: q.text(k+1, len(q))}, !a.unsure && !prepositions[last]
	}
	if prepositions[last] || last == "called" || last == "named" {
		p := q.predicateAfter(k + 1)
		if p < 0 || last == "as" && a.article() {
			return saying{}, false
		}
		return saying{subject: q.text(k+1, p), verb: w, rest: q.text(p, len(q)) + " " + a.text}, true
	}
	if article(next) || next == "one" || next == "another" || next == "two" || next == "some" || q.ownedBy(k+1) {
		return q.equated(k, a, word)
	}
	if p := q.predicateAfter(k + 1); p > 0 && !article(q[p]) && p < len(q) && (pronouns[next] || q.capital(k+1)) && strings.HasSuffix(q.at(p), "ing") {
		return q.withGap(k, p, p, a)
	}
	return saying{}, false
}

// ownedBy reports whether the words from i on are what belongs to someone: "Tesla's
// reputation".
func (q asked) ownedBy(i int) bool {
	for j := i; j < len(q)-1 && j < i+4; j++ {
		if q.possessive(j) {
			return true
		}
	}
	return false
}

// equated makes "The capital of X is A" of "what is the capital of X".
func (q asked) equated(k int, a answerText, word string) (saying, bool) {
	next := q.at(k + 1)
	if (next == "a" || next == "an") && !(word == "who" || a.article()) || verbs.isParticiple(q.at(len(q)-1)) {
		return saying{}, false
	}
	if first := a.first(); plainVerbs[first] && !nounVerbs[first] && !a.name {
		return saying{}, false // "to render"
	}
	relative := false
	for i := k + 1; i < len(q); i++ {
		w := q.at(i)
		relative = relative || relatives[w]
		asking := w == "called" || w == "named" || strings.HasSuffix(q[i], ",")
		verb := modals[w] || beings[w] || helpers[w] || verbs.isParticiple(w) && q.at(i+1) == "to"
		doing := word == "what" && strings.HasSuffix(w, "ing") && len(w) > 5 && w != "living" && !prepositions[q.at(i-1)] && !article(q.at(i-1)) && (i+1 == len(q) || prepositions[q.at(i+1)] && q.at(i+1) != "of")
		if asking || !relative && (verb || doing) {
			return saying{}, false
		}
	}
	if k > 1 && relative || word == "what" && (next == "a" || next == "an") && len(q)-k > 5 {
		return saying{}, false
	}
	rest := q.text(k+1, len(q))
	if word == "who" && a.name {
		return saying{subject: a.text, verb: q.at(k), rest: rest, equal: true}, true
	}
	return saying{subject: rest, verb: q.at(k), rest: a.text, equal: true}, true
}

// ofObject makes a statement of "what did the war cause".
func (q asked) ofObject(k int, a answerText) (saying, bool) {
	v := q.verbAfter(k + 1)
	return q.withGap(k, v, v, a)
}

// withGap puts the answer where the question has a gap: behind a preposition at its end,
// or behind verb v. Word k is the helper, end that of the subject.
func (q asked) withGap(k, end, v int, a answerText) (saying, bool) {
	if v < 0 || v <= k+1 {
		return saying{}, false
	}
	w := q.at(v)
	switch {
	case noObjects[w] && v+1 == len(q), speaking[w]:
		return saying{}, false
	}
	for i := v + 1; i < len(q); i++ {
		if q.at(i) == "that" || q.at(i) == "which" {
			return saying{}, false
		}
	}
	rest := ""
	last := q.at(len(q) - 1)
	switch {
	case v+1 == len(q), prepositions[last] || last == "off" || last == "up":
		rest = q.text(v+1, len(q)) + " " + a.text
	case q.at(v+1) == "to" && w != "use":
		if !(plainVerbs[last] || nounVerbs[last]) || last == "do" || q.at(v+2) != last {
			return saying{}, false
		}
		rest = q.text(v+1, len(q)) + " " + a.text
	case prepositions[q.at(v+1)] && q.at(v+1) != "of" || q.at(v+1) == "to" || q.at(v+1) == "when" || q.at(v+1) == "while":
		if intransitive[w] {
			return saying{}, false
		}
		rest = a.text + " " + q.text(v+1, len(q))
	default:
		return saying{}, false
	}
	s := saying{verb: q.at(k), rest: w + " " + rest}
	if helpers[q.at(k)] {
		s = conjugated(q.at(k), w)
		s.rest = rest
	}
	s.subject = q.text(k+1, end)
	return s, true
}

var (
	noObjects    = wordsOf("go come happen occur appear exist seem become live die rise fall do")
	intransitive = wordsOf("go come happen occur appear exist live die rise fall work play look depend rely belong fight vote serve travel say lead compete refer result arrive respond believe stand do think participate")
	speaking     = wordsOf("say believe think claim suggest argue state do feel want hope seem tend note hear")
)
