package ground

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// deniesOutright are the words that deny outright.
	deniesOutright = regexp.MustCompile(`(?i)\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|forbidden|prohibited|impossible)\b|n['’]t\b`)

	// deniesSomehow are words in whose neighbourhood a denial may say the same in other
	// words: "free" and "no fee", "accompanied" and "never alone" are told by none.
	deniesSomehow = regexp.MustCompile(`(?i)^(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without|only|except\w*|unless|but|rather|instead|free\w*|off|against|few|hardly|seldom|rare\w*|until|till|before|different\w*|distinct|out|away|lost|los[et]s?|missing|empty|nil|null|zero|void|otherwise|outside|beyond|default|always|all|alone|still|even|keep\w*|kept|remain\w*|unchanged|negative|` +
		`lack\w*|fail\w*|refus\w*|reject\w*|forbid\w*|prohibit\w*|exclu\w*|exempt\w*|imposs\w*|illegal\w*|ignor\w*|avoid\w*|prevent\w*|stop\w*|drop\w*|remov\w*|delet\w*|discard\w*|clos\w*|expir\w*|withdr\w*|den(?:y|ies|ied)|ban(?:s|ned)?|break\w*|broke\w*|cut|shut\w*|leak\w*|limit\w*|restrict\w*|unable|anonym\w*|immut\w*|separat\w*|apart|invalid\w*|indefinit\w*|independ\w*|un[a-z]{4,}|dis[a-z]{4,}|non|in(?:sufficient|complete|correct|valid|active|capable|visible|accessible|eligible)\w*|[a-z]{3,}less|.*n['’]t)$`)

	// softly are verbs and adjectives that deny what stands behind or before them.
	softly = wordSet(`forbidden prohibited prohibits forbids banned impossible illegal excluded excludes rejected rejects refused refuses denied denies unsuitable disallowed`)

	// outright are words that deny by themselves, wherever they stand.
	outright = wordSet("not no never none nobody nothing neither nor cannot without kein keine keinen nicht nie niemals ohne")
)

// A stretch is a clause: a part of a sentence with a verb of its own: words [from, to).
type stretch struct{ from, to int }

// clausesOf cuts a sentence into clauses: at semicolons, colons, dashes and brackets, and
// before what joins two clauses.
func clausesOf(p *piece) []stretch {
	var out []stretch
	from := 0
	for k := 1; k < len(p.words); k++ {
		if k > from && parting(p, from, k) {
			out = append(out, stretch{from, k})
			from = k
		}
	}
	return append(out, stretch{from, len(p.words)})
}

// parting reports whether a new clause begins at word k of a sentence, the last one having
// begun at from.
func parting(p *piece, from, k int) bool {
	gap := p.text[p.words[k-1].end:p.words[k].start]
	w := p.words[k].lower
	switch {
	case strings.ContainsAny(gap, ";:—–()") || strings.Contains(gap, " - "):
		return strings.Contains(gap, ";") || !being[w] && !having[w] && phrases[w]&modal == 0 // "(… ) is empty" goes on
	case joining[w]:
		return true
	case strings.Contains(gap, ",") && (outright[w] || deniesAlone(p, k)):
		return true
	case !strings.Contains(gap, ",") && w != "and" && w != "or" && w != "nor":
		return false
	case w == "which" || w == "who" || w == "where" || w == "whose" || w == "nor":
		return true
	}
	if (w == "and" || w == "or") && k+1 < len(p.words) && hasVerb(p.words[from:k]) && finiteWord.MatchString(p.words[k+1].lower) && !baseVerb.MatchString(p.words[k+1].lower) {
		return true // "and became"
	}
	const reach = 5 // words in which its verb stands
	return hasVerb(p.words[from:k]) && hasVerb(p.words[k:min(len(p.words), k+reach)])
}

// deniesAlone reports whether what begins at word k, up to the next comma, denies something
// and has no verb: "and the others not at all".
func deniesAlone(p *piece, k int) bool {
	to := k + 1
	for to < len(p.words) && !strings.ContainsAny(p.text[p.words[to-1].end:p.words[to].start], ",;:") {
		to++
	}
	return !hasVerb(p.words[k:to]) && slices.ContainsFunc(p.words[k:to], func(w token) bool { return outright[w.lower] })
}

