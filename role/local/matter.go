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
	text  string
	sure  bool     // it is the thing, and not just words of it
	means []string // of several: which
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

// about returns what of a turn r refers to; ok is false when that is not plain. "It" is
// nobody, and "they" are several or a name.
func (t turn) about(r referral) (matter, bool) {
	if r.person() {
		return t.somebody(r)
	}
	if t.topic != "" && r.kind != toPlace {
		return matter{text: t.topic, sure: true}, true
	}
	if answered := t.answeredWith(); answered != "" && !asksOfWho.MatchString(t.question) && !t.names(answered) {
		return matter{text: answered, sure: true}, true
	}
	if r.kind == toPlace {
		return t.place()
	}
	if a, b, ok := pairIn(t.question); ok {
		if r.kind == toMany || r.word == "their" {
			return matter{text: a + " and " + b, sure: true}, true
		}
		return matter{text: several, means: []string{a, b}}, false
	}
	phrase := subject(t.question)
	if t.isSomebody(phrase) {
		return t.named(r, true)
	}
	if r.kind == toOwner || r.kind == toMany { // of the population of Paris it is Paris that has an area
		if owner := lastOf(phrase); owner != "" && (r.word == "their" || !t.names(owner)) {
			phrase = owner
		}
	}
	if r.kind == toMany && !many(phrase) && !startsUpper(strings.TrimPrefix(phrase, "the ")) {
		if phrase = manyIn(t.question); phrase == "" {
			return t.named(r, true)
		}
	}
	if phrase != "" && len(strings.Fields(phrase)) <= maxMatter {
		return matter{text: phrase, sure: true}, true
	}
	return t.named(r, false)
}

// named returns what a turn's question names, or the words that it is about; with only,
// nothing but what it names.
func (t turn) named(r referral, only bool) (matter, bool) {
	names, people := namesIn(t.question), only
	if r.word != "their" {
		all := len(names)
		names = slices.DeleteFunc(names, func(n nameAt) bool { return t.names(n.text) })
		people = people || len(names) < all
	}
	core := slices.DeleteFunc(slices.Clone(names), func(n nameAt) bool { return n.governed })
	switch {
	case len(names) == 1:
		return matter{text: names[0].text, sure: true}, true
	case len(core) == 1:
		return matter{text: core[0].text, sure: true}, true
	case len(names) > 1 && actor.MatchString(t.question[:names[0].start]): // does Falcon support IPv6
		return matter{text: names[0].text, sure: true}, true
	case len(names) == 2:
		return matter{text: several, means: []string{names[0].text, names[1].text}}, false
	case len(names) > 2:
		return matter{text: several}, false
	case people:
		return matter{}, false
	}
	gist := gistOf(t.question)
	return matter{text: gist}, gist != ""
}

// actor matches what stands before the name of who or what does something.
var actor = regexp.MustCompile(`(?i)(?:^|\b(?:how|what|when|where|why|which|who|and|so|but|much|many|long|\p{L}+) )(?:does|do|did|can|could|will|would|should|must|has|have) (?:the )?$`)

// somebody returns who of a turn is "he" or "she": who was asked for comes before who was
// asked about, and nobody is both he and she.
func (t turn) somebody(r referral) (matter, bool) {
	fits := func(name string) bool {
		return personal(name) && !ofThing(t.question, name) && (t.calls[name] == "" || t.calls[name] == r.calls())
	}
	asked := slices.DeleteFunc(t.askedFor(), func(n string) bool { return !fits(n) })
	var names, known []string
	for _, n := range namesIn(t.question) {
		if fits(n.text) && !stands.MatchString(t.question[:n.start]) {
			if names = append(names, n.text); t.calls[n.text] != "" {
				known = append(known, n.text)
			}
		}
	}
	switch {
	case len(asked) > 1:
		return matter{text: several, means: asked}, false
	case len(asked) == 1 && t.calls[asked[0]] == "" && len(known) == 1: // who has been "she", or who was named now
		return matter{text: several, means: []string{asked[0], known[0]}}, false
	case len(asked) == 1:
		return matter{text: asked[0], sure: true}, true
	case len(known) == 1:
		return matter{text: known[0], sure: true}, true
	case len(names) == 1 && isWho.MatchString(t.question) && subject(t.question) == names[0]: // who is Ada Lovelace
		return matter{text: names[0], sure: true}, true
	case asksOfWho.MatchString(t.question) && t.answer != "" && !failed(t.answer):
		return matter{text: several}, false // somebody, and the answer does not make plain who
	case len(names) == 1:
		return matter{text: names[0], sure: true}, true
	case len(names) == 2:
		return matter{text: several, means: names}, false
	case len(names) > 2:
		return matter{text: several}, false
	}
	return matter{}, false
}

