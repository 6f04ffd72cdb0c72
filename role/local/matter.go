package local

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/surface"
)

// A matter is what a turn is about.
type matter struct {
	text string
	sure bool // it is the thing, and not just words of it
}

// several is the text of a matter that could be several things.
const several = "\x00several"

// maxMatter is the length of a matter in words: what is longer is a question of its own.
const maxMatter = 12

// speaksOf reports whether a matter has a word, in any form.
func (t matter) speaksOf(word string) bool {
	want := stems("", word)
	for stem := range stems("", t.text) {
		if want[stem] {
			return true
		}
	}
	return false
}

// speaksOf reports whether a turn has a word, in any form.
func (t turn) speaksOf(word string) bool {
	return matter{text: t.question}.speaksOf(word) || matter{text: t.answer}.speaksOf(word)
}

// about returns what of a turn r refers to; ok is false when that is not plain.
func (t turn) about(r referral) (matter, bool) {
	answered := t.answeredWith()
	person := r.kind == toPerson || r.kind == toHis
	switch {
	case answered != "" && (!person && !asksOfWho.MatchString(t.question) || person && personal(answered)):
		return matter{answered, true}, true
	case r.kind == toPlace:
		return t.place()
	}
	names := namesIn(t.question)
	if person {
		names = slices.DeleteFunc(names, func(n nameAt) bool { return !personal(n.text) })
		if len(names) == 1 {
			return matter{names[0].text, true}, true
		}
		if len(names) > 1 {
			return matter{text: several}, false
		}
		return matter{}, false
	}
	if a, b, ok := pairIn(t.question); ok {
		if r.kind == toMany || r.kind == toOwner {
			return matter{a + " and " + b, true}, true
		}
		return matter{text: several}, false
	}
	phrase := subject(t.question)
	if phrase != "" && len(strings.Fields(phrase)) <= maxMatter {
		if r.kind == toOwner || r.kind == toMany { // of the population of Paris it is Paris that has an area
			if owner := lastOf(phrase); owner != "" {
				phrase = owner
			}
		}
		return matter{phrase, true}, true
	}
	core := slices.DeleteFunc(slices.Clone(names), func(n nameAt) bool { return n.governed })
	switch {
	case len(names) == 1:
		return matter{names[0].text, true}, true
	case len(core) == 1:
		return matter{core[0].text, true}, true
	case len(names) > 1:
		return matter{text: several}, false
	}
	gist := gistOf(t.question)
	return matter{text: gist}, gist != ""
}

// gistOf returns the words of a question from its first of content to its last, as far
// as a matter may be long.
func gistOf(question string) string {
	spans := sentence.Spans(question)
	if len(spans) == 0 {
		return ""
	}
	last := spans[len(spans)-1]
	fields := strings.Fields(strings.TrimRight(question[last.Start:last.End], "?!. "))
	asking := surface.Asking(question)
	idle := func(f string) bool {
		w := strings.ToLower(strings.Trim(f, `"'“”‘’().,;:!?`))
		return w == "" || surface.Function(w) || asking[w]
	}
	for len(fields) > 0 && idle(fields[0]) {
		fields = fields[1:]
	}
	fields = fields[:min(len(fields), maxMatter)]
	for len(fields) > 0 && idle(fields[len(fields)-1]) {
		fields = fields[:len(fields)-1]
	}
	return strings.Trim(strings.Join(fields, " "), ",;:()")
}

var asksOfWho = regexp.MustCompile(`(?i)^(?:and |so |but )?who(?:se|m)?\b`)

// place returns where the things of a turn are: what follows its one preposition of
// place.
func (t turn) place() (matter, bool) {
	found := placed.FindAllStringSubmatch(t.question, -1)
	if len(found) == 1 {
		return matter{found[0][1], true}, true
	}
	if names := namesIn(t.question); len(found) == 0 && len(names) == 1 && personal(names[0].text) {
		return matter{names[0].text, true}, true
	}
	return matter{text: several}, len(found) == 0 && false
}

