package local

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/sense"
	"github.com/assay-rag/assay/internal/surface"
)

// An aside is a follow-up that is no sentence: "And in Germany?", "What about the other
// one?". It asks the last question of something else.
type aside struct {
	whole string // as it was asked
	what  string // "in Germany", "the other one"
	lead  string // the preposition that it opens with, lower case; empty: none
}

var (
	asideLead  = regexp.MustCompile(`(?i)^(?:(?:ok(?:ay)?|thanks?|thank you|well|great)[,.!]? )?(?:(?:and|but|or|so|then|also)[, ]+)*(?:(?:and |so )?(?:what|how) (?:about|of)|(?:is (?:it|that|this) )?(?:the )?same\b|does the same (?:apply|hold|go)|is the same true)\b\s*(.+?)[?.! ]*$`)
	asideAnd   = regexp.MustCompile(`(?i)^(?:and|or|but)[, ]+(?:then )?(.+?)[?.! ]*$`)
	asideLeads = regexp.MustCompile(`(?i)^(in|on|at|for|with|from|to|by|under|during|after|before|since|via|without|of)\b`)
	clauseLead = regexp.MustCompile(`(?i)^(?:if|when|while|unless|once|until|because)\b`)
)

// maxAside is the length of an aside in words; what is longer is a question.
const maxAside = 8

// asideOf reads a follow-up as an aside; ok is false when it is none.
func asideOf(question string) (aside, bool) {
	a := aside{whole: question}
	if m := asideLead.FindStringSubmatch(question); m != nil {
		a.what = m[1]
	} else if m := asideAnd.FindStringSubmatch(question); m != nil && !asksItself(m[1]) {
		a.what = m[1]
	} else if asideLeads.MatchString(question) && !asksInside.MatchString(question) {
		a.what = strings.TrimRight(question, "?!. ")
	} else {
		return aside{}, false
	}
	if len(strings.Fields(a.what)) > maxAside && !clauseLead.MatchString(a.what) {
		return aside{}, false
	}
	if m := asideLeads.FindStringSubmatch(a.what); m != nil {
		a.lead = strings.ToLower(m[1])
	}
	return a, true
}

// asksInside matches what a sentence has that asks by itself.
var asksInside = regexp.MustCompile(`(?i)\b(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|should|will|would|must|has|have|am)\b`)

func asksItself(what string) bool {
	return asksInside.MatchString(what) && !clauseLead.MatchString(what) || opensAsking.MatchString(what)
}

// beside returns the last question, asked of what the aside names.
func (a aside) beside(before []turn) understanding {
	last := before[len(before)-1]
	question := strings.TrimRight(last.question, "?!. ")
	if other, ok := othersOf(a.what, before); ok {
		if other.name == "" || !strings.Contains(question, other.instead) || other.instead == "" {
			return understanding{open: a.what, means: other.of}
		}
		return understood(strings.Replace(question, other.instead, other.name, 1) + "?")
	}
	if r, ok := reference(a.what); ok {
		u := r.filled(a.what, before)
		if u.question != "" {
			u.question = strings.Replace(a.whole, a.what, strings.TrimRight(u.question, "?"), 1)
		}
		return u
	}
	if clauseLead.MatchString(a.what) {
		return understood(question + ", " + a.what + "?")
	}
	if a.lead != "" {
		if q := a.inPlaceOf(question); q != "" {
			return understood(q + "?")
		}
		return glued(last, a.whole)
	}
	if old := parallel(question, a.what); old != "" {
		return understood(strings.Replace(question, old, a.what, 1) + "?")
	}
	return glued(last, a.whole)
}

// otherReading returns the question that was asked back a few turns ago, with another of
// the readings that were offered: "and Heron?".
func (a aside) otherReading(before []turn) (understanding, bool) {
	for i := len(before) - 1; i >= max(0, len(before)-maxPairs); i-- {
		readings := sense.Offered(before[i].answer)
		if len(readings) == 0 || ordinal.MatchString(a.what) {
			continue
		}
		if r := chosen(a.what, readings); r != "" {
			if last := before[len(before)-1]; last.topic != "" {
				return understood(strings.ReplaceAll(last.question, last.topic, r)), true
			}
			return understood(meaning(before[i].question, r)), true
		}
	}
	return understanding{}, false
}

// phrased matches a preposition and the short phrase after it.
var phrased = regexp.MustCompile(`\b(in|on|at|for|with|from|to|by|under|during|after|before|since|via|without|of) ((?:(?:the|a|an|my|our|your) )?(?:\p{Lu}[\p{L}\p{N}._'’-]*(?: \p{Lu}[\p{L}\p{N}._'’-]*)*|[\p{L}\p{N}._'’-]+(?: [\p{L}\p{N}._'’-]+)?))`)

