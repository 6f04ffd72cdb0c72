package eval

import (
	"regexp"
	"slices"
	"strings"
)

// withEnd makes a statement of a yes-or-no question from word k on, with what it ends on.
func (q asked) withEnd(k int, end string) (saying, bool) {
	s, ok := q[k:].declared()
	s.rest += " " + end
	return s, ok
}

// ofAdverb makes a statement of "when" and "where" questions, whose helper is word k.
func (q asked) ofAdverb(k int, word string, a answerText) (saying, bool) {
	end, ok := a.asTime()
	if word == "where" {
		end, ok = a.asPlace()
	}
	if !ok || strings.HasSuffix(q.text(0, len(q)), " from") || prepositions[q.at(len(q)-1)] {
		return saying{}, false
	}
	if word == "where" {
		for i := k; i < len(q); i++ {
			if motion[q.at(i)] {
				return saying{}, false
			}
		}
	}
	if s, ok := q.withEnd(k, end); ok {
		return s.timely(end), true
	}
	if beings[q.at(k)] && (article(q.at(k+1)) || q.ownedBy(k+1)) && len(q)-k < 8 && !verbs.isParticiple(q.at(len(q)-1)) && q.at(len(q)-1) != "subject" {
		for i := k + 2; i < len(q); i++ {
			if w := q.at(i); predicates[w] || verbs.isParticiple(w) || strings.HasSuffix(w, "ing") {
				return saying{}, false
			}
		}
		return saying{subject: q.text(k+1, len(q)), verb: q.at(k), rest: end}, true
	}
	return saying{}, false
}

var motion = wordsOf("go visit come travel move flee return fly walk migrate emigrate arrive send sent bring brought put moved come flow run ranked rank find get")

// ofPreposition makes a statement of "in what year did ...".
func (q asked) ofPreposition(p string, a answerText) (saying, bool) {
	k := 2
	for ; k < len(q) && !(helpers[q.at(k)] || beings[q.at(k)] || modals[q.at(k)] || havings[q.at(k)]); k++ {
	}
	if k == len(q) || prepositions[q.at(len(q)-1)] {
		return saying{}, false
	}
	b, ok := a.asNoun(q.text(2, k))
	if !ok {
		return saying{}, false
	}
	if prepositions[b.first()] {
		p = ""
	}
	end := strings.TrimSpace(p + " " + b.text)
	if s, ok := q.withEnd(k, end); ok {
		return s.timely(end), true
	}
	return saying{}, false
}

// timely has what a statement ends with said before it, where much stands between.
func (s saying) timely(end string) saying {
	rest := strings.TrimSuffix(s.rest, " "+end)
	const most = 7 // words
	if rest == s.rest || !standsBefore[strings.Fields(end)[0]] {
		return s
	}
	if s.end = end; len(strings.Fields(rest)) <= most {
		return s
	}
	return s.inFront(end)
}

// inFront has what a statement ends with said before it.
func (s saying) inFront(end string) saying {
	s.front, s.rest, s.end = strings.ToUpper(end[:1])+end[1:], strings.TrimSuffix(s.rest, " "+end), ""
	if !startsWithName(s.subject, answerText{}) {
		s.subject = strings.ToLower(s.subject[:1]) + s.subject[1:]
	}
	return s
}

