package local

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// maxLinks is how many sub-questions a chain has at most, the question itself
// included.
const maxLinks = 5

// chain cuts a question that names a thing by what is said of it into what is said,
// to be looked up first, and the question with the answer in its place: "the director
// of Jump for Glory", and "Who is the spouse of #1?". What is said may itself name a
// thing so. It returns nil where the grammar shows no such thing.
func chain(question string) []role.SubQuestion {
	if numbered.MatchString(question) {
		return nil // it has what would be taken for the place of an answer
	}
	words := split(question)
	var subs []role.SubQuestion
	for len(subs) < maxLinks-1 {
		at, ok := innermost(words)
		if !ok {
			break
		}
		inner := role.SubQuestion{Text: strings.TrimRight(join(words[at.start:at.end]), "?,;: "), Needs: needs(words[at.start:at.end])}
		rest := append(append([]word(nil), words[:at.start]...), placeholder(len(subs)+1, words[at.end-1]))
		rest = append(rest, words[at.end:]...)
		if !asksMore(rest) {
			break
		}
		subs, words = append(subs, inner), rest
	}
	if len(subs) == 0 {
		return nil
	}
	return append(subs, role.SubQuestion{Text: join(words), Needs: needs(words)})
}

var numbered = regexp.MustCompile(`#\d`)

// A word is one word of a question.
type word struct {
	text  string // without the marks about it
	lower string
	after string // the marks that follow it
	open  string // the marks before it
	slot  int    // the sub-question whose answer stands here, from 1; 0: it is a word
}

// name reports whether w is written as names are, or stands for one.
func (w word) name() bool {
	if w.slot > 0 {
		return true
	}
	r, _ := utf8.DecodeRuneInString(w.text)
	return unicode.IsUpper(r) || unicode.IsDigit(r)
}

// ends reports whether what w stands in ends with it.
func (w word) ends() bool { return strings.ContainsAny(w.after, ",;:.?!)") }

func (w word) possessive() bool {
	return strings.HasSuffix(w.lower, "'s") || strings.HasSuffix(w.lower, "’s") || strings.HasSuffix(w.lower, "s'")
}

// split returns the words of a text.
func split(text string) []word {
	var words []word
	for _, f := range strings.Fields(text) {
		core := strings.TrimLeft(f, `"“‘([{`)
		w := word{open: f[:len(f)-len(core)]}
		w.text = strings.TrimRight(core, `"”)]},;:?!`)
		if strings.HasSuffix(w.text, ".") && len(w.text) > 3 && !strings.Contains(w.text[:len(w.text)-1], ".") {
			w.text = w.text[:len(w.text)-1]
		}
		w.after = core[len(w.text):]
		w.lower = strings.ToLower(w.text)
		if w.text == "" {
			continue
		}
		words = append(words, w)
	}
	return words
}

// join returns words as they stood in their text, but for the marks after the last one.
func join(words []word) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.open + w.text)
		if i < len(words)-1 || strings.HasPrefix(w.after, "?") || strings.ContainsAny(w.after, `"”)`) {
			b.WriteString(w.after)
		}
	}
	return b.String()
}

// placeholder stands for the answer to sub-question n, from 1, where last ended.
func placeholder(n int, last word) word {
	text := fmt.Sprintf("#%d", n)
	return word{text: text, lower: text, after: strings.Trim(last.after, "\"”’"), slot: n}
}

// needs lists the sub-questions, by index, whose answers stand among words.
func needs(words []word) []int {
	var list []int
	for _, w := range words {
		if w.slot > 0 {
			list = append(list, w.slot-1)
		}
	}
	return list
}

// asksMore reports whether a question still asks something of what stands in it.
func asksMore(words []word) bool {
	for _, w := range words {
		if w.slot == 0 && !surface.Function(w.lower) && !empty[w.lower] {
			return true
		}
	}
	return false
}

// empty are words that ask nothing more of a thing than what it is.
var empty = set("name named called title term")

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// What the grammar of English questions goes by: closed classes of words, and the verbs
// whose form does not show that they are verbs.
var (
	determiners       = set("the a an its his her their")
	relatives         = set("where who whom whose which that")
	chainPrepositions = set("of in on at by for with from to into near as under during before after between along around against about over since until through within")
	auxiliaries       = set("is are was were be been being am has have had do does did can could will would shall should may might must")
	irregular         = set(`born held found made written sung known led won became become fell fought built broke taken took wrote sang ran stood began begun
	met gave given left lost sold bought taught caught grew flew drew drove rode rose spoke chose came went got put set cut shot wore
	lies sits plays stars belongs turns flows borders contains includes owns runs hosts holds releases starred`)
	// base are verbs as they stand after "did".
	base = set(`accept allow appear attend become begin belong border bring build buy call capture carry change choose close collapse come compete conquer contain create
	cross declare defeat destroy die dissolve do earn elect employ end enter establish export face fall fight finish flow form found gain get give go grow
	handle happen have help hold host include introduce invade issue join keep know land last lead leave live lose make marry mean meet merge move
	name occur offer open operate own pass pay perform play prepare produce publish receive recognize record refuse release remain represent retire return rise rule run say
	see sell send serve set share sign sing sit stand star start stay stop study take teach travel turn use visit vote want wear win work write`)
	inNames      = set("and und et y e de del di da van von der la le el")
	conjunctions = set("and or but when while because if")
)