var placed = regexp.MustCompile(`\b(?:in|at|to|of|from|near) ((?:the )?\p{Lu}[\p{L}'’.-]*(?: \p{Lu}[\p{L}'’.-]*)*)`)

// personal reports whether a name may be a person's, a place's or a company's: words
// with a capital and nothing else special.
func personal(name string) bool {
	for _, w := range strings.Fields(name) {
		first, size := utf8.DecodeRuneInString(w)
		if !unicode.IsUpper(first) || strings.ContainsFunc(w[size:], func(r rune) bool { return unicode.IsDigit(r) || r == '_' }) {
			return false
		}
		if strings.Contains(w[:len(w)-1], ".") && len(w) > 4 { // os.Open
			return false
		}
	}
	return name != ""
}

// answeredWith returns the one thing that an answer names in its first sentence and its
// question does not, where that is what was asked for: the sentence is that name, opens
// with it, or says that something is or was it. Empty: there is no such thing.
func (t turn) answeredWith() string {
	if !asksForName.MatchString(t.question) || refusal.MatchString(t.answer) {
		return ""
	}
	spans := sentence.Spans(citationMark.ReplaceAllString(t.answer, ""))
	text := citationMark.ReplaceAllString(t.answer, "")
	if len(spans) == 0 {
		return ""
	}
	first := strings.TrimRight(strings.TrimSpace(text[spans[0].Start:spans[0].End]), " .!")
	asked := stems("", t.question)
	var fresh []string
	// The first word of a sentence has a capital in any case: with a word before it
	// the form of the others counts as well.
	for _, n := range namesIn("is " + first) {
		if !holdsName(asked, n.text) {
			fresh = append(fresh, n.text)
		}
	}
	if len(fresh) != 1 {
		return ""
	}
	name := fresh[0]
	switch rest, ends := strings.CutSuffix(first, name); {
	case first == name, strings.HasPrefix(first, name+" "):
		return name
	case ends && complement.MatchString(rest):
		return name
	}
	return ""
}

var (
	asksForName = regexp.MustCompile(`(?i)^(?:and |so |but )?(?:who|whom|which|where|what (?:is|was|are|were) the|what(?:'s| is| was) (?:its|the name)|what [a-z]+ (?:is|was|are|were|did|does|has|had|do))\b`)
	complement  = regexp.MustCompile(`(?i)(?:^|\b(?:is|are|was|were|called|named|by|in|at|to))(?: the)? $`)
	refusal     = regexp.MustCompile(`(?i)\b(?:do not|don['’]t|cannot|can['’]t|unable to|could not|couldn['’]t|did not|no)\b.{0,40}\b(?:have|find|information|answer|know|provide|found)\b`)
)

// A nameAt is a name in a question.
type nameAt struct {
	text     string
	start    int
	governed bool // a preposition stands before it
}

var preposition = regexp.MustCompile(`(?i)\b(?:in|on|at|for|with|from|to|by|under|during|after|before|since|via|without|of|near|about|into|over|through|within|as) (?:the |a |an )?["“` + "`" + `]?$`)

// namesIn returns what a question names, where it stands. A name that a sentence opens
// with is not seen.
func namesIn(text string) []nameAt {
	var out []nameAt
	for _, name := range surface.Names(text) {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "'s"), "’s")
		at := strings.Index(text, name)
		if at < 0 || surface.Function(strings.ToLower(name)) || strings.HasPrefix(name, "I'") || strings.HasPrefix(name, "I’") {
			continue
		}
		out = append(out, nameAt{name, at, preposition.MatchString(text[:at])})
	}
	slices.SortStableFunc(out, func(a, b nameAt) int { return a.start - b.start })
	return slices.CompactFunc(out, func(b, a nameAt) bool { return b.start < a.start+len(a.text) })
}