// inPlaceOf returns the question with the aside in the place of the phrase that has
// its preposition and form; where there is none and the aside says where or when, at
// its end. Empty: neither.
func (a aside) inPlaceOf(question string) string {
	object := strings.TrimSpace(a.what[len(a.lead):])
	var found [][]int
	for _, at := range phrased.FindAllStringSubmatchIndex(question, -1) {
		if strings.EqualFold(question[at[2]:at[3]], a.lead) && formOf(question[at[4]:at[5]]) == formOf(object) {
			found = append(found, at)
		}
	}
	if len(found) == 1 {
		at := found[0]
		end := at[5]
		if formOf(object) == formWord { // words in lower case: the phrase ends with the question, or is one word
			end = endOfPhrase(question, at[4], at[5])
		}
		return question[:at[0]] + a.what + question[end:]
	}
	if len(found) == 0 && whereWhen[a.lead] {
		return question + " " + a.what
	}
	return ""
}

// endOfPhrase returns where the phrase that begins at start ends, at most at end: before
// a small word.
func endOfPhrase(text string, start, end int) int {
	first, rest, two := strings.Cut(text[start:end], " ")
	if two && surface.Function(strings.ToLower(rest)) && !articles[strings.ToLower(first)] {
		return start + len(first)
	}
	return end
}

var whereWhen = wordsIn("in on at during after before since under")

// A form is what a phrase looks like.
type form int

const (
	formWord form = iota
	formName
	formCode
	formNumber
)

func formOf(phrase string) form {
	phrase = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(phrase, "the "), "a "), "an ")
	names := surface.Names("of " + phrase)
	switch {
	case len(surface.Numbers(phrase)) > 0 && len(names) == 0 && !strings.Contains(phrase, " "):
		return formNumber
	case len(names) != 1 || names[0] != phrase:
		return formWord
	case personal(names[0]):
		return formName
	}
	return formCode
}

// parallel returns what of a question an aside stands in the place of: the only thing
// of the same form, for a name or a number; for words a phrase with the same head, or
// the only bare word after a preposition for a bare word. Empty: that is not plain.
func parallel(question, what string) string {
	form := formOf(what)
	if form == formWord {
		return parallelWords(question, what)
	}
	var same []string
	if form == formNumber {
		for _, w := range surface.Words(question) {
			if len(surface.Numbers(w)) > 0 && formOf(w) == formNumber {
				same = append(same, w)
			}
		}
	}
	for _, n := range namesIn(question) {
		if formOf(n.text) == form {
			same = append(same, n.text)
		}
	}
	if len(same) == 1 {
		return same[0]
	}
	return ""
}

func parallelWords(question, what string) string {
	for _, p := range []string{phraseAt(subject(question)), headOf(subject(question)), withHeadOf(what, question)} {
		if p != "" && !strings.Contains(what, p) && sameHead(p, what) && strings.Contains(question, p) && strings.Count(what, " ") <= strings.Count(p, " ")+1 {
			return p
		}
	}
	if strings.Contains(what, " ") {
		return ""
	}
	var bare []string
	for _, m := range phrased.FindAllStringSubmatch(question, -1) {
		if word := m[2]; !strings.Contains(word, " ") && formOf(word) == formWord && strings.HasSuffix(word, "s") == strings.HasSuffix(what, "s") {
			bare = append(bare, word)
		}
	}
	if len(bare) == 1 && strings.Count(question, bare[0]) == 1 {
		return bare[0]
	}
	return ""
}

// headOf returns a phrase up to its first preposition.
func headOf(phrase string) string {
	words := strings.Fields(phrase)
	for i, w := range words {
		if i > 0 && prepositions[strings.ToLower(w)] {
			return strings.Join(words[:i], " ")
		}
	}
	return phrase
}

// withHeadOf returns the phrase of a question that ends in the last word of what, with
// its article where what has one; empty: there is none, or more than one.
func withHeadOf(what, question string) string {
	words := strings.Fields(question)
	at, n := -1, 0
	for i, w := range words {
		if sameHead(strings.TrimRight(w, ",;:"), what) {
			at, n = i, n+1
		}
	}
	if n != 1 {
		return ""
	}
	from := at
	for from > 0 && !surface.Function(strings.ToLower(words[from-1])) && !strings.ContainsFunc(words[from-1], unicode.IsPunct) {
		from--
	}
	if from > 0 && articles[strings.ToLower(words[from-1])] && articles[strings.ToLower(strings.Fields(what)[0])] {
		from--
	}
	return strings.TrimRight(strings.Join(words[from:at+1], " "), ",;:")
}

// An other is one of two things of which the last question is about the second.
type other struct {
	name, instead string
	of            []string // the two; nil: there are none
}

var (
	theOther  = regexp.MustCompile(`(?i)^(?:for |with |of |in )?(?:the )?other(?: one)?$`)
	theFormer = regexp.MustCompile(`(?i)^(?:for |with |of |in )?the (former|latter|first|second)(?: one)?$`)
	otherIn   = regexp.MustCompile(`(?i)\bthe (?:other|former|latter|first|second)(?: one)?\b`)
)

