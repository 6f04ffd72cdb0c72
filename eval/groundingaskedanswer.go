package eval

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An answerText is a short answer, and how it may stand in a statement.
type answerText struct {
	text    string
	behind  string // the preposition that it stands behind in its text; empty: none
	name    bool   // of someone or something: it has a capital
	plural  bool
	unsure  bool // whether it is one thing or more
	digits  bool // nothing but a number
	counted bool // it begins with a number
}

// newAnswer reads an answer; it is not ok where it is too long to stand within a sentence.
func newAnswer(answer, text string) (answerText, bool) {
	answer = strings.TrimRight(strings.TrimSpace(answer), ".,; ")
	if n := len(strings.Fields(answer)); n == 0 || n > 12 || strings.ContainsAny(answer, ";:\n") || strings.Count(answer, `"`)%2 == 1 || strings.Count(answer, "(") != strings.Count(answer, ")") {
		return answerText{}, false
	}
	a := answerText{text: answer}
	if first, rest, more := strings.Cut(answer, " "); more && (article(strings.ToLower(first)) || ownWords[strings.ToLower(first)] || prepositions[strings.ToLower(first)]) {
		a.text = strings.TrimSpace(strings.ToLower(first) + " " + rest)
	}
	if clausal(asked(strings.Fields(a.text))) {
		return answerText{}, false
	}
	a.counted = numeral.MatchString(answer)
	a.digits = onlyNumber.MatchString(answer)
	if at := strings.Index(text, answer); at >= 0 {
		words := strings.Fields(text[max(0, at-40):at])
		if n := len(words); n > 0 && strings.HasSuffix(text[:at], " ") {
			if w := strings.ToLower(words[n-1]); article(w) && !a.article() && !a.counted && endsThere(text[at+len(answer):]) {
				a.text = w + " " + a.text
				words = words[:n-1]
			}
		}
		if n := len(words); n > 0 && standsBefore[strings.ToLower(words[n-1])] {
			a.behind = strings.ToLower(words[n-1])
		}
	}
	core := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(a.text, "the "), "a "), "an ")
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(core, `"'“`))
	a.name = unicode.IsUpper(r)
	a.count(core)
	return a, true
}

var ownWords = wordsOf("his her its their our my your these those this")

// clausal reports whether an answer is more, or less, than what a noun could stand for: it
// has a verb of its own, or is nothing but one.
func clausal(words asked) bool {
	for i := range words {
		w := words.at(i)
		if words.capital(i) {
			continue
		}
		if beings[w] || helpers[w] || modals[w] || w == "cannot" || i == 0 && verbs.ofThird[w] != "" && !nounVerbs[verbs.ofThird[w]] || verbs.ofPast[w] != "" && !verbs.isParticiple(w) {
			return true
		}
		if i == 0 && (verbs.isParticiple(w) || strings.HasSuffix(w, "ing")) && (len(words) == 1 || strings.HasSuffix(words.at(1), "ly")) {
			return true
		}
	}
	return false
}

// endsThere reports whether a phrase ends where a text goes on so.
func endsThere(after string) bool {
	if !strings.HasPrefix(after, " ") {
		return after == "" || strings.ContainsRune(",.;:)", rune(after[0]))
	}
	q := asked(strings.Fields(after[:min(len(after), 60)]))
	w := q.at(0)
	return w == "" || prepositions[w] || conjunctions[w] || relatives[w] || pronouns[w] || q.finite(0) != ""
}

// count finds whether an answer is one thing or more.
func (a *answerText) count(core string) {
	head := core
	for _, p := range []string{" of ", " in ", " for ", " from ", " with ", " to ", " on ", " that ", " which ", " at ", " by ", " between ", " around ", " ("} {
		head, _, _ = strings.Cut(head, p)
	}
	head = strings.Trim(head, `"'”., `)
	last := strings.ToLower(head[strings.LastIndexByte(head, ' ')+1:])
	ending := strings.HasSuffix(last, "s") && !strings.HasSuffix(last, "ss") && !strings.HasSuffix(last, "us") && !strings.HasSuffix(last, "is") || last == "people" || last == "children" || last == "men" || last == "women"
	switch {
	case (strings.HasPrefix(a.text, "a ") || strings.HasPrefix(a.text, "an ")) && !strings.Contains(head, ", "):
	case strings.Contains(head, " and ") || strings.Contains(head, ", "):
		a.plural, a.unsure = true, a.name && !strings.Contains(head, ", ")
	case ending:
		a.plural, a.unsure = true, a.name
	}
}

// standsBefore are prepositions that a time or place is said with.
var standsBefore = wordsOf("in on at during after before around near between under since until by")

