package ground

import (
	"regexp"
	"strings"
)

// Resolve returns each claim of an answer as it reads by itself: a pronoun that is its
// subject, "the latter", "the large one", "so does the Pro plan" and the answer that is no
// sentence ("30 days.") are replaced by what they stand for, which is looked for in the
// claims before it, the question, and last in the heading that what it cites stands under.
// What only says how sure the writer is ("I think that") goes. What it is not sure of stays
// as it is; so does every language but English. The claims come in the order in which they
// are shown.
func Resolve(question string, heading []string, claims []string) []string {
	r := resolver{question: readQuestion(question)}
	if r.subject = r.question.subject; r.subject == "" || pronominal(r.subject) {
		r.subject = topicIn(heading)
		r.plural = many(r.subject, "")
	} else {
		r.plural = many(r.subject, r.question.helper)
	}
	out := make([]string, len(claims))
	for i, c := range claims {
		out[i] = r.resolve(c)
		r.read(out[i])
	}
	return out
}

// A resolver knows what was said before.
type resolver struct {
	question asked
	before   said   // the claim before
	subject  string // what was spoken about last; empty: it is not known
	plural   bool
}

// A said is a claim as subject, verb and the rest.
type said struct{ subject, verb, rest string }

// readSaid takes a claim apart; ok when it has a subject that can be told.
func readSaid(claim string) (s said, ok bool) {
	at := verb.FindStringSubmatchIndex(claim)
	if at == nil {
		return said{}, false
	}
	s = said{subject: strings.TrimSpace(claim[:at[2]]), verb: claim[at[2]:at[3]], rest: strings.TrimSpace(claim[at[3]:])}
	s.subject = withoutAdverb.ReplaceAllString(s.subject, "")
	words := len(strings.Fields(s.subject))
	if words == 0 || words > maxSubjectWords || strings.ContainsAny(s.subject, ",;:()") || scoped(s.subject) || denied.MatchString(s.subject) || leadsIn.MatchString(s.subject) {
		return said{}, false
	}
	return s, true
}

// read keeps what a claim is about for those after it.
func (r *resolver) read(claim string) {
	s, ok := readSaid(claim)
	if !ok || pronominal(s.subject) {
		r.before = said{}
		if strings.Contains(claim, " ") {
			r.subject = "" // it spoke of something else
		}
		return
	}
	r.before, r.subject, r.plural = s, s.subject, many(s.subject, s.verb)
}

var (
	itself     = regexp.MustCompile(`^(?:(It|They|This|These|Those|That|He|She)|(Its|Their|His|Her))\b\s*`)
	pointed    = regexp.MustCompile(`^(This|That|These|Those|The said|Such an?) ([a-z]+)\b`)
	ofTwo      = regexp.MustCompile(`^The (latter|former|second|first)(?: one)?\b`)
	theOne     = regexp.MustCompile(`^(The|A|An) ([a-z]+) (ones?)\b`)
	both       = regexp.MustCompile(`^Both (are|were|have|can|may|must|will|should|do|[a-z]+)\b`)
	alsoDoes   = regexp.MustCompile(`(?i)^(?:and )?((?:the |an? |its |our |your )?[^,.;]{1,60}?) (is|are|was|were|does|do|did|has|have|can|may|must|will|should)( not|n't|n’t)?,? ?(?:too|as well|also|either)?\.?$`)
	soDoes     = regexp.MustCompile(`(?i)^(so|neither|nor) (?:is|are|was|were|does|do|did|has|have|can|may|must|will|should) ((?:the |an? |its |our |your )?[^,.;]{1,60}?)\.?$`)
	theSame    = regexp.MustCompile(`(?i)^the same (?:applies|goes|holds|is true|holds true|is the case|was true) (?:to|for|of|with) ([^,.;]{1,60}?)(?:,? (?:too|as well))?\.?$`)
	twoNames   = regexp.MustCompile(`^(?:Both |[Tt]he two [a-z]+ are |There are two [a-z ]+: )?(.{1,60}?) and (.{1,60}?)$`)
	personal   = regexp.MustCompile(`^(?:Dr\.? |Mrs?\.? |Ms\.? |Sir |Professor )?\p{Lu}[\p{L}'’.-]+(?: (?:\p{Lu}[\p{L}'’.-]+|van|von|de|der|dan|bin|al))*$`)
	pronounish = regexp.MustCompile(`(?i)^(?:it|they|he|she|we|you|i|this|that|these|those|its|their|his|her|there|one|both|some|others|such|which|who|what|the (?:latter|former|same|other|others|first|second)(?: one)?)(?:\s|$)`)
)

