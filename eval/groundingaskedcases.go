package eval

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/surface"
)

// A question of a set with its short answer, and the text that gives it.
type askedSeed struct {
	question, answer string
	text             *seedText
	yesNo            bool // the answer is yes or no
}

// askedCases makes cases of the questions of a set: statements in the words of those that
// asked, who had not the words of the text at hand.
func (e *editor) askedCases() []GroundingCase {
	var out []GroundingCase
	said := map[*seedText][]string{} // what was stated of a text before
	for i, d := range e.set.asked {
		e.random, e.original = rand.New(rand.NewPCG(11, hashed(d.question+d.answer))), seed{claim: d.question, text: d.text}
		var list []edit
		if d.yesNo {
			list = e.yesNoEdits(d)
		} else {
			list = e.askedEdits(d, said)
		}
		for j, x := range list {
			if x.evidence == nil {
				x.evidence = d.text.sentences
			}
			out = append(out, GroundingCase{
				ID: fmt.Sprintf("%s/asked %d/%d", e.set.name, i, j), Claim: x.claim, Evidence: x.evidence, Verdict: x.verdict, Edits: []string{x.kind},
			})
		}
	}
	return out
}

// yesNoEdits are the statement that a question asks about, and that it is not so.
func (e *editor) yesNoEdits(d askedSeed) []edit {
	s, ok := statementOfYesNo(d.question)
	if !ok {
		return nil
	}
	right, wrong := s.affirmed(), s.denied()
	if d.answer == "no" {
		right, wrong = wrong, right
	}
	out := []edit{
		{kind: "asked: yes or no", claim: right, verdict: assay.Supported},
		{kind: "asked: the other of yes and no", claim: wrong, verdict: assay.Contradicted},
	}
	if text, n := alike.swap(e.random, right, 2); n > 0 {
		out = append(out, edit{kind: "asked: yes or no, other words", claim: text, verdict: assay.Supported})
	}
	e.original.claim = right
	for _, x := range e.elsewhere() {
		if x.kind == "other text" {
			x.kind = "asked: other text"
			out = append(out, x)
		}
	}
	return out
}

// askedEdits are the statement of a question and its answer, in several ways, and ones
// with another answer.
func (e *editor) askedEdits(d askedSeed, said map[*seedText][]string) []edit {
	text := d.text.String()
	s, ok := statementOf(d.question, d.answer, text)
	if !ok {
		return nil
	}
	claim := s.affirmed()
	var out []edit
	put := func(kind, text string, v assay.Verdict) {
		if text != "" && text != claim && !slices.ContainsFunc(out, func(x edit) bool { return x.claim == text }) {
			out = append(out, edit{kind: "asked" + kind, claim: text, verdict: v})
		}
	}
	out = append(out, edit{kind: "asked", claim: claim, verdict: assay.Supported})
	other, n := alike.swap(e.random, claim, 2)
	if n > 0 {
		put(", other words", other, assay.Supported)
	}
	turned := s.turned(e.random)
	put(", turned", turned, assay.Supported)
	wrong := e.wrongAnswers(d, s, text)
	for _, w := range wrong {
		put(w.kind, w.claim, assay.Contradicted)
	}
	if e.random.IntN(3) == 0 {
		put(", denied", s.denied(), assay.Contradicted)
	}
	if e.random.IntN(2) == 0 {
		put(", sides exchanged", s.exchanged(), assay.Contradicted)
	}
	if before := said[d.text]; len(before) > 0 {
		first := before[e.random.IntN(len(before))]
		put(", two", first+" "+claim, assay.Supported)
		if len(wrong) > 0 && e.random.IntN(2) == 0 {
			put(", two, one wrong", first+" "+wrong[0].claim, assay.Contradicted)
		}
	}
	said[d.text] = append(said[d.text], claim)
	e.original.claim = claim
	for _, x := range e.elsewhere() {
		if x.kind == "sentence left out" && !strings.Contains(strings.Join(x.evidence, " "), d.answer) {
			x.kind = "asked, sentence left out"
			out = append(out, x)
		}
	}
	if sibling := e.sibling(d); sibling != nil && e.random.IntN(2) == 0 {
		out = append(out, edit{kind: "asked, sibling", claim: claim, verdict: assay.Unsupported, evidence: sibling.sentences})
	}
	return out
}