// joining are words before which a clause ends whatever stands there.
var joining = wordSet("but whereas while although though because unless if since whenever when")

// hasVerb reports whether some words have a verb in a form that makes a clause.
func hasVerb(words []token) bool {
	return slices.ContainsFunc(words, func(w token) bool {
		return being[w.lower] || having[w.lower] || phrases[w.lower]&(modal|isPast|isNeed) != 0 || w.lower == "cannot" || w.lower == "do" || w.lower == "does" || strings.HasSuffix(w.lower, "s") && finiteWord.MatchString(w.lower)
	})
}

// clauseAt is the clause of a list that has word i.
func clauseAt(list []stretch, i int) stretch {
	for _, c := range list {
		if i < c.to {
			return c
		}
	}
	return stretch{}
}

// bounding are words behind a denial that make it say something else: "not before", "no
// more than", "not only".
var bounding = wordSet(`more less fewer longer later earlier older younger larger shorter higher lower over under above below beyond before after until till exceed exceeds
	exceeding else other than unless without except`)

// partial are words right behind a denial that leave a part of what it denies: "not all".
var partial = wordSet("yet only even any all every always just merely matter doubt least necessarily both many much often entirely fully completely quite each everybody everyone")

// denialsIn are the words of a clause that deny what it says, by index: where what they deny
// is no bound.
func denialsIn(p *piece, c stretch) []int {
	var out []int
	for i := c.from; i < c.to; i++ {
		if !deniesAt(p, i) || p.words[i].lower == "nor" && len(out) > 0 {
			continue
		}
		if !bounds(p.words[i+1 : c.to]) {
			out = append(out, i)
		}
	}
	return out
}

// bounds reports whether the words behind a denial make a bound of it, or take it back.
func bounds(behind []token) bool {
	const reach, content = 6, 2 // words in which it is bounded; and with content, in which it is taken back
	n := 0
	for i, w := range behind[:min(reach, len(behind))] {
		if bounding[w.lower] || n < content && saysStrongly(w) || i == 0 && partial[w.lower] {
			return true
		}
		n += int(oneIf(w.kind != small))
	}
	return false
}

// deniesAt reports whether the word at i denies, and is neither part of a title nor the "No."
// of a number.
func deniesAt(p *piece, i int) bool {
	w := p.words[i]
	if !outright[w.lower] && !strings.HasSuffix(w.lower, "n't") {
		return false
	}
	r, _ := utf8.DecodeRuneInString(w.raw)
	return (i == 0 || !unicode.IsUpper(r)) && !(w.lower == "no" && numberFollows(p, i))
}

// numberFollows reports whether the word at i is the "No." of a number.
func numberFollows(p *piece, i int) bool {
	return i+1 < len(p.words) && p.words[i+1].kind == number && strings.HasPrefix(p.text[p.words[i].end:], ".")
}

// headsOf are the words that the denial at i denies: the content word behind it in its
// clause, or where there is none that before it.
func headOf(p *piece, c stretch, i int) (token, bool) {
	for _, w := range p.words[i+1 : c.to] {
		if w.kind != small && !strings.HasSuffix(w.lower, "ly") {
			return w, true
		}
	}
	for k := i - 1; k >= c.from; k-- {
		if w := p.words[k]; w.kind != small {
			return w, true
		}
	}
	return token{}, false
}

// excuses reports whether a clause has a word by which it may deny what the other sentence
// denies in other words; a word that both have is none.
func excuses(p *piece, c stretch, other *piece) bool {
	for i := c.from; i < c.to; i++ {
		w := p.words[i]
		switch {
		case (w.lower == "instead" || w.lower == "rather") && !insteadOf(p, i):
		case staying[w.lower] && !changes.MatchString(other.text):
		case somehow(w.lower) && (outright[w.lower] || other.stems[w.stem] == 0):
			return true
		}
	}
	return false
}

// excusesHead is excuses, where both have the word that is denied: "before" and "all" do not
// take back a denial of that.
func excusesHead(p *piece, c stretch, other *piece) bool {
	for i := c.from; i < c.to; i++ {
		w := p.words[i]
		if saysStrongly(w) && (outright[w.lower] || strings.HasSuffix(w.lower, "n't") || other.stems[w.stem] == 0) || insteadOf(p, i) || w.lower == "but" && slices.ContainsFunc(p.words[:i], func(w token) bool { return wholly[w.lower] }) {
			return true
		}
	}
	return false
}