func pronominal(subject string) bool { return subject == "" || pronounish.MatchString(subject) }

// resolve returns a claim as it reads by itself.
func (r *resolver) resolve(claim string) string {
	mark := itemMark.FindString(claim)
	text := withoutSaidSo(claim[len(mark):])
	if full, ok := r.question.whole(text); ok {
		return full
	}
	if full, ok := r.elided(text); ok {
		return full
	}
	if full, ok := r.pointed(text); ok {
		return full
	}
	if text == claim[len(mark):] {
		return claim
	}
	return mark + text
}

// elided completes a claim that leaves out what the one before says: "The Pro plan does
// too."
func (r *resolver) elided(text string) (full string, ok bool) {
	if r.before.verb == "" {
		return "", false
	}
	if m := theSame.FindStringSubmatch(text); m != nil {
		return r.saying(m[1], false), true
	}
	if m := soDoes.FindStringSubmatch(text); m != nil {
		denies := negates(r.before)
		if so := strings.EqualFold(m[1], "so"); so == denies {
			return "", false
		}
		return r.saying(m[2], false), true
	}
	if m := alsoDoes.FindStringSubmatch(text); m != nil && !pronominal(m[1]) && (helpers[m[2]] || modals[m[2]]) && !strings.EqualFold(m[1], r.before.subject) {
		alike := kin(m[2], r.before.verb)
		if !alike || (m[3] != "") && negates(r.before) && !strings.Contains(text, "either") {
			return "", false
		}
		return r.saying(m[1], m[3] != "" && !negates(r.before)), true
	}
	return "", false
}

// kin reports whether a verb can stand for another: "does" for "costs", "is" for "was".
func kin(stand, verb string) bool {
	be := "is are was were"
	switch {
	case strings.Contains(be, stand):
		return strings.Contains(be, verb)
	case stand == "does" || stand == "do" || stand == "did":
		return !modals[verb] && !strings.Contains(be, verb) || strings.HasPrefix(verb, "do")
	case stand == "has" || stand == "have":
		return verb == "has" || verb == "have"
	}
	return stand == verb
}

func negates(s said) bool {
	return strings.HasPrefix(s.rest, "not ") || strings.HasSuffix(s.verb, "n't") || s.verb == "cannot" || strings.HasPrefix(s.rest, "never ")
}

// saying says of subject what the claim before says of its own, or denies it.
func (r *resolver) saying(subject string, not bool) string {
	verb := r.before.verb
	if p := many(subject, ""); p != r.plural && !helpers[verb] && !modals[verb] {
		verb = inNumber(verb, p)
	} else if p != r.plural {
		verb = map[string]string{"is": "are", "are": "is", "was": "were", "were": "was", "has": "have", "have": "has"}[verb]
		if verb == "" {
			verb = r.before.verb
		}
	}
	text := upperFirst(subject) + " " + verb
	if not {
		if helpers[verb] || modals[verb] {
			text += " not"
		} else {
			text = upperFirst(subject) + " " + doFor(verb) + " not " + baseOf(verb)
		}
	}
	return text + " " + r.before.rest
}