// turned says a statement in another order: what was said last first, the two sides of an
// "is" exchanged, or with its verb in the passive; empty where none can be.
func (s saying) turned(random *rand.Rand) string {
	var out []string
	if s.end != "" && s.front == "" {
		out = append(out, s.inFront(s.end).affirmed())
	}
	if p, ok := s.passive(); ok {
		out = append(out, p.affirmed())
	}
	if s.equal && s.front == "" && !strings.Contains(s.rest, " that ") {
		t := s
		t.subject, t.rest = s.rest, lowered(s.subject)
		out = append(out, t.affirmed())
	}
	if s.front == "" && s.helper == "did" && len(out) == 0 && startsWithName(s.subject, answerText{}) && len(strings.Fields(s.subject)) < 5 {
		out = append(out, "It was "+s.subject+" that "+strings.TrimRight(s.verb+" "+s.rest, " .")+".")
	}
	if len(out) == 0 {
		return ""
	}
	return out[random.IntN(len(out))]
}

// lowered has the first word of what is no name in small letters.
func lowered(phrase string) string {
	if phrase != "" && !startsWithName(phrase, answerText{}) {
		return strings.ToLower(phrase[:1]) + phrase[1:]
	}
	return phrase
}

// object returns the noun behind the verb of a statement, and what follows that.
func (s saying) object() (object, after string, ok bool) {
	if s.base == "" || s.helper != "did" || s.front != "" || strings.Contains(s.verb, " ") || stative[s.base] {
		return "", "", false
	}
	q := asked(strings.Fields(s.rest))
	n := 0
	for ; n < len(q); n++ {
		w := q.at(n)
		if prepositions[w] && w != "of" || relatives[w] || strings.HasSuffix(w, "ly") || conjunctions[w] && !q.capital(n+1) || verbs.isParticiple(w) && n > 0 && prepositions[q.at(n+1)] || w == "to" || w == "first" && n > 0 {
			break
		}
	}
	const most = 7
	if n == 0 || n > most || pronouns[q.at(0)] || determiners[q.at(0)] && n == 1 || strings.HasSuffix(q[n-1], ",") || !(determiners[q.at(0)] || q.capital(0) || q.number(0) || numeral.MatchString(q[0])) {
		return "", "", false
	}
	if n < len(q) && (relatives[q.at(n)] || q.at(n) == "to" || conjunctions[q.at(n)]) {
		return "", "", false
	}
	return q.text(0, n), q.text(n, len(q)), true
}

var stative = wordsOf("include contain comprise hold have become remain mean cost last resemble lack live die occur go begin start take serve return fail belong agree say believe claim argue think do get happen appear weigh age want refer come join marry meet")

// passive has the object of a statement as its subject.
func (s saying) passive() (saying, bool) {
	object, after, ok := s.object()
	if !ok || len(strings.Fields(s.subject)) > 6 || strings.Contains(s.subject, " that ") || numeral.MatchString(s.subject) {
		return s, false
	}
	verb := "was"
	a := answerText{text: strings.ToLower(object)}
	if a.count(object); a.plural || numeral.MatchString(object) && !single.MatchString(object) {
		verb = "were"
	}
	participle := participleOf(s.base, s.verb)
	return saying{subject: object, verb: verb, rest: participle + " by " + lowered(s.subject) + " " + after}, true
}

// exchanged has the two names of a statement in each other's place; empty where there are
// not two, or where it might be so as well.
func (s saying) exchanged() string {
	object, after, ok := s.object()
	q, o := asked(strings.Fields(s.subject)), asked(strings.Fields(object))
	if !ok || !q.capital(len(q)-1) || !o.capital(len(o)-1) || mutual[s.base] || strings.Contains(s.subject, " and ") {
		return ""
	}
	s.subject, s.rest = object, lowered(s.subject)+" "+after
	return s.affirmed()
}

var mutual = wordsOf("meet marry join fight face encounter border merge equal resemble play")

// kindOfAnswer says what an answer may be exchanged for.
func kindOfAnswer(a answerText) string {
	switch {
	case onlyYear.MatchString(a.text):
		return "year"
	case decade.MatchString(strings.TrimPrefix(a.text, "the ")), daily.MatchString(a.text), monthly.MatchString(a.text), phase.MatchString(a.text):
		return "time"
	case a.counted:
		return "number"
	case a.name:
		return "name"
	case a.plural:
		return "things"
	}
	return "thing"
}