var joinsTwo = regexp.MustCompile(`(?i)^["”` + "`" + `]?(?:,? (?:and|or|vs\.?|versus|than|nor) |, )(?:the |a |an )?["“` + "`" + `]?$`)

// pairIn returns the two things that a question holds side by side: two names that
// "and", "or", "than" joins, or what it compares.
func pairIn(question string) (a, b string, ok bool) {
	if parts := comparands(question); len(parts) == 2 && !strings.Contains(parts[0]+parts[1], "?") {
		return parts[0], parts[1], true
	}
	names := namesIn(question)
	if len(names) == 2 && joinsTwo.MatchString(question[names[0].start+len(names[0].text):names[1].start]) {
		return names[0].text, names[1].text, true
	}
	return "", "", false
}

// The forms of questions of which it is plain what they are about. Where a verb comes
// after it the phrase ends before that.
var (
	isWhat  = regexp.MustCompile(`(?i)^(?:and |so |but )?(?:what|who|which|where|when|why|how(?: (?:` + measure + `))?)(?:'s| is| are| was| were) (.+)$`)
	actsOn  = regexp.MustCompile(`(?i)\b(?:i|you|we) (?:also |still |even )?(?:(?:need|have|want|like|try|get) to )?(\p{L}+)(?: (?:up|off|on|out|down|in to|into|to|for|with|about))? (.+)$`)
	toDo    = regexp.MustCompile(`(?i)^(?:and |so |but )?(?:how|where|when) to (\p{L}+)(?: (?:up|off|on|out|down|into|to|for|with|about))? (.+)$`)
	whoActs = regexp.MustCompile(`(?i)^(?:and |so |but )?(?:who|what) (?:\p{L}+s|\p{L}+ed|wrote|made|built|won|led|ran|found|began) (?:to |for |in |on |with )?(.+)$`)
	tellOf  = regexp.MustCompile(`(?i)\b(?:tell (?:me|us)(?: more| something| a little| a bit)? about|(?:know|learn|ask|hear)(?: you)?(?: more| something)? about|explain|describe|help with|information (?:on|about)|define|summari[sz]e)(?: to me)? (.+)$`)
	doesIt  = regexp.MustCompile(`(?i)\b(?:does|do|did|can|could|will|would|should|must) ((?:the|a|an|my|our|your) .+)$`)
	isIt    = regexp.MustCompile(`(?i)^(?:and |so |but )?(?:is|are|was|were) ((?:the|a|an|my|our|your) .+)$`)
)

const measure = `long|large|big|small|old|young|far|fast|often|deep|high|tall|wide|heavy|much|many|expensive|good|safe|important|common`

// subject returns the phrase that a question is about, as it stands there; empty: that
// is not plain.
func subject(question string) string {
	q := strings.TrimRight(question, "?!. ")
	if m := toDo.FindStringSubmatch(q); m != nil && !helping[strings.ToLower(m[1])] {
		return phraseAt(m[2])
	}
	if m := actsOn.FindStringSubmatch(q); m != nil && !helping[strings.ToLower(m[1])] {
		return phraseAt(m[2])
	}
	if m := tellOf.FindStringSubmatch(q); m != nil {
		return phraseAt(m[1])
	}
	if m := isWhat.FindStringSubmatch(q); m != nil {
		return withoutVerb(wholePhrase(m[1]))
	}
	if m := whoActs.FindStringSubmatch(q); m != nil {
		return phraseAt(m[1])
	}
	if m := doesIt.FindStringSubmatch(q); m != nil {
		return upToVerb(m[1])
	}
	if m := isIt.FindStringSubmatch(q); m != nil {
		return upToVerb(m[1])
	}
	if !opensAsking.MatchString(q) && len(strings.Fields(q)) <= 5 && len(sentence.Spans(q)) == 1 && !pronoun.MatchString(q) && !speaks.MatchString(q) {
		return q // a key word
	}
	return ""
}