// stands matches what stands before the name of a place, not of a person.
var stands = regexp.MustCompile(`(?i)\b(?:in|at|near) $`)

// isSomebody reports whether a phrase is a person: who somebody is was asked, or it is a
// person's name.
func (t turn) isSomebody(phrase string) bool {
	return isWho.MatchString(t.question) && !startsUpper(strings.TrimPrefix(phrase, "the ")) || t.names(phrase)
}

var isWho = regexp.MustCompile(`(?i)^(?:and |so |but )?who(?:'s| is| are| was| were)\b`)

// names reports whether a turn speaks of a name as that of a person.
func (t turn) names(name string) bool {
	if t.calls[name] != "" {
		return true
	}
	if !personal(name) || strings.ToUpper(name) == name || ofThing(t.question+" "+t.answer, name) {
		return false
	}
	words := strings.Fields(name)
	if organised[strings.ToLower(words[len(words)-1])] {
		return false
	}
	does := `(?i:\b(?:who(?:'s| is| was)|deputy of|boss of|wife of|husband of|successor of|predecessor of)) N\b|\bN(?:'s (?:boss|deputy|wife|husband|salary|birthday|job|successor|predecessor)|,? who|(?: was| were)? born| died)\b|\bwas N born\b`
	if len(words) > 1 {
		does += `|\b(?:led|managed|approved|signed|founded|written|headed|invented|directed|chaired) by N\b|\b(?:do|does|did) N (?:work|report|live|manage|lead|earn|sit|sign|approve|write|study|join)\b` +
			`|\bN (?:works|reports|lives|manages|leads|led|earns|sits|signs|approves|wrote|studied|joined|founded)\b`
	}
	return regexp.MustCompile(strings.ReplaceAll(does, "N", regexp.QuoteMeta(name))).MatchString(t.question+" "+t.answer) ||
		asksOfWho.MatchString(t.question) && slices.Contains(t.askedFor(), name)
}

// organised are words that names of what is no person end in.
var organised = wordsIn(`office team gateway policy handbook network networks system systems inc ltd gmbh ag corp corporation company group
university college school bank cloud court department ministry council institute service services agency program project union party church
museum city county state river lake street islands island republic kingdom`)

// ofThing reports whether a name stands before the word for a thing, "the Malmö office".
func ofThing(text, name string) bool {
	_, rest, ok := strings.Cut(text, "the "+name)
	if !ok {
		return false
	}
	m := wordAfter.FindStringSubmatch(rest)
	return m != nil && !startsUpper(m[1]) && !surface.Function(m[1])
}

// groups are words for several people that are one.
var groups = wordsIn(`people children men women staff police team company government committee board department family agency organisation organization
vendor supplier bank university school group council court firm union club band`)

// many reports whether a phrase is of several things, by its head.
func many(phrase string) bool {
	words := strings.Fields(strings.ToLower(withoutVerb(headOf(phrase))))
	if len(words) == 0 {
		return false
	}
	w := words[len(words)-1]
	return groups[w] || len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is")
}

var severalThings = regexp.MustCompile(`(?i)\b(the|its|his|her|their|my|our|your|these|those) ((?:\p{L}+ )??\p{L}{3,}s)\b`)