var onlyYear = regexp.MustCompile(`^\d{4}(?:[-–]\d{2,4})?$`)

// wrongAnswers are statements with an answer of the same kind: another question's of the
// same text, and what else stands in that.
func (e *editor) wrongAnswers(d askedSeed, s saying, text string) []edit {
	right, _ := newAnswer(d.answer, text)
	kind := kindOfAnswer(right)
	if openEnded.MatchString(d.question) || kind == "name" && placed.MatchString(strings.TrimSuffix(" "+s.rest, right.text)) {
		return nil // of two places one may lie in the other
	}
	stems := contentStems(d.question + " " + d.answer)
	fits := func(other string) bool {
		a, ok := newAnswer(other, text)
		if !ok || kindOfAnswer(a) != kind || kind == "name" && a.plural != right.plural || wordsApart(text, d.answer, other) < 1 {
			return false
		}
		for stem := range contentStems(other) {
			if stems[stem] {
				return false
			}
		}
		return !strings.Contains(d.answer, other) && !strings.Contains(other, d.answer) && (kind == "number" || kind == "time" || kind == "year" || len(contentStems(other)) > 0)
	}
	var others, own []string
	ask := asked(strings.Fields(d.question))
	for _, o := range e.set.asked {
		if o.text == d.text && fits(o.answer) && (kind != "name" && kind != "thing" || ask.sort() == asked(strings.Fields(o.question)).sort()) {
			others = append(others, o.answer)
		}
	}
	var list []string
	switch kind {
	case "name":
		list = surface.Names(text)
	case "year":
		list = years.FindAllString(text, -1)
	case "number":
		list = amounts.FindAllString(text, -1)
	}
	for _, o := range list {
		if fits(o) && !ofNation.MatchString(o) && unicode.IsUpper([]rune(o)[0]) == (kind == "name") && strings.Count(o, " ") <= strings.Count(d.answer, " ")+1 {
			own = append(own, o)
		}
	}
	var out []edit
	for _, w := range []struct {
		kind string
		list []string
	}{{", other answer", others}, {", other of the text", own}} {
		const tries = 4
		for range min(tries, len(w.list)) {
			o := w.list[e.random.IntN(len(w.list))]
			if said, ok := statementOf(d.question, o, text); ok && said.affirmed() != s.affirmed() {
				out = append(out, edit{kind: w.kind, claim: said.affirmed()})
				break
			}
		}
	}
	return out
}

var (
	placed    = regexp.MustCompile(` (?:in|at|from|on|near) (?:the )?$`)
	ofNation  = regexp.MustCompile(`^\w+(?:an|ese|ish|ic)$`)
	openEnded = regexp.MustCompile(`(?i)\b(?:another|some|one|other|example|examples|also|include|includes|included|name an?|many different|kind|type|most)\b`)
	years     = regexp.MustCompile(`\b(?:1[0-9]|20)\d\d\b`)
	amounts   = regexp.MustCompile(`(?i)\b(?:\d[\d,]*(?:\.\d+)?(?: (?:million|billion|percent|miles|years|feet|km|metres|meters))?%?|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|forty|fifty|hundred)(?:\s|\b)`)
)

// sort is the word that a question asks with.
func (q asked) sort() string {
	for i := range q {
		if asks[q.at(i)] {
			return q.at(i)
		}
	}
	return ""
}

// wordsApart counts the words between two phrases of a text that one list does not join; 0:
// they stand in one.
func wordsApart(text, a, b string) int {
	i, j := strings.Index(text, a), strings.Index(text, b)
	if i < 0 || j < 0 {
		return 99
	}
	if i > j {
		i, j, a = j, i, b
	}
	if i+len(a) >= j {
		return 0
	}
	between := text[i+len(a) : j]
	if listed.MatchString(between) {
		return 0
	}
	return 1 + len(strings.Fields(between))
}

var listed = regexp.MustCompile(`^[\s]*(?:,|,? ?and|,? ?or|&|\()[^.;]{0,30}$`)

// sibling is a text of the same article that does not give the answer.
func (e *editor) sibling(d askedSeed) *seedText {
	if d.text.title == "" {
		return nil
	}
	var list []*seedText
	for _, t := range e.set.texts {
		if t != d.text && t.title == d.text.title && !strings.Contains(t.String(), d.answer) {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[e.random.IntN(len(list))]
}
