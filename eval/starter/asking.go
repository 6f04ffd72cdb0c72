package starter

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// A clause is a statement split at its verb.
type clause struct {
	subject string // in the form used within a sentence
	person  bool   // the subject is a person
	vague   bool   // only the document's title tells it from others
	plural  bool
	verb    string
	rest    string
	names   *gathering // knows which words are names
}

// An asked is a question generated from a clause.
type asked struct {
	kind     string
	question string
	answer   string
	worth    float64
}

// ask turns the statements of a passage into questions.
func (g *gathering) ask(p Passage) []candidate {
	var made []candidate
	for _, s := range statements(p) {
		var of []asked
		if m := howTo.FindStringSubmatch(s.text); m != nil {
			of = append(of, g.how(m)...)
		} else if m := fronted.FindStringSubmatch(s.text); m != nil {
			if c, ok := g.clauseOf(upperFirst(m[2])); ok && !c.vague {
				of = c.when(m[1])
			}
		} else if c, ok := g.clauseOf(s.text); ok {
			if !c.vague && !c.plural {
				g.names = appendName(g.names, name{c.subject, c.person})
			}
			of = c.questions()
			if c.vague {
				of = within(slices.DeleteFunc(of, c.anaphoric), p.Title)
			}
		}
		for _, q := range of {
			if c, ok := candidateOf(q, p, s); ok && !g.seen[q.question] {
				g.seen[q.question] = true
				made = append(made, c)
			}
		}
	}
	return made
}

// anaphoric reports whether a question with a vague subject depends on an earlier antecedent that
// the document's title does not supply, as a definition of "the number" does.
func (c clause) anaphoric(q asked) bool {
	words := strings.Fields(c.subject)
	return q.kind == "definition" || q.kind == "thing" && words[0] == "the" || len(words) == 2 && anything[strings.ToLower(words[1])]
}

// anything lists nouns too general to identify their referent.
var anything = wordSet(`number value name result list set table text word item way case part type kind example process line field option element section
 argument parameter string form step thing object group level method reason problem purpose effect difference change answer question other rest`)

// within prefixes the questions with the title of their document. It returns nil if the title is
// unsuitable.
func within(of []asked, title string) []asked {
	title = strings.Join(strings.Fields(strings.ReplaceAll(title, "_", " ")), " ")
	if title == "" || len(title) > 60 || strings.ContainsAny(title, "/\\“”\"|:<>=") || strings.Contains(title, ".") || !wholeTitle.MatchString(title) || cutOff.MatchString(title) {
		return nil
	}
	for i, q := range of {
		of[i].question = "According to “" + title + "”, " + lowerFirst(q.question)
		of[i].worth -= 0.3
	}
	return of
}

// wholeTitle matches text that can be a title, as opposed to a line mistaken for one.
var wholeTitle = lazyregexp.New(`^\pL(?:.*[\pL\d)])?$`)

// cutOff matches an answer that begins or ends in the middle of a phrase.
var cutOff = lazyregexp.New(`^(?:of|and|or|than|as) |\b(?:based|used|using|called|known|located|made|given|defined|such|including|of|in|on|at|for|with|by|from|to|and|or|the|an?|that|which)$`)

// aslike matches a trailing "as well", "too" or "also", which refers to earlier text.
var aslike = lazyregexp.New(`,? (?:as well|too|also)\.?$`)

// candidateOf makes a case of a question. It reports false if the question or answer is malformed
// or too long.
func candidateOf(q asked, p Passage, s statement) (candidate, bool) {
	answer := strings.Trim(aslike.ReplaceAllString(q.answer, ""), " ,.")
	if cutOff.MatchString(answer) {
		return candidate{}, false
	}
	words := len(strings.Fields(q.question))
	if answer == "" || len(answer) > 160 || words < 4 || words > 26 || strings.Count(q.question, ",") > 2 || !balanced(q.question) || !balanced(answer) {
		return candidate{}, false
	}
	c := candidate{kind: q.kind, score: q.worth, words: contentWords(q.question)}
	if len(c.words) < 2 {
		return candidate{}, false
	}
	if words > 16 {
		c.score -= 0.2
	}
	c.Case = testset.Case{
		Question: q.question + "?", Answers: []string{answer},
		Gold:   []testset.Gold{{Document: p.document, Start: p.start + s.start, End: p.start + s.end, Quote: p.Text[s.start:s.end]}},
		Slices: map[string]string{"type": q.kind},
	}
	return c, true
}

// howTo matches instructions such as "To create a branch, use git branch."
var howTo = lazyregexp.New(`^To ([a-z]+) ([^,]{3,80}), ((?:use|run|call|set|add|press|click|open|enter|type|select|choose|write|create|specify|pass) .+)$`)

func (g *gathering) how(m []string) []asked {
	if !verbs().base[m[1]] {
		return nil
	}
	return []asked{{"way", "How do you " + m[1] + " " + m[2], m[3], 1}}
}

// Words that cannot begin a subject (noSubject) and words that cannot occur in one (noInSubject).
var (
	noSubject = wordSet(`there if when while whenever where although though because as in on at for with by from to after before since during what how who
 whose which why some many most each every all any one no none several few such note please only not using unlike like according given let use see
 under over between within without through throughout despite once until unless whether either neither more less much even just perhaps originally
 typically usually generally often sometimes currently initially eventually normally always never rather than depending based about around among
 along against across whatever both except per via of into onto upon off out up down beside besides beneath behind beyond near inside outside and or but so two three four five six seven eight nine ten suppose consider assume imagine`)
	noInSubject = wordSet(`who whom which that when where while if because but or nor as than is are was were be been being has have had do does did can could may
 might must shall should will would subsequent respective resulting corresponding aforementioned remaining additional certain various not also how what often always never sometimes usually generally typically already each all both
 approximately about`)
)

