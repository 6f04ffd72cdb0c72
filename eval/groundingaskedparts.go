package eval

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A saying is a statement in parts, so that it can be affirmed and denied.
type saying struct {
	front   string // that is said before all else
	subject string
	verb    string // finite: "was", "wrote"
	base    string // the plain form of a full verb; empty: the verb takes "not" itself
	helper  string // that "not" stands behind, of a full verb
	rest    string
	end     string // of the rest: when or where it was
	equal   bool   // the verb says that subject and rest are the same
}

func (s saying) affirmed() string { return s.with(s.verb) }

// denied is the statement's opposite; empty where the verb is not known.
func (s saying) denied() string {
	switch {
	case s.base != "":
		return s.with(s.helper + " not " + s.base)
	case s.helper != "":
		return ""
	}
	if s.subject == "there" {
		still, rest := "", s.rest
		if after, ok := strings.CutPrefix(rest, "still "); ok {
			still, rest = "still ", after
		}
		for _, a := range []string{"a ", "an ", "some "} {
			rest = strings.TrimPrefix(rest, a)
		}
		s.rest = still + "no " + rest
		return s.affirmed()
	}
	if s.verb == "can" {
		return s.with("cannot")
	}
	return s.with(s.verb + " not")
}

func (s saying) with(verb string) string {
	text := strings.Join(strings.Fields(s.subject+" "+verb+" "+s.rest), " ")
	if s.front != "" {
		text = s.front + ", " + text
	}
	text = strings.TrimRight(text, " .,;:?")
	r, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[size:] + "."
}

// asked are the words of a question.
type asked []string

func (q asked) at(i int) string {
	if i < 0 || i >= len(q) {
		return ""
	}
	return strings.ToLower(strings.Trim(q[i], `.,;:?!()"'“”‘’`))
}

func (q asked) text(from, to int) string { return strings.Join(q[from:to], " ") }

func (q asked) capital(i int) bool {
	if i < 0 || i >= len(q) {
		return false
	}
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(q[i], `("'“‘`))
	return unicode.IsUpper(r)
}

func (q asked) number(i int) bool { return strings.ContainsAny(q.at(i), "0123456789") }

// possessive reports whether word i belongs to what follows it.
func (q asked) possessive(i int) bool {
	w := strings.ReplaceAll(strings.ToLower(strings.TrimRight(q[i], ",")), "’", "'")
	return strings.HasSuffix(w, "'s") || strings.HasSuffix(w, "s'")
}

// inside reports whether word i belongs to a phrase that word i-1 has begun.
func (q asked) inside(i int) bool {
	before := q.at(i - 1)
	return determiners[before] && before != "that" || prepositions[before] || conjunctions[before] || q.possessive(i-1) || digits(q.at(i-1)) && i > 1 && !q.number(i)
}

// digits reports whether a word is nothing but a number.
func digits(word string) bool { return word != "" && strings.Trim(word, "0123456789.,") == "" }

// opensObject reports whether word i may begin what follows a verb: the end does, too.
func (q asked) opensObject(i int) bool {
	w := q.at(i)
	return i >= len(q) || determiners[w] || prepositions[w] && w != "of" || pronouns[w] || relatives[w] || q.capital(i) || q.number(i) || strings.HasSuffix(w, "ly")
}

// verbAfter returns where the plain verb stands that belongs to a helper before word from,
// behind its subject; -1 where that is not sure.
func (q asked) verbAfter(from int) int {
	first, noun := -1, -1
	for i := from + 1; i < len(q); i++ {
		w := q.at(i)
		if relatives[w] && first < 0 && noun < 0 {
			return -1 // a clause within the subject
		}
		if q.inside(i) || q.capital(i) || strings.HasSuffix(q[i-1], ",") && !q.capital(i-1) {
			continue
		}
		if plainVerbs[w] && !nounVerbs[w] {
			first = i
			break
		}
		if nounVerbs[w] && noun < 0 && q.at(i+1) != "of" {
			noun = i
		}
	}
	switch {
	case noun < 0:
		return first
	case first < 0 || first > noun+1:
		for nounVerbs[q.at(noun+1)] && !q.opensObject(noun+1) && noun+1 < len(q) {
			noun++
		}
		if first >= 0 && !q.opensObject(noun+1) {
			for i := noun + 1; i < first; i++ {
				if q.opensObject(i) {
					return -1
				}
			}
			return first // "stress echocardiography induce"
		}
		if first >= 0 && prepositions[q.at(noun+1)] && q.at(noun+1) != "to" {
			return first
		}
		return noun
	}
	return first // "the tour begin"
}