// wholly are words behind which "but" says what is left out.
var wholly = wordSet("all every any each none nothing nobody no everything everybody everyone")

// insteadOf reports whether "instead of" or "rather than" begins at word i.
func insteadOf(p *piece, i int) bool {
	if i+1 == len(p.words) {
		return false
	}
	w, next := p.words[i].lower, p.words[i+1].lower
	return w == "instead" && next == "of" || w == "rather" && next == "than"
}

// saysStrongly reports whether a word denies or restricts by its own meaning.
func saysStrongly(w token) bool {
	return somehow(w.lower) && !faintly[w.lower]
}

// somehow reports whether a lower-case word may deny something: no word that only begins as
// one that does, as "university".
func somehow(lower string) bool {
	return deniesSomehow.MatchString(lower) && !unlikeDenial.MatchString(lower)
}

var (
	unlikeDenial = regexp.MustCompile(`^(?:univers|united|unif|union|units?$|unique|under|display|discuss|district|distanc|disk|diseas|dishes|distrib|discov|disabilit|wireless)`)

	// staying are words that deny what changes something: who keeps a name is not renamed.
	staying = wordSet("keep keeps kept remain remains remained unchanged")
	changes = regexp.MustCompile(`(?i)\b(?:re\w{4,}|chang\w*|alter\w*|lose\w*|lost|mov\w*|left|leaves?)\b`)
)

// faintly are words that stand where something may be denied in other words, and seldom do
// it by themselves.
var faintly = wordSet("but rather instead against otherwise always all alone still even before until till keep keeps kept remain remains")

// denied says that one of a claim and the sentence that says it denies what the other does
// not; empty: they deny the same, or may do so in other words.
func (s *comparison) denied(part int, c *piece) string {
	b := s.bestOf(part)
	if b == nil || len(c.words) > mostWords || s.shareOfPlain(part, b) < leastSure {
		return ""
	}
	if s.reckoned(part, c) || untrue.MatchString(b.text) || inquires.MatchString(b.text) {
		return "" // those who did not finish are what is left of those who started
	}
	mine, theirs := clausesOf(c), clausesOf(b)
	if n := outrightIn(c); n > 0 && n%2 == 0 && outrightIn(b) == 0 {
		return "" // who has none cannot: who has one can
	}
	if permitted(c, mine, b, theirs) {
		return "one allows what the other forbids"
	}
	if w := headDenied(c, mine, b, theirs); w != "" && !s.deniedNext(part) {
		return fmt.Sprintf("it denies %q, which the source does not", w)
	}
	if w := headDenied(b, theirs, c, mine); w != "" {
		return fmt.Sprintf("the source denies %q, which it does not", w)
	}
	return s.deniedClause(part, c, mine, b, theirs)
}

// permitted reports whether of a claim and its source, in clauses with the same words, one
// says that something may be and the other that it may not.
func permitted(c *piece, mine []stretch, b *piece, theirs []stretch) bool {
	for _, m := range mine {
		a := allows(c, m)
		if a == 0 {
			continue
		}
		t, ok := likest(c, m, b, theirs)
		if ok && allows(b, t)*a < 0 && ratio(inBoth(c, m, b, t), contentIn(c, m)) >= sureOfName {
			return true
		}
	}
	return false
}

var (
	allowing   = wordSet("may can allowed permitted possible accepted allows permits")
	forbidding = wordSet("forbidden prohibited banned cannot impossible forbids prohibits can't")
	qualifying = wordSet("only unless except without if when whenever until before after than but still always other others more less all every")
)

// allows is above 0 where a clause says that something may be, below where that it may not,
// and 0 where it says neither, or with a condition.
func allows(p *piece, c stretch) int {
	found, sign := false, 1
	for i := c.from; i < c.to; i++ {
		w := p.words[i]
		switch {
		case qualifying[w.lower]:
			return 0
		case forbidding[w.lower]:
			found, sign = true, -sign
		case deniesAt(p, i):
			sign = -sign
		case allowing[w.lower]:
			found = true
		}
	}
	if !found || bounded(p, c) {
		return 0
	}
	return sign
}