// pointed replaces what at the beginning of a claim points at something before it.
func (r *resolver) pointed(text string) (full string, ok bool) {
	if m := ofTwo.FindStringSubmatch(text); m != nil {
		if two := twoNames.FindStringSubmatch(r.pair()); two != nil {
			return upperFirst(two[map[string]int{"former": 1, "first": 1, "latter": 2, "second": 2}[m[1]]]) + text[len(m[0]):], true
		}
		return "", false
	}
	if m := theOne.FindStringSubmatch(text); m != nil && r.subject != "" {
		if noun := headNoun(r.subject); noun != "" && many(noun, "") == (m[3] == "ones") {
			return m[1] + " " + m[2] + " " + noun + text[len(m[0]):], true
		}
		return "", false
	}
	if both.MatchString(text) && strings.Contains(r.subject, " and ") {
		return "Both " + lowerFirst(r.subject) + text[len("Both"):], true
	}
	if m := pointed.FindStringSubmatch(text); m != nil && r.subject != "" && m[2] == strings.ToLower(headNoun(r.subject)) && headNoun(r.subject) != r.subject {
		return upperFirst(r.subject) + text[len(m[0]):], true
	}
	m := itself.FindStringSubmatch(text)
	if m == nil || r.subject == "" {
		return "", false
	}
	after := text[len(m[0]):]
	if m[2] != "" {
		if !r.fits(m[2]) || after == "" {
			return "", false
		}
		return upperFirst(genitive(r.subject)) + " " + after, true
	}
	if !r.fits(m[1]) || !finiteStart.MatchString(after) || clausal(m[1], after) {
		return "", false
	}
	return upperFirst(r.subject) + " " + after, true
}

// finiteStart begins what is said of a pronoun.
var finiteStart = regexp.MustCompile(`^(?:(?:also|then|usually|always|never|often|only|now|still|both|thus|again|typically|normally|therefore|later|first|finally|currently|already|soon|once|mainly|generally|mostly|immediately) )*(?:` + finite + `|[a-z]+s|[a-z]+ed)\b`)

// clausal reports whether "this", "that" or "it" speaks of a whole sentence, or of nothing.
func clausal(pronoun, after string) bool {
	if pronoun == "It" {
		return idleIt.MatchString(after)
	}
	return (pronoun == "This" || pronoun == "That") && meant.MatchString(after)
}

var (
	idleIt = regexp.MustCompile(`^(?:is|was|will be|would be|may be|might be|can be|has been|seems|appears|follows|happens|turns out) (?:not )?(?:also )?(?:\w+ly )?(?:that|to|for|possible|impossible|necessary|important|recommended|advisable|best|better|common|forbidden|allowed|permitted|prohibited|required|clear|likely|unlikely|true|said|known|only|an? (?:error|mistake)|the (?:responsibility|duty|case)|why|how|because|when|up to)\b|^(?:takes|costs|rains|depends)\b .*\bto\b`)
	meant  = regexp.MustCompile(`^(?:means|implies|ensures|prevents|allows|makes|happens|applies|is (?:because|why|how|when|where|so|true|the (?:case|reason))|was (?:because|why|so)|also|helps|lets|gives|causes|leads|includes|is done|can|may|will|does)\b`)
)

// fits reports whether what was spoken of last may be what a pronoun stands for.
func (r *resolver) fits(pronoun string) bool {
	person := personal.MatchString(r.subject) && !strings.HasPrefix(r.subject, "The ")
	switch pronoun {
	case "He", "She", "His", "Her":
		return person && !r.plural && len(strings.Fields(r.subject)) > 1
	case "They", "Their", "These", "Those":
		return r.plural
	}
	return !r.plural
}

// pair is the two things of which one was spoken about last.
func (r *resolver) pair() string {
	if strings.Count(r.subject, " and ") == 1 {
		return r.subject
	}
	if _, two, ok := strings.Cut(r.before.rest, ": "); ok && strings.Count(two, " and ") == 1 {
		return strings.TrimRight(two, ". ")
	}
	return ""
}

// topicIn is what a heading says a passage is about; empty where it is a sentence, a
// question or more than a few words.
func topicIn(heading []string) string {
	if len(heading) == 0 {
		return ""
	}
	last := strings.TrimSpace(heading[len(heading)-1])
	const most = 5 // words
	if n := len(strings.Fields(last)); n == 0 || n > most || strings.ContainsAny(last, "?!.:,;()&/>") || verb.MatchString(last) || generic.MatchString(last) || leadsIn.MatchString(last) || strings.Contains(last, " and ") {
		return ""
	}
	return last
}

var generic = regexp.MustCompile(`(?i)^(?:overview|introduction|summary|general|details|description|notes?|faq|history|background|about|usage|examples?|limits?|costs?|prices?|rules?|appendix.*|chapter.*|section.*|part .*|how .*|what .*|why .*|when .*)$`)