// predicateAfter returns where what is said of a subject begins that stands from word from
// on, behind a form of "to be"; -1 where that is not sure.
func (q asked) predicateAfter(from int) int {
	if pronouns[q.at(from)] {
		return from + 1
	}
	strong, weak, others := -1, -1, 0
	for i := from + 1; i < len(q); i++ {
		w := q.at(i)
		if relatives[w] && strong < 0 && weak < 0 {
			return -1 // a clause within the subject
		}
		if q.inside(i) || strings.HasSuffix(q[i-1], ",") || q.at(i-1) == "being" {
			continue
		}
		switch {
		case w == "being" && i+1 < len(q):
			weak = i
			others++
		case strong < 0 && (predicates[w] || article(q[i]) && weak < 0):
			strong = i
		case strong < 0 && (verbs.isParticiple(w) || strings.HasSuffix(w, "ing") && len(w) > 5 && (i+1 == len(q) || q.opensObject(i+1))):
			if weak < 0 {
				weak = i
			}
			others++
		}
	}
	switch {
	case weak >= 0 && strong == weak+1 && others == 1: // "rebranded as"
		return weak
	case strong >= 0 && weak < 0:
		return strong
	case strong >= 0 && others == 1: // "blood obtained at birth related to weight"
		return strong
	case strong < 0 && others == 1:
		return weak
	}
	return -1
}

func article(word string) bool { return word == "a" || word == "an" || word == "the" }

// conjugated makes a statement's verb of a helper and a plain verb.
func conjugated(helper, base string) saying {
	switch helper {
	case "did":
		return saying{verb: pastOf(verbs, base), base: base, helper: "did"}
	case "does":
		return saying{verb: thirdOf(base), base: base, helper: "does"}
	}
	return saying{verb: base, base: base, helper: "do"}
}

// statementOfYesNo makes a statement of a question that is answered with yes or no.
func statementOfYesNo(question string) (saying, bool) {
	q := asked(strings.Fields(strings.TrimRight(question, " ?.")))
	const least = 4
	if len(q) < least || strings.ContainsAny(question, ":;") || strings.Contains(strings.TrimRight(question, " ?"), "?") || !q.capital(0) {
		return saying{}, false
	}
	if strings.Contains(question, " or ") && strings.Contains(question, "whether") {
		return saying{}, false
	}
	return q.declared()
}

// declared puts a question that begins with its helper as a statement; it is not ok where
// it does not begin so, or where its subject ends is not sure.
func (q asked) declared() (saying, bool) {
	first := q.at(0)
	switch {
	case helpers[first]:
		if v := q.verbAfter(1); v > 0 {
			s := conjugated(first, q.at(v))
			s.subject, s.rest = q.text(1, v), allegedly(q.text(v+1, len(q)))
			return moved(s), true
		}
	case modals[first]:
		if v := q.verbAfter(1); v > 0 {
			return moved(saying{subject: q.text(1, v), verb: first, rest: q.text(v, len(q))}), true
		}
	case beings[first]:
		switch q.at(1) {
		case "there", "it":
			return saying{subject: q.at(1), verb: first, rest: allegedly(q.text(2, len(q)))}, true
		}
		if p := q.predicateAfter(1); p > 0 && p < len(q) {
			return saying{subject: q.text(1, p), verb: first, rest: q.text(p, len(q))}, true
		}
	case havings[first]:
		for i := 2; i < len(q); i++ {
			if verbs.isParticiple(q.at(i)) && !q.inside(i) {
				return saying{subject: q.text(1, i), verb: first, rest: q.text(i, len(q))}, true
			}
		}
	}
	return saying{}, false
}

// allegedly has "any" as statements have it.
func allegedly(rest string) string {
	if after, ok := strings.CutPrefix(rest, "any "); ok {
		return "some " + after
	}
	return rest
}

// moved puts an adverb that ended up at the end of the subject before what follows.
func moved(s saying) saying {
	at := strings.LastIndexByte(s.subject, ' ')
	if at < 0 || !strings.HasSuffix(s.subject, "ly") || s.base == "" {
		if at > 0 && strings.HasSuffix(s.subject, "ly") {
			s.subject, s.rest = s.subject[:at], s.subject[at+1:]+" "+s.rest
		}
		return s
	}
	s.subject, s.verb, s.base = s.subject[:at], s.subject[at+1:]+" "+s.verb, s.subject[at+1:]+" "+s.base
	return s
}