// outrightIn counts the words of a sentence that deny.
func outrightIn(p *piece) int {
	n := 0
	for i := range p.words {
		n += int(oneIf(deniesAt(p, i) && p.words[i].lower != "nor"))
	}
	return n
}

// reckoned reports whether a number of a claim follows from others.
func (s *comparison) reckoned(part int, c *piece) bool {
	theirs := quantities(s.near[part][0].text)
	return slices.ContainsFunc(quantities(c.text), func(q quantity) bool {
		return !q.weak && !q.trivial() && !slices.ContainsFunc(theirs, q.same) && derived(c.text, q, [][]quantity{theirs})
	})
}

// headDenied is what one sentence denies, and nothing more, and the other says without a
// denial in the same clause.
func headDenied(p *piece, mine []stretch, other *piece, theirs []stretch) string {
	for _, c := range mine {
		list := denialsIn(p, c)
		if len(list) != 1 || ratio(sharedIn(p, c, other), contentIn(p, c)) < leastSure {
			continue
		}
		h, ok := headOf(p, c, list[0])
		if !ok || h.kind == name && p.words[list[0]].lower != "not" && p.words[list[0]].lower != "without" {
			continue // "neither Tesla nor Edison won": it is winning that is denied
		}
		found, free := false, p.words[list[0]].lower == "without" && excusesHead(other, stretch{0, len(other.words)}, p)
		for j, w := range other.words {
			if sameWord(w, h) {
				found = true
				free = free || excusesHead(other, clauseAt(theirs, j), p)
			}
		}
		if found && !free {
			return h.raw
		}
	}
	return ""
}

// sameWord reports whether two words are forms of one.
func sameWord(a, b token) bool {
	return a.stem == b.stem || a.kind == plain && b.kind == plain && lemma(a.lower) == lemma(b.lower)
}

// lemma is the form of a verb without what its tense adds.
func lemma(lower string) string {
	if base := irregular[lower]; base != "" {
		return base
	}
	return stemOf(lower)
}

// irregular are past forms that no ending tells.
var irregular = func() map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(`take took taken
give gave given
write wrote written
know knew known
show shown
see saw seen
do did done
go went gone
break broke broken
choose chose chosen
drive drove driven
eat ate eaten
fall fell fallen
forget forgot forgotten
grow grew grown
hide hid hidden
speak spoke spoken
steal stole stolen
wear wore worn
make made
pay paid
keep kept
hold held
send sent
leave left
lose lost
buy bought
bring brought
tell told
sell sold
run ran
begin began begun
become became
come came
get got gotten
lead led
meet met
rise rose risen
say said
stand stood
win won
beat beaten
lend lent
spend spent
build built
draw drew drawn
throw threw thrown
teach taught
catch caught
feel felt
sit sat
swim swam swum
sing sang sung
drink drank drunk
`) {
		forms := strings.Fields(line)
		for _, f := range forms {
			m[f] = stemOf(forms[0])
		}
	}
	return m
}()

func contentIn(p *piece, c stretch) int {
	n := 0
	for _, w := range p.words[c.from:c.to] {
		n += int(oneIf(w.kind != small))
	}
	return n
}

// sharedIn counts the content words of a clause that a sentence has.
func sharedIn(p *piece, c stretch, other *piece) int {
	n := 0
	for _, w := range p.words[c.from:c.to] {
		n += int(oneIf(w.kind != small && other.stems[w.stem] > 0))
	}
	return n
}