// A stretch is words [start, end) of a question.
type stretch struct{ start, end int }

// innermost finds the last description of a question in which there is no other.
func innermost(words []word) (stretch, bool) {
	for i := len(words) - 1; i >= 0; i-- {
		for _, form := range []func([]word, int) (stretch, bool){relativeAt, zeroAt, ofAt, participleAt, possessiveAt, agentAt} {
			if at, ok := form(words, i); ok && telling(words[at.start:at.end]) && at.end-at.start > 1 && at.end-at.start < len(words) {
				return at, true
			}
		}
	}
	return stretch{}, false
}

// head returns where the noun phrase begins that ends before word i: "the small
// town". ok is false where there is none of lower-case words after a determiner.
func head(words []word, i int) (start int, ok bool) {
	for j := i - 1; j >= 0 && i-j <= 5; j-- {
		w := words[j]
		if w.ends() && j < i-1 {
			return 0, false
		}
		if determiners[w.lower] {
			return j, j < i-1 && w.lower == "the"
		}
		if w.slot > 0 || chainPrepositions[w.lower] && w.lower != "of" || auxiliaries[w.lower] || relatives[w.lower] || conjunctions[w.lower] {
			return 0, false
		}
	}
	return 0, false
}

// relativeAt: "the city where X was born", "the person who broke it", "the state in
// which X lies", "the man whose son it is".
func relativeAt(words []word, i int) (stretch, bool) {
	if !relatives[words[i].text] {
		return stretch{}, false
	}
	h := i
	if i > 0 && chainPrepositions[words[i-1].lower] && (words[i].lower == "which" || words[i].lower == "whom") {
		h = i - 1
	}
	if h == 0 {
		return stretch{}, false
	}
	start, ok := head(words, h)
	if !ok {
		return stretch{}, false
	}
	end := clauseEnd(words, i+1)
	return stretch{start, end}, end > i+1
}

// zeroAt: "the city Sarah Sorge was born in".
func zeroAt(words []word, i int) (stretch, bool) {
	if i == 0 || !words[i].name() || words[i-1].name() || words[i-1].ends() || chainPrepositions[words[i-1].lower] || determiners[words[i-1].lower] {
		if i == 0 || !determiners[words[i].lower] || words[i-1].name() || words[i-1].ends() || surface.Function(words[i-1].lower) {
			return stretch{}, false
		}
	}
	start, ok := head(words, i)
	if !ok || start == 0 || relatives[words[start-1].lower] {
		return stretch{}, false
	}
	j := i
	for j < len(words) && (words[j].name() || determiners[words[j].lower] || words[j].lower == "of") && !(words[j].ends()) {
		j++
	}
	if j >= len(words) || !verb(words[j]) {
		return stretch{}, false
	}
	return stretch{start, clauseEnd(words, i)}, true
}

// ofAt: "the director of Jump for Glory".
func ofAt(words []word, i int) (stretch, bool) {
	if i+1 >= len(words) || words[i].lower != "of" || allDigits(words[i+1].text) {
		return stretch{}, false
	}
	start, ok := head(words, i)
	if !ok || words[i-1].name() {
		return stretch{}, false
	}
	end := nameEnd(words, i+1)
	if end < len(words) && !words[end-1].ends() && words[end-1].slot == 0 && !surface.Function(words[end].lower) && !verb(words[end]) && !base[words[end].lower] {
		return stretch{}, false // of the English nobleman
	}
	return stretch{start, end}, end > i+1
}

// participleAt: "the country containing Nugegoda", "the artist known as X".
func participleAt(words []word, i int) (stretch, bool) {
	w := words[i]
	if i == 0 || w.name() || !strings.HasSuffix(w.lower, "ing") && !strings.HasSuffix(w.lower, "ed") && !irregular[w.lower] || words[i-1].name() {
		return stretch{}, false
	}
	start, ok := head(words, i)
	if !ok {
		return stretch{}, false
	}
	end := clauseEnd(words, i)
	return stretch{start, end}, end > i+1
}

// possessiveAt: "Corey Taylor's city of birth".
func possessiveAt(words []word, i int) (stretch, bool) {
	if !words[i].possessive() || !words[i].name() {
		return stretch{}, false
	}
	start := i
	for start > 0 && words[start-1].name() && !words[start-1].ends() {
		start--
	}
	end := i + 1
	for end < len(words) && end-i <= 3 && !words[end].name() && !surface.Function(words[end].lower) && !(end > i+1 && (verb(words[end]) || base[words[end].lower])) {
		end++
		if words[end-1].ends() {
			break
		}
	}
	if start > 0 && words[start-1].lower == "the" {
		start--
	}
	if end+1 < len(words) && !words[end-1].ends() && words[end].lower == "of" && (words[end+1].lower == "birth" || words[end+1].lower == "death" || words[end+1].lower == "origin") {
		end += 2
	}
	return stretch{start, end}, end > i+1
}