// speaks matches what a sentence has and a key word has not.
var speaks = regexp.MustCompile(`(?i)\b(?:i|me|my|we|you|is|are|was|were|do|does|did|have|has|can|will|would|should|want|need|please|tell|what|how|why|when|who|where|which)\b`)

var (
	helping      = wordsIn("am is are was were can could should will would may might must do did not")
	articles     = wordsIn("the a an my our your")
	links        = wordsIn("of")
	prepositions = wordsIn("of for in on at from with to by")
)

// phraseAt returns the noun phrase that a text opens with: determiners, words of
// content, and what "of" joins to them, up to any other small word or mark. A place or
// a setting with a name that follows at once belongs to it.
func phraseAt(text string) string { return phrase(text, links) }

// wholePhrase is phraseAt, with what any preposition joins to it.
func wholePhrase(text string) string { return phrase(text, prepositions) }

func phrase(text string, joins map[string]bool) string {
	fields := strings.Fields(text)
	n, last := 0, 0 // words taken; up to the last of content
	for n < len(fields) && n < maxMatter {
		raw := fields[n]
		word := strings.ToLower(strings.Trim(raw, `"'“”‘’().,;:!?`+"`"))
		named := n > 0 && prepositions[word] && n+1 < len(fields) && startsUpper(strings.TrimLeft(fields[n+1], `"“`+"`"))
		switch {
		case articles[word]:
			if n > 0 && !prepositions[strings.ToLower(fields[n-1])] {
				return strings.Join(fields[:last], " ")
			}
		case joins[word] && last > 0 || named && last > 0:
		case word == "" || surface.Function(word) && !(n > 0 && startsUpper(raw)) || strings.HasSuffix(word, "ly") && last > 0:
			return strings.Join(fields[:last], " ")
		default:
			last = n + 1
		}
		n++
		if last == n && strings.ContainsAny(raw[len(raw)-1:], ",;:.)") {
			fields[n-1] = strings.TrimRight(raw, ",;:.")
			break
		}
	}
	return strings.Join(fields[:last], " ")
}

func startsUpper(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsUpper(r)
}

// participle matches a verb at the end of a phrase ("the file stored", "the office
// located").
var participle = regexp.MustCompile(`(?i) (?:\p{L}+ed|set|kept|found|held|made|built|done|written|known|born|sold|paid|sent|used|open|due|available)$`)

func withoutVerb(phrase string) string {
	if strings.Count(phrase, " ") < 1 {
		return phrase
	}
	return participle.ReplaceAllString(phrase, "")
}

// upToVerb returns the phrase of "the warranty last", of which the last word is the
// verb, or says what the thing is; empty: there is no more than one word.
func upToVerb(text string) string {
	p := headOf(phraseAt(text))
	words := strings.Fields(p)
	for i, w := range words {
		if len(surface.Numbers(w)) > 0 && i > 1 {
			return strings.Join(words[:i], " ")
		}
	}
	rest := strings.Fields(strings.TrimPrefix(text, p))
	if len(rest) > 0 && verbs[strings.ToLower(rest[0])] {
		return p
	}
	if len(words) < 3 { // the article, the thing and its verb
		return ""
	}
	return strings.Join(words[:len(words)-1], " ")
}

// verbs are small words that follow what does something.
var verbs = wordsIn("need needs have has get gets make makes mean means happen want be been do show")

// lastOf returns the name that a phrase ends in after "of", "in" or "for"; empty: there
// is none.
func lastOf(phrase string) string {
	m := ownedBy.FindStringSubmatch(phrase)
	if m == nil {
		return ""
	}
	return m[1]
}

var ownedBy = regexp.MustCompile(` (?:of|in|for) ((?:the )?\p{Lu}[\p{L}\p{N}._'’-]*(?: \p{Lu}[\p{L}\p{N}._'’-]*)*)$`)

func wordsIn(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// sameHead reports whether two phrases end in the same word, in any form.
func sameHead(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	return analysis.Stem(x[len(x)-1], "") == analysis.Stem(y[len(y)-1], "")
}