// deniedClause compares clauses that share most of their words, whatever is denied in them.
func (s *comparison) deniedClause(part int, c *piece, mine []stretch, b *piece, theirs []stretch) string {
	for _, m := range mine {
		list := denialsIn(c, m)
		if len(list) != 1 {
			continue
		}
		h, ok := headOf(c, m, list[0])
		if slices.ContainsFunc(c.words[list[0]:min(m.to, list[0]+2)], func(w token) bool { return obliging[w.lower] }) && !slices.ContainsFunc(theirs, func(t stretch) bool { return excusesNeed(b, t) }) {
			return "the source demands what it does not"
		}
		if ok && slices.ContainsFunc(b.words, func(w token) bool { return sameWord(w, h) }) || bounded(c, m) || c.words[list[0]].lower == "without" {
			continue // headDenied has seen it, or it is a condition
		}
		most := 0
		for _, t := range theirs {
			most = max(most, inBoth(c, m, b, t))
		}
		free := slices.ContainsFunc(theirs, func(t stretch) bool {
			n := 2 * inBoth(c, m, b, t)
			return n > most && excuses(b, t, c) || n == most && excusesHead(b, t, c) || deniesPlainly(b, t)
		})
		if !free && !s.deniedNext(part) {
			return "it denies what the source does not"
		}
	}
	if slices.ContainsFunc(mine, func(m stretch) bool { return excuses(c, m, b) }) {
		return ""
	}
	for _, t := range theirs {
		hard := len(denialsIn(b, t))
		soft := slices.ContainsFunc(b.words[t.from:t.to], func(w token) bool { return softly[w.lower] && c.stems[w.stem] == 0 })
		whole := stretch{0, len(c.words)}
		n := inBoth(c, whole, b, t)
		if bounded(b, t) {
			continue
		}
		if (hard == 1 || hard == 0 && soft) && ratio(n, contentIn(c, whole)) >= nearlyAll {
			return "the source denies what it does not"
		}
	}
	return ""
}

// bounded reports whether a clause bounds a quantity: who is not younger than four is four.
func bounded(p *piece, c stretch) bool {
	if c.from >= c.to {
		return false
	}
	text := p.text[p.words[c.from].start:p.words[c.to-1].end]
	return slices.ContainsFunc(quantities(text), func(q quantity) bool { return q.bound != exact })
}

// deniesPlainly reports whether a clause denies something that is no name or number: "not in
// Frankfurt" does not say in other words what a claim denies.
func deniesPlainly(p *piece, c stretch) bool {
	return slices.ContainsFunc(denialsIn(p, c), func(i int) bool {
		h, ok := headOf(p, c, i)
		return !ok || h.kind == plain
	})
}

// inBoth counts the content words of a clause that one of another sentence has.
func inBoth(p *piece, c stretch, other *piece, o stretch) int {
	n := 0
	for _, w := range p.words[c.from:c.to] {
		n += int(oneIf(w.kind != small && slices.ContainsFunc(other.words[o.from:o.to], func(x token) bool { return x.stem == w.stem })))
	}
	return n
}

// obliging are words that say that something has to be; where a claim denies it, "only"
// and "before" of its source deny nothing.
var obliging = wordSet("need needs have required require requires obliged necessary")

var notNeeded = regexp.MustCompile(`(?i)^(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without|except\w*|unless|free\w*|exempt\w*|optional\w*|voluntar\w*|un[a-z]{4,}|may|can|might|if|auto\w+|.*n['’]t)$`)

// excusesNeed reports whether a clause may say that something need not be.
func excusesNeed(p *piece, c stretch) bool {
	return slices.ContainsFunc(p.words[c.from:c.to], func(w token) bool { return notNeeded.MatchString(w.lower) })
}

// nearlyAll is the share of a claim's words that a clause of its source has when it is that
// which says it.
const nearlyAll = 0.7

// deniedNext reports whether another of the nearest sentences denies outright, and has some
// of the claim's words.
func (s *comparison) deniedNext(part int) bool {
	for i, p := range s.near[part][:min(nearest4, len(s.near[part]))] {
		least := sureOfName / 2
		if i > 1 {
			least = leastSure
		}
		if i > 0 && deniesOutright.MatchString(p.text) && s.shareOfPlain(part, p) >= least {
			return true
		}
	}
	return false
}

// inquires matches a sentence that says what is to be found out.
var inquires = regexp.MustCompile(`(?i)\b(?:whether|aim(?:s|ed)?|objectives?|purpose|goal|(?:to|we) (?:evaluate|examine|assess|determine|investigate|explore|identify|test|study|analyse|analyze|compare)d?)\b|\?\s*$`)

// clauseOf is the part of a sentence between its semicolons and colons that shares most
// with a claim.
func clauseOf(c, b *piece) string {
	best, most := b.text, -1
	for clause := range strings.FieldsFuncSeq(b.text, func(r rune) bool { return r == ';' || r == ':' }) {
		n := 0
		for t := range termSet(clause) {
			if c.stems[t] > 0 {
				n++
			}
		}
		if n > most {
			best, most = clause, n
		}
	}
	return best
}