// clauseOf splits a statement at its verb. It reports false if the verb is not clear.
func (g *gathering) clauseOf(text string) (c clause, ok bool) {
	words := strings.Fields(text)
	at := slices.IndexFunc(words, g.isVerb)
	if at < 1 || at > 8 || at == len(words)-1 {
		return c, false
	}
	subject := words[:at]
	if noSubject[strings.ToLower(subject[0])] || strings.ContainsAny(strings.Join(subject, " "), ",()") {
		return c, false
	}
	for i, w := range subject {
		low := strings.ToLower(w)
		dependent := leaning[low] && (i == 0 || low != "first")
		adverb := strings.HasSuffix(low, "ly") && low != "family"
		secondVerb := verbs().third[low].base != "" && len(subject) > 2 && !plausible(low)
		if noInSubject[low] || dependent || adverb || secondVerb {
			return c, false
		}
	}
	if last := strings.ToLower(subject[at-1]); shortWords[last] || orders(subject) || at == 1 && len(subject[0]) == 1 {
		return c, false
	}
	c.subject, c.verb, c.rest = g.asInside(subject, words[at]), words[at], strings.Join(words[at+1:], " ")
	c.names = g
	c.person = g.isPerson(subject)
	c.vague = vague(subject)
	c.plural = c.verb == "are" || c.verb == "were" || c.verb == "have"
	return c, true
}

// orders reports whether words parsed as a subject contain an instruction, as in "Fix many
// problems" or "a flag to say".
func orders(words []string) bool {
	first := strings.ToLower(words[0])
	if len(words) > 1 && verbs().base[first] && wordSet("many all some the a an any each several more every")[strings.ToLower(words[1])] {
		return true
	}
	for i := 1; i+1 < len(words); i++ {
		if words[i] == "to" && verbs().base[words[i+1]] {
			return true
		}
	}
	return false
}

// plausible reports whether a word that could be a verb is more likely a noun.
func plausible(low string) bool {
	return wordSet("files records tests rules results forms functions names points documents orders lists processes changes uses links matches copies works states numbers types checks reports supports updates requests returns locks")[low]
}

var shortWords = wordSet("of in on at for with by from to and or the a an into onto upon")

// Verbs at which a statement is split: the auxiliaries here, and the known third-person forms.
var auxiliaries = wordSet("is are was were has have had can could may might must shall should will would")

func (g *gathering) isVerb(w string) bool {
	if auxiliaries[w] {
		return true
	}
	if _, third := verbs().third[w]; third {
		return !plausible(w)
	}
	v, past := verbs().past[w]
	return past && v.base != "cut" && v.base != "set" && v.base != "put"
}

// asInside returns the subject of a verb in the form used in the middle of a sentence.
func (g *gathering) asInside(words []string, verb string) string {
	first := words[0]
	rest := first[1:]
	switch {
	case first == "A" || first == "An" || first == "The":
		first = strings.ToLower(first)
	case strings.ToLower(rest) != rest, g.proper(first), strings.HasSuffix(first, "'s"), strings.HasSuffix(first, "’s"), people.MatchString(first): // a name
	case len(words) == 1 && strings.HasSuffix(first, "s") && (verb == "are" || verb == "were" || verb == "have"), len(words) > 1 && 'a' <= words[1][0] && words[1][0] <= 'z':
		first = lowerFirst(first)
	}
	return strings.Join(append([]string{first}, words[1:]...), " ")
}

// people matches adjectives of countries and peoples.
var people = lazyregexp.New(`(?:[a-z]{2}ean|[a-z]{2}ian|[a-z]can|[a-z]{2}ish|[a-z]{2}ese)$`)

func lowerFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(r)) + s[n:]
}

// vague reports whether a subject could be any instance of its kind, such as "the company" or "the
// value".
func vague(words []string) bool {
	for _, w := range words[1:] {
		if strings.IndexFunc(w, func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) }) >= 0 {
			return false
		}
	}
	first := strings.ToLower(words[0])
	return first == "the" || first == "a" && len(words) == 2
}

var articles = wordSet("A An The")

// noPerson lists words that occur in names of things but not of people.
var noPerson = wordSet(`the company university college school city river lake mount bank group team church party museum house street park act war battle
 committee council department ministry institute association society club league cup bowl county state island sea ocean bay valley canal palace castle tower
 bridge station airport hospital press times news show inc ltd corporation foundation project system server model protocol language database library center
 centre court order empire kingdom republic union treaty law theorem theory region north south east west upper lower new old san los saint st great broncos
 panthers army force division theatre theater award prize festival program programme`)

// isPerson reports whether a subject is a person's name: two or three capitalized words, none of
// which the documents also write in lower case or which noPerson lists.
func (g *gathering) isPerson(words []string) bool {
	if len(words) < 2 || len(words) > 3 {
		return false
	}
	for _, w := range words {
		r, _ := utf8.DecodeRuneInString(w)
		if !unicode.IsUpper(r) || strings.ContainsAny(w, "'’-") || articles[w] || g.small[strings.ToLower(w)] > 0 || noSubject[strings.ToLower(w)] || strings.ToUpper(w) == w && len(w) > 2 || noPerson[strings.ToLower(w)] || strings.IndexFunc(w, unicode.IsDigit) >= 0 {
			return false
		}
	}
	return true
}
