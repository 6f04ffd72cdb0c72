package ground

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// many reports whether a subject is more than one thing, as far as its words and its verb
// say that.
func many(subject, verb string) bool {
	switch {
	case verb == "are" || verb == "were" || verb == "have" || verb == "do" || bareVerbs[verb]:
		return true
	case verb == "is" || verb == "was" || verb == "has" || verb == "does":
		return false
	case verb != "" && !modals[verb] && strings.HasSuffix(verb, "s"):
		return false
	case strings.Contains(subject, " and "):
		return true
	case singular.MatchString(subject):
		return false
	}
	noun := headNoun(subject)
	return strings.HasSuffix(noun, "s") && !strings.HasSuffix(noun, "ss") && !strings.HasSuffix(noun, "us") && !strings.HasSuffix(noun, "is") || irregularPlural[strings.ToLower(noun)]
}

var (
	singular        = regexp.MustCompile(`^(?i:an?|every|each|this|that|one)\b`)
	irregularPlural = wordSet("people children men women mice feet teeth data employees staff police")
	ofPhrase        = regexp.MustCompile(` (?:of|in|on|for|from|at|with|to|by|under|over|between|within|without|during|after|before|near|that|which|who) .*$`)
)

// headNoun is the last word of a subject before what is put behind it.
func headNoun(subject string) string {
	words := strings.Fields(ofPhrase.ReplaceAllString(subject, ""))
	if len(words) == 0 {
		return ""
	}
	return strings.Trim(words[len(words)-1], `"'“”`)
}

// genitive says that something is of a subject: "the plan's", "the plans'".
func genitive(subject string) string {
	if strings.HasSuffix(subject, "s") && many(subject, "") {
		return subject + "'"
	}
	return subject + "'s"
}

// lowerFirst begins a text with a small letter, unless its first word is a name or no word.
func lowerFirst(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if !lowered[strings.ToLower(strings.TrimRight(word, ",."))] {
		return text
	}
	r, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(r)) + text[size:]
}

// lowered are words that begin with a capital only where a sentence begins.
var lowered = wordSet(`the a an this that these those its their his her our your my every each all any no some most many few both either neither one two three four five six seven
	eight nine ten eleven twelve twenty thirty forty fifty sixty seventy eighty ninety half about around roughly approximately up at in on by from until since after before between under
	over for to with without during within once twice never always only because due more less fewer you they it there none nobody everybody everyone near behind outside inside`)

// baseOf is the infinitive of a verb in the third person or the past.
func baseOf(verb string) string {
	if base := presents[verb]; base != "" {
		return base
	}
	switch {
	case verb == "has" || verb == "had":
		return "have"
	case verb == "does" || verb == "goes":
		return strings.TrimSuffix(verb, "es")
	case strings.HasSuffix(verb, "ies"):
		return strings.TrimSuffix(verb, "ies") + "y"
	case strings.HasSuffix(verb, "sses"), strings.HasSuffix(verb, "shes"), strings.HasSuffix(verb, "ches"), strings.HasSuffix(verb, "xes"):
		return strings.TrimSuffix(verb, "es")
	case strings.HasSuffix(verb, "s"):
		return strings.TrimSuffix(verb, "s")
	case strings.HasSuffix(verb, "ied"):
		return strings.TrimSuffix(verb, "ied") + "y"
	case strings.HasSuffix(verb, "ed") && baseVerb.MatchString(strings.TrimSuffix(verb, "d")):
		return strings.TrimSuffix(verb, "d")
	case strings.HasSuffix(verb, "ed"):
		return strings.TrimSuffix(verb, "ed")
	}
	return verb
}

// doFor is the form of "do" that helps a verb.
func doFor(verb string) string {
	switch {
	case bareVerbs[verb]:
		return "do"
	case strings.HasSuffix(verb, "s"):
		return "does"
	}
	return "did"
}

// inNumber puts a verb in the present for one subject or for several.
func inNumber(verb string, plural bool) string {
	switch {
	case plural && strings.HasSuffix(verb, "s"):
		return baseOf(verb)
	case !plural && bareVerbs[verb]:
		return inflected(verb, "does")
	}
	return verb
}

// inflected is an infinitive as "do", "does" or "did" would have it.
func inflected(base, helper string) string {
	switch {
	case helper == "do":
		return base
	case helper == "did":
		if past := pasts[base]; past != "" {
			return past
		}
		if strings.HasSuffix(base, "e") {
			return base + "d"
		}
		if n := len(base); n > 1 && base[n-1] == 'y' && !strings.ContainsRune("aeiou", rune(base[n-2])) {
			return base[:n-1] + "ied"
		}
		return base + "ed"
	case base == "have":
		return "has"
	case base == "do" || base == "go" || strings.HasSuffix(base, "ss") || strings.HasSuffix(base, "sh") || strings.HasSuffix(base, "ch") || strings.HasSuffix(base, "x"):
		return base + "es"
	}
	if n := len(base); n > 1 && base[n-1] == 'y' && !strings.ContainsRune("aeiou", rune(base[n-2])) {
		return base[:n-1] + "ies"
	}
	return base + "s"
}

var pasts = map[string]string{
	"begin": "began", "become": "became", "bring": "brought", "build": "built", "buy": "bought", "choose": "chose", "come": "came", "cost": "cost", "cut": "cut", "do": "did",
	"drive": "drove", "eat": "ate", "fall": "fell", "find": "found", "fly": "flew", "get": "got", "give": "gave", "go": "went", "grow": "grew", "have": "had", "hold": "held",
	"keep": "kept", "know": "knew", "leave": "left", "lend": "lent", "lose": "lost", "make": "made", "mean": "meant", "meet": "met", "pay": "paid", "put": "put", "read": "read",
	"ride": "rode", "rise": "rose", "run": "ran", "say": "said", "see": "saw", "sell": "sold", "send": "sent", "set": "set", "sleep": "slept", "speak": "spoke", "spend": "spent",
	"stand": "stood", "take": "took", "tell": "told", "wear": "wore", "win": "won", "withdraw": "withdrew", "write": "wrote", "drop": "dropped", "stop": "stopped", "occur": "occurred",
}

var presents = func() map[string]string {
	bases := map[string]string{}
	for base, past := range pasts {
		bases[past] = base
	}
	return bases
}()