var (
	numeral    = regexp.MustCompile(`(?i)^(?:(?:about|around|over|almost|nearly|approximately|up to|at least|more than|less than|some|just|only|the first|roughly) )*[$£€~]?(?:\d|(?:` + numberWords + `)\b)`)
	onlyNumber = regexp.MustCompile(`(?i)^(?:(?:about|around|over|almost|nearly|approximately|up to|at least|more than|less than|some|just|roughly) )*[\d.,–-]*\d ?(?:hundred|thousand|million|billion|trillion)?$|^(?:(?:about|around|over|almost|nearly|approximately|more than) )*(?:` +
		numberWords + `)(?:[ -](?:` + numberWords + `))*$`)
)

const numberWords = `one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion`

func (a answerText) first() string {
	w, _, _ := strings.Cut(strings.ToLower(a.text), " ")
	return w
}

func (a answerText) article() bool { return determiners[a.first()] }

// asNoun is the answer of which a question says what it is: "which city", "what kind of
// animal". It is not ok where it may be a part of the name of one only.
func (a answerText) asNoun(noun string) (answerText, bool) {
	words := strings.Fields(strings.ToLower(noun))
	if len(words) == 0 {
		return a, true
	}
	head := words[len(words)-1]
	for i, w := range words {
		switch {
		case w == "type" || w == "kind" || w == "sort" || w == "style" || w == "types" || w == "kinds" || w == "form" || w == "percentage" && !strings.Contains(a.text, "%") && !strings.Contains(a.text, "percent"):
			return a, a.article() && w != "percentage"
		case i > 0 && w == "of" && (words[i-1] == "percentage" || words[i-1] == "percent"):
			if len(words) == i+1 {
				return a, false
			}
			a.text += " of " + strings.Join(strings.Fields(noun)[i+1:], " ")
			a.plural, a.unsure = false, true
			return a, true
		}
	}
	switch head {
	case "name":
		a.text = "the name " + a.text
		return a, a.name
	case "century":
		if !strings.Contains(strings.ToLower(a.text), "centur") {
			a.text += " century"
		}
		if !a.article() && !prepositions[a.first()] {
			a.text = "the " + a.text
		}
		return a, true
	case "year", "decade", "month", "day", "date", "years", "decades":
		if decade.MatchString(a.text) && !a.article() {
			a.text = "the " + a.text
		}
		return a, true
	case "percentage", "percent", "age", "number", "amount", "direction", "way", "ways", "sense", "extent", "role", "rank", "ranking", "reason", "characteristic", "language":
		return a, head == "language" && a.name
	}
	return a, a.name || a.article() || a.plural || strings.Contains(strings.ToLower(a.text), strings.TrimSuffix(head, "s"))
}

var (
	decade   = regexp.MustCompile(`^(?:early |late |mid-?)?\d{3,4}s`)
	year     = regexp.MustCompile(`^(?:\d{3,4}(?:[-–]\d{2,4})?|\d{1,4} (?:BC|BCE|AD|CE)|AD \d+)$`)
	monthly  = regexp.MustCompile(`^(?:early |late |mid-)?(?:January|February|March|April|May|June|July|August|September|October|November|December)(?: of)?(?: \d{4})?$`)
	daily    = regexp.MustCompile(`^(?:(?:January|February|March|April|May|June|July|August|September|October|November|December) \d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?|\d{1,2}(?:st|nd|rd|th)? (?:January|February|March|April|May|June|July|August|September|October|November|December)(?:,? \d{4})?|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)$`)
	phase    = regexp.MustCompile(`^(?:the )?(?:(?:early|late|mid|mid-)[ -]?)?(?:\d{1,2}(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|\w+teenth|twentieth) (?:century|millennium)(?: BC| AD| BCE)?$`)
	timeHead = wordsOf("in on at during after before around near between since until by from when while about")
)

// asTime is the answer to "when" as a statement ends with it.
func (a answerText) asTime() (string, bool) {
	bare := strings.TrimPrefix(a.text, "the ")
	switch {
	case timeHead[a.first()], strings.HasSuffix(a.text, " ago"):
		return a.text, true
	case daily.MatchString(bare):
		return "on " + bare, true
	case decade.MatchString(bare), phase.MatchString(bare):
		return "in the " + bare, true
	case year.MatchString(bare), monthly.MatchString(bare):
		return "in " + bare, true
	case a.behind != "" && a.behind != "by" && a.behind != "between" && !a.digits:
		return a.behind + " " + a.text, true
	}
	return "", false
}

// asPlace is the answer to "where" as a statement ends with it.
func (a answerText) asPlace() (string, bool) {
	switch {
	case placeHead[a.first()]:
		return a.text, true
	case a.counted:
		return "", false
	case a.behind == "in" || a.behind == "on" || a.behind == "at" || a.behind == "near" || a.behind == "around":
		return a.behind + " " + a.text, true
	case a.name && !a.article() && !strings.Contains(a.text, "University") && !strings.Contains(a.text, "Street"):
		return "in " + a.text, true
	}
	return "", false
}

var placeHead = wordsOf("in on at near around between under outside inside along across within throughout above below behind")