// ofHow makes a statement of "how many", "how old", "how long" and of "how" that is
// answered with "by ...".
func (q asked) ofHow(a answerText) (saying, bool) {
	switch q.at(1) {
	case "many":
		return q.ofCount(a)
	case "old", "tall", "high", "deep", "wide", "long":
		size := a.text
		switch {
		case q.at(1) == "long" && helpers[q.at(2)]:
			v := q.verbAfter(3)
			if v < 0 || q.at(v) != "last" && q.at(v) != "take" || !a.counted || strings.Contains(q.text(v, len(q)), " for ") || q.at(3) == "it" {
				return saying{}, false
			}
			return q.withGap(2, v, v, a)
		case q.at(1) == "old" && a.digits:
			size += " years"
		case !a.counted || a.digits:
			return saying{}, false
		}
		if !beings[q.at(2)] {
			return saying{}, false
		}
		end := len(q)
		for i := 4; i < len(q); i++ {
			if w := q.at(i); w == "when" || w == "at" || w == "during" {
				end = i
				break
			}
		}
		for i := 3; i < end; i++ {
			if w := q.at(i); relatives[w] || verbs.isParticiple(w) || predicates[w] || prepositions[w] {
				return saying{}, false
			}
		}
		return saying{subject: q.text(3, end), verb: q.at(2), rest: size + " " + q.at(1) + " " + q.text(end, len(q))}, true
	case "far":
		if i := slices.Index(q, "from"); i > 3 && beings[q.at(2)] && a.counted {
			return saying{subject: q.text(3, i), verb: q.at(2), rest: a.text + " " + q.text(i, len(q))}, true
		}
	default:
		if means[a.first()] {
			return q.withEnd(1, a.text)
		}
	}
	return saying{}, false
}

var means = wordsOf("by through with via using")

// ofCount makes a statement of "how many".
func (q asked) ofCount(a answerText) (saying, bool) {
	k := 2
	for ; k < len(q) && q.finite(k) == ""; k++ {
		if relatives[q.at(k)] {
			return saying{}, false
		}
	}
	if k == len(q) || k == 2 || !a.counted || single.MatchString(a.text) || strings.Contains(a.text, "%") {
		return saying{}, false
	}
	noun := q.text(2, k)
	b := a
	if head, _, _ := strings.Cut(noun, " of "); !strings.Contains(strings.ToLower(a.text), strings.ToLower(lastWord(head))) {
		if !a.digits {
			return saying{}, false
		}
		b.text += " " + noun
	}
	b.plural, b.unsure = true, false
	if beings[q.at(k)] && q.at(k+1) == "there" {
		return saying{subject: "there", verb: q.at(k), rest: b.text + " " + q.text(k+2, len(q))}, true
	}
	if q.finite(k) == "be" && !verbs.isParticiple(q.at(k+1)) && !prepositions[q.at(k+1)] {
		return saying{}, false
	}
	return q.ofThing(k, b, "what")
}

var single = regexp.MustCompile(`(?i)^(one|1|a|an|single)\b`)

func lastWord(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return text
	}
	return strings.TrimSuffix(words[len(words)-1], "s")
}

// inPlace makes a statement of a question that asks where its answer stands: "The border
// was drawn by which power?"
func inPlace(q asked, a answerText) (saying, bool) {
	first := q.at(0)
	if asks[first] || beings[first] || helpers[first] || modals[first] || prepositions[first] && asks[q.at(1)] || a.unsure {
		return saying{}, false
	}
	const before, after = 3, 4
	for i := before; i < len(q); i++ {
		w := q.at(i)
		if w != "what" && w != "which" && w != "whom" {
			continue
		}
		if len(q)-i > after || strings.HasSuffix(q[i-1], ",") || q.at(i-1) == "of" && q.at(i+1) != "" || q.at(i-1) == "do" {
			return saying{}, false
		}
		for j := i + 1; j < len(q); j++ {
			if q.finite(j) != "" {
				return saying{}, false
			}
		}
		b := a
		if q.inside(i) && !prepositions[q.at(i-1)] && b.article() {
			_, b.text, _ = strings.Cut(b.text, " ")
		}
		rest := ""
		if prepositions[q.at(i+1)] {
			rest = q.text(i+1, len(q))
		} else if noun := q.text(i+1, len(q)); noun != "" {
			var ok bool
			if b, ok = a.asNoun(noun); !ok {
				return saying{}, false
			}
		}
		for k := 1; k < i; k++ {
			if kind := q.finite(k); kind != "" && kind != "help" && !q.inside(k) {
				s := saying{subject: q.text(0, k), verb: q[k], rest: q.text(k+1, i) + " " + b.text + " " + rest}
				switch kind {
				case "past":
					s.base, s.helper = verbs.ofPast[q.at(k)], "did"
				case "third":
					s.base, s.helper = verbs.ofThird[q.at(k)], "does"
				}
				return s, true
			}
		}
		return saying{}, false
	}
	return saying{}, false
}