// othersOf returns what "the other one", "the former" and their like stand for; ok is
// false where what is none of these. An other without a name is not plain.
func othersOf(what string, before []turn) (other, bool) {
	if !theOther.MatchString(what) && !theFormer.MatchString(what) {
		return other{}, false
	}
	two, inLast := pairBefore(before)
	if len(two) != 2 {
		return other{of: two}, true
	}
	a, b, last := two[0], two[1], before[len(before)-1]
	open := other{of: two}
	if m := theFormer.FindStringSubmatch(what); m != nil {
		name, instead := a, b
		if w := strings.ToLower(m[1]); w == "latter" || w == "second" {
			name, instead = b, a
		}
		switch {
		case inLast: // the pair is in the question itself
			return open, true
		case (matter{text: last.question}).has(name): // it is asked of that one again
			return other{name, name, two}, true
		}
		return other{name, instead, two}, true
	}
	hasA, hasB := matter{text: last.question}.has(a), matter{text: last.question}.has(b)
	switch {
	case hasA && !hasB:
		return other{b, a, two}, true
	case hasB && !hasA:
		return other{a, b, two}, true
	}
	return open, true
}

// has reports whether a text has all words of a name.
func (t matter) has(name string) bool { return holdsName(stems("", t.text), name) }

// maxPairs is how many turns back two things that were spoken of are looked for.
const maxPairs = 4

// pairBefore returns the two things that the last turns spoke of side by side: in one
// question, in an answer's first sentence, in what was asked back, or in two questions
// that ask the same of each. With three they are all returned, and no pair; nil: there
// are none. InLast says that they stand in the last question itself.
func pairBefore(before []turn) (two []string, inLast bool) {
	for i := len(before) - 1; i >= max(0, len(before)-maxPairs); i-- {
		t := before[i]
		if a, b, ok := pairIn(t.question); ok {
			return []string{a, b}, i == len(before)-1
		}
		if r := sense.Offered(t.answer); len(r) > 1 {
			return r, false
		}
		if a, b, ok := pairIn("of " + t.answer); ok && len(t.answer) <= longest {
			return []string{a, b}, false
		}
		if i == 0 {
			break
		}
		if a, b, ok := asksSame(before[i-1].question, t.question); ok {
			two = []string{a, b}
			if i > 1 {
				if c, _, ok := asksSame(before[i-2].question, before[i-1].question); ok && c != a && c != b {
					two = append([]string{c}, two...)
				}
			}
			return two, false
		}
	}
	return nil, false
}

// maxAsked is the length, in words, of what two questions ask the same of.
const maxAsked = 4

// asksSame returns the only words in which two questions differ: what they ask the same
// of. To a word in lower case the noun after it belongs.
func asksSame(one, other string) (a, b string, ok bool) {
	x, y := strings.Fields(strings.TrimRight(one, "?!. ")), strings.Fields(strings.TrimRight(other, "?!. "))
	from := 0
	for from < min(len(x), len(y)) && strings.EqualFold(x[from], y[from]) {
		from++
	}
	tail := 0
	for tail < min(len(x), len(y))-from && strings.EqualFold(x[len(x)-1-tail], y[len(y)-1-tail]) {
		tail++
	}
	p, q := x[from:len(x)-tail], y[from:len(y)-tail]
	if from == 0 || len(p) == 0 || len(q) == 0 || len(p) > maxAsked || len(q) > maxAsked {
		return "", "", false
	}
	for tail > 0 && !startsUpper(p[len(p)-1]) && !surface.Function(strings.ToLower(x[len(x)-tail])) {
		tail--
		p, q = x[from:len(x)-tail], y[from:len(y)-tail]
	}
	a, b = strings.Join(p, " "), strings.Join(q, " ")
	return a, b, len(contentWords(a)) > 0 && len(contentWords(b)) > 0
}

// eitherOf returns a question in which "the former", "the second one" and their like stand
// for one of two things, with its name; ok is false where it has none of these.
func eitherOf(question string, before []turn) (u understanding, ok bool) {
	at := otherIn.FindStringIndex(question)
	if at == nil {
		return understanding{}, false
	}
	phrase := question[at[0]:at[1]]
	words := strings.Fields(strings.ToLower(phrase))
	one := words[len(words)-1] == "one"
	if next := wordAfter.FindStringSubmatch(question[at[1]:]); !one && next != nil && !surface.Function(strings.ToLower(next[1])) {
		return understanding{}, false // the first chapter
	}
	if _, _, two := pairIn(question); two {
		return understanding{}, false // one of what it names itself
	}
	two, _ := pairBefore(before)
	name := ""
	switch {
	case len(two) != 2:
	case words[1] == "former" || words[1] == "first":
		name = two[0]
	case words[1] == "latter" || words[1] == "second":
		name = two[1]
	default:
		o, _ := othersOf("the other one", before)
		name = o.name
	}
	if name != "" {
		return understood(question[:at[0]] + name + question[at[1]:]), true
	}
	if !one && words[1] != "former" && words[1] != "latter" {
		return understanding{}, false // "the first", of what it says next
	}
	return understanding{open: phrase, means: two}, true
}