// agentAt: "the It'll Be Me singer".
func agentAt(words []word, i int) (stretch, bool) {
	if words[i].name() || !agent.MatchString(words[i].lower) || i < 2 || !words[i-1].name() {
		return stretch{}, false
	}
	start := i - 1
	for start > 0 && words[start-1].name() && !words[start-1].ends() {
		start--
	}
	if start > 0 && words[start-1].lower == "the" {
		start--
	}
	return stretch{start, i + 1}, true
}

// agent matches nouns that say what a name has to do with whom they mean.
var agent = regexp.MustCompile(`^(singer|director|author|writer|performer|composer|founder|creator|producer|birthplace|star|owner)s?$`)

// verb reports whether a word is a verb by its form.
func verb(w word) bool {
	return !w.name() && (auxiliaries[w.lower] || irregular[w.lower] || strings.HasSuffix(w.lower, "ed") && len(w.lower) > 4)
}

// nameEnd returns where the name ends that begins with word i; i, where none does. A
// name may begin with an article.
func nameEnd(words []word, i int) int {
	j := i
	for j < len(words) && determiners[words[j].lower] && words[j].slot == 0 {
		j++
	}
	if j >= len(words) || !words[j].name() && !strings.ContainsAny(words[j].open, `"“`) {
		return i
	}
	for j < len(words) {
		w := words[j]
		if w.slot > 0 {
			return j + 1
		}
		if w.possessive() {
			return i
		}
		next := j + 1
		if w.ends() && !(strings.HasPrefix(w.after, ",") && next < len(words) && words[next].name() && next+1 <= len(words)) {
			return next
		}
		if next >= len(words) {
			return next
		}
		if words[next].name() {
			j = next
			continue
		}
		// lower-case words between capitalised ones: "Jump for Glory", "Songs I Wrote with Amy"
		k := next
		for k < len(words) && k-next < 2 && (chainPrepositions[words[k].lower] || determiners[words[k].lower] || inNames[words[k].lower]) && !words[k].ends() {
			k++
		}
		if k > next && k < len(words) && words[k].name() && words[k].slot == 0 {
			j = k
			continue
		}
		return next
	}
	return j
}

// clauseEnd returns where the clause ends that begins with word i.
func clauseEnd(words []word, i int) int {
	verbs, bare := 0, supported(words[:i])
	for j := i; j < len(words); j++ {
		w := words[j]
		var prev word
		if j > i {
			prev = words[j-1]
		}
		switch {
		case verbs > 0 && bare && base[w.lower]:
			return j
		case verb(w) && verbs > 0 && !auxiliaries[prev.lower] && (auxiliaries[w.lower] && prev.lower != "to" && prev.lower != "not" || verb(prev) || !surface.Function(prev.lower) || prev.name()):
			return j
		case verb(w) || strings.HasSuffix(w.lower, "ing") && !w.name() || bare && base[w.lower]:
			verbs++
		case j > i && verbs > 0 && !w.name() && !surface.Function(w.lower) && (prev.name() || verb(prev) && !auxiliaries[prev.lower] && passive(words, j-1)):
			return j
		}
		if w.ends() && !(strings.HasPrefix(w.after, ",") && w.name() && j+1 < len(words) && words[j+1].name()) {
			return j + 1
		}
	}
	return len(words)
}

// passive reports whether an auxiliary stands before the participle at i.
func passive(words []word, i int) bool { return i > 0 && auxiliaries[words[i-1].lower] }

// supported reports whether words end in a verb that takes the base of another one:
// "When did", before "the country leave".
func supported(words []word) bool {
	for _, w := range words {
		if w.lower == "did" || w.lower == "does" || w.lower == "do" {
			return true
		}
	}
	return false
}

func allDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

// telling reports whether a description says enough to find what it describes: it has a
// name, or three words with content; and it asks nothing itself.
func telling(words []word) bool {
	content := 0
	for i, w := range words {
		switch {
		case i > 0 && (w.lower == "what" || w.lower == "whom" || w.lower == "when" && w.ends() || w.lower == "who" && w.ends() || w.lower == "where" && w.ends()):
			return false
		case w.lower == "which" && i > 0 && (chainPrepositions[words[i-1].lower] || verb(words[i-1])) && i+1 < len(words) && !words[i+1].name() && !determiners[words[i+1].lower]:
			return false
		case w.name() || w.open != "":
			content += 3
		case !surface.Function(w.lower):
			content++
		}
	}
	return content >= 3
}

// spelledOut returns a plan's sub-questions with what was asked before in the place of
// its answer: "Who is the spouse of the director of Jump for Glory?".
func spelledOut(plan role.Plan) []role.SubQuestion {
	subs := slices.Clone(plan.SubQuestions)
	for i := range subs {
		for _, n := range subs[i].Needs {
			subs[i].Text = strings.ReplaceAll(subs[i].Text, fmt.Sprintf("#%d", n+1), subs[n].Text)
		}
	}
	return subs
}