// manyIn returns the only things that a question names in the plural after a small word
// that points at them, with the name of whose they are: "Heron's logs" of "Where does
// Heron write its logs?". Empty: there are none, or several.
func manyIn(question string) string {
	var found []string
	for _, m := range severalThings.FindAllStringSubmatch(question, -1) {
		words := strings.Fields(strings.ToLower(m[2]))
		if !many(m[2]) || surface.Function(words[0]) || surface.Function(words[len(words)-1]) {
			continue
		}
		switch whose := strings.ToLower(m[1]); whose {
		case "its", "his", "her", "their":
			names := namesIn(question)
			if len(names) != 1 {
				return ""
			}
			found = append(found, owners(names[0].text)+" "+m[2])
		default:
			found = append(found, m[0])
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// gistOf returns the words of a question from its first of content to its last, as far
// as a matter may be long.
func gistOf(question string) string {
	if m := inBrackets.FindStringSubmatch(question); m != nil {
		return m[1] // what a follow-up before was understood to be about
	}
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

var inBrackets = regexp.MustCompile(`\(([^()]+)\)\?$`)

var asksOfWho = regexp.MustCompile(`(?i)^(?:and |so |but )?(?:to |with |by |for |from |of )?who(?:se|m)?\b`)

// place returns where the things of a turn are: what follows its one preposition of
// place.
func (t turn) place() (matter, bool) {
	found := placed.FindAllStringSubmatch(t.question, -1)
	if len(found) == 1 {
		return matter{text: found[0][1], sure: true}, true
	}
	if names := namesIn(t.question); len(found) == 0 && len(names) == 1 && personal(names[0].text) {
		return matter{text: names[0].text, sure: true}, true
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

// answeredWith returns the one thing that an answer names and its question does not,
// where that is what was asked for; empty: there is no such thing.
func (t turn) answeredWith() string {
	if asked := t.askedFor(); len(asked) == 1 {
		return asked[0]
	}
	return ""
}

// askedFor returns what an answer names where its question asks for a name: in the
// sentence that speaks most of what was asked, what that opens with, or says that
// something is or was. Of other questions than for somebody or a place it is the only
// name in there. A thing that has a name before it comes with its word: "the Hamburg
// office".
func (t turn) askedFor() []string {
	if !asksForName.MatchString(t.question) || failed(t.answer) {
		return nil
	}
	said := t.answering()
	asked := stems("", t.question)
	who, where := asksOfWho.MatchString(t.question), asksWhere.MatchString(t.question)
	fresh, n := []string{}, 0
	// The first word of a sentence has a capital in any case: with a word before it
	// the form of the others counts as well.
	for _, name := range namesIn("is " + said) {
		if holdsName(asked, name.text) {
			continue
		}
		n++
		before, after, ok := strings.Cut(said, name.text)
		if !ok || who && ofThing(said, name.text) || len(surface.Numbers(name.text)) > 0 {
			continue
		}
		text := name.text
		if m := wordAfter.FindStringSubmatch(after); m != nil && after == m[0] && strings.HasSuffix(before, "the ") && !surface.Function(m[1]) && !startsUpper(m[1]) {
			text, before, after = "the "+name.text+m[0], strings.TrimSuffix(before, "the "), ""
		}
		if k := len(fresh); k > 0 && strings.HasSuffix(before, fresh[k-1]+" and ") {
			fresh = append(fresh, text)
			continue
		}
		opens := before == "" && !where && (after == "" || strings.HasPrefix(after, " "))
		ends := complement.MatchString(before) && (after == "" || (who || where) && apposed.MatchString(after))
		if opens || ends && (!where || before == "" || inPlace.MatchString(before)) {
			fresh = append(fresh, text)
		}
	}
	if !who && !where && n > 1 {
		return nil
	}
	return fresh
}

// answering returns the sentence of an answer that has most of the words of content of
// the question, names apart, without its end and citations: the first of several.
func (t turn) answering() string {
	text := citationMark.ReplaceAllString(t.answer, "")
	asked := map[string]bool{}
	for _, w := range contentWords(t.question) {
		for stem := range stems("", w) {
			asked[stem] = true
		}
	}
	var named []string
	for _, n := range namesIn(t.question) {
		named = append(named, n.text)
	}
	names := stems("", strings.Join(named, " "))
	best, most := "", -1
	for _, sp := range sentence.Spans(text) {
		said, n := text[sp.Start:sp.End], 0
		for stem := range stems("", said) {
			switch {
			case asked[stem] && names[stem]:
				n++
			case asked[stem]:
				n += len(asked) + 1
			}
		}
		if n > most {
			best, most = said, n
		}
	}
	return strings.TrimRight(strings.TrimSpace(best), " .!")
}

var (
	asksForName = regexp.MustCompile(`(?i)^(?:and |so |but )?(?:(?:to |with |by |for |from |of )?whom?|which|where|what (?:is|was|are|were) the|what(?:'s| is| was) (?:its|the name)|what [a-z]+ (?:is|was|are|were|did|does|has|had|do))\b`)
	complement  = regexp.MustCompile(`(?i)(?:^|\b(?:is|are|was|were|called|named|by|in|at|to))(?: the)? $`)
	asksWhere   = regexp.MustCompile(`(?i)^(?:and |so |but )?where\b`)
	apposed     = regexp.MustCompile(`^(?:,| who\b| since\b| and\b)`)
	inPlace     = regexp.MustCompile(`(?i)\b(?:in|at|near|to|from|is|are|was|were)(?: the)? $`)
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
	whoActs = regexp.MustCompile(`(?i)^(?:and |so |but )?(?:who|what) (\p{L}+s|\p{L}+ed|wrote|made|built|won|led|ran|found|began) (?:to |for |in |on |with )?(.+)$`)
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
	if m := whoActs.FindStringSubmatch(q); m != nil && !asksWith[strings.ToLower(m[1])] {
		return phraseAt(m[2])
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
	asksWith     = wordsIn("does has is was")
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
