package eval

import (
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/surface"
)

// A wordTable says which words may stand in the place of another, by their plain forms.
type wordTable struct {
	others map[string][]string
	plain  map[string]string // of each form that a word of the table takes
}

// otherWords makes a table of lines: where a line has a colon, what stands left of it
// against what stands right of it, else all its words against each other.
func otherWords(lines string) *wordTable {
	t := &wordTable{others: map[string][]string{}, plain: map[string]string{}}
	put := func(a, b string) {
		if a != b && !slices.Contains(t.others[a], b) {
			t.others[a] = append(t.others[a], b)
		}
	}
	for line := range strings.Lines(lines) {
		one, other, against := strings.Cut(line, ":")
		if !against {
			other = one
		}
		for _, a := range strings.Fields(one) {
			for _, b := range strings.Fields(other) {
				put(a, b)
				put(b, a)
			}
		}
	}
	for word := range t.others {
		for _, form := range formsOf(word) {
			if known, ok := t.plain[form]; !ok || len(word) > len(known) || len(word) == len(known) && word < known {
				t.plain[form] = word
			}
		}
	}
	return t
}

func formsOf(word string) []string {
	stem := strings.TrimSuffix(word, "e")
	return []string{word, word + "s", word + "es", word + "d", word + "ed", stem + "ing"}
}

// swap exchanges up to so many words of a text, each in the form in which it stands
// there, and says how many it did.
func (t *wordTable) swap(random *rand.Rand, text string, times int) (string, int) {
	done := 0
	for range times {
		words := spansOfWords(text)
		for _, i := range random.Perm(len(words)) {
			w := text[words[i][0]:words[i][1]]
			lower := strings.ToLower(w)
			others := t.others[t.plain[lower]]
			if len(others) == 0 || i > 0 && w != lower {
				continue
			}
			before := ""
			if i > 0 {
				before = strings.ToLower(text[words[i-1][0]:words[i-1][1]])
			}
			form := ""
			for _, k := range random.Perm(len(others)) {
				if form = t.inPlace(lower, others[k], before); form != "" {
					break
				}
			}
			if form == "" {
				continue
			}
			start := text[:words[i][0]]
			if a := articleFor(before, form); a != "" {
				start = text[:words[i-1][0]] + asCapital(text[words[i-1][0]:], a) + text[words[i-1][1]:words[i][0]]
			}
			text = start + asCapital(w, form) + text[words[i][1]:]
			done++
			break
		}
	}
	return text, done
}

// inflected puts a word into the form that form is of plain.
func inflected(plain, form, word string) (string, bool) {
	stem := func(w string) string { return strings.TrimSuffix(w, "e") }
	switch form {
	case plain:
		return word, true
	case plain + "s", plain + "es":
		return thirdOf(word), true
	case plain + "d", plain + "ed":
		return pastOf(verbs, word), true
	case stem(plain) + "ing":
		if doubled[word] || word == "begin" || word == "cut" || word == "win" {
			word += word[len(word)-1:]
		}
		return stem(word) + "ing", true
	}
	return "", false
}

// inPlace is another word in the form in which a word stands behind before; empty where
// it is not sure to be English.
func (t *wordTable) inPlace(word, other, before string) string {
	plain := t.plain[word]
	form, ok := inflected(plain, word, other)
	behindBeing := beings[before] || havings[before] || before == "be" || before == "been" || before == "being"
	switch {
	case !ok, named(plain, word, other, before), !verbs.knows(other) && form != other && form != thirdOf(other):
		return ""
	case strings.HasSuffix(form, "ing") && form != other && determiners[before]: // "the building"
		return ""
	case behindBeing:
		return participleOf(other, form)
	case verbs.irregularParticiple(other) && form == pastOf(verbs, other) && (before == "" || surface.Function(before) && !pronouns[before] || strings.HasSuffix(before, "ly")):
		return "" // "randomly chose"
	}
	return form
}

// named reports whether a word may be a noun or a verb, and another one is not both: then
// it stands only where a verb is sure to.
func named(plain, form, other, before string) bool {
	if !nounVerbs[plain] || nounVerbs[other] || form != plain && form != thirdOf(plain) {
		return false
	}
	return before != "to" && !modals[before] && !helpers[before]
}

// articleFor is the indefinite article that word takes; empty where before is none.
func articleFor(before, word string) string {
	if before != "a" && before != "an" {
		return ""
	}
	if strings.ContainsRune("aeiou", rune(word[0])) && !strings.HasPrefix(word, "use") && !strings.HasPrefix(word, "usual") && !strings.HasPrefix(word, "uni") {
		return "an"
	}
	return "a"
}

// asCapital gives a word the capital that like begins with.
func asCapital(like, word string) string {
	first, _ := utf8.DecodeRuneInString(like)
	r, size := utf8.DecodeRuneInString(word)
	if unicode.IsUpper(first) && r != utf8.RuneError {
		return string(unicode.ToUpper(r)) + word[size:]
	}
	return word
}

// spansOfWords returns where the words of a text are.
func spansOfWords(text string) [][2]int {
	var out [][2]int
	at := 0
	for _, w := range surface.Words(text) {
		at += strings.Index(text[at:], w)
		out = append(out, [2]int{at, at + len(w)})
		at += len(w)
	}
	return out
}

// alike are words that stand for one another in most sentences.
var alike = otherWords(`
increase raise
increased elevated
rise climb
decrease reduce
decline diminish
begin start commence
end finish conclude
purchase buy
big large
biggest largest
huge enormous
small little
fast quick rapid
important significant
key crucial vital
significance importance
assist aid
create produce
show demonstrate reveal
inform notify
declare proclaim
think believe
use utilize employ
needed required
get obtain
provide offer
supply furnish
retain maintain
stop halt cease
allow permit
allowed permitted
forbidden prohibited banned
prevent avoid
alter modify
improve enhance
select pick
try attempt
reply respond
explain clarify
find discover
locate situate
build construct erect
govern rule
examine investigate
verify confirm
happen occur
cause induce trigger
outcome result
objective aim
technique method
idea concept notion
area region zone
part portion
type kind sort
amount quantity
company firm corporation
worker employee
funds money
doctor physician
illness disease
drug medication
therapy treatment
infant baby
newborn neonate
malignancy cancer
tumor neoplasm
efficacy effectiveness
adverse unfavourable
children kids
people persons individuals
road street
country nation
film movie
song track
author writer
prize award
famous renowned prominent
rich wealthy
beautiful attractive
happy glad
sad unhappy
angry furious
difficult hard
easy simple
strange odd unusual
common widespread prevalent
rare uncommon
entire whole
enough sufficient adequate
mandatory compulsory obligatory
approximately roughly
nearly almost
annually yearly
worldwide globally
throughout across
although though
whereas while
however nevertheless
therefore thus hence
regarding concerning
also additionally
often frequently
usually typically generally
sometimes occasionally
mainly mostly primarily
quickly rapidly swiftly
main principal
several multiple numerous
various diverse
different distinct
similar comparable
identical same
additional further extra
former previous
error mistake
ability capacity capability
opportunity chance
rest remainder
border boundary frontier
example instance
freedom liberty
war conflict
folder directory
delete remove erase
insert add
send transmit
connect link
divide split
combine merge
repair fix
damage harm
destroy demolish
protect defend
attack assault
arrest detain
law legislation
lawyer attorney
prove establish
refuse decline
accept approve
criticize censure
praise commend
predict forecast
expect anticipate
evaluate assess
encourage promote
inhibit suppress
regulate control
expand broaden
focus concentrate
speak talk
teach instruct
pupil student
teacher instructor
customer client
revenue sales
currently presently now
previously formerly
soon shortly
recently lately
sibling brother
father dad
mother mom
participant member
soldier trooper
ship vessel
plane aircraft
trip journey voyage
picture image
feature characteristic attribute
expensive costly
cheap inexpensive
dangerous hazardous
effective efficacious
useful helpful
harmful detrimental
necessary essential
possible feasible
clear obvious evident
incorrect wrong
ensure guarantee
achieve accomplish
proceed continue
remain stay
carry transport
collect gather
notice observe
`)

// unlike are words whose exchange turns round what is said.
var unlike = otherWords(`
increase rise raise grow : decrease decline reduce shrink
more greater : less fewer
higher : lower
high : low
many : few
large big : small tiny
long : short
longer : shorter
early : late
earlier : later
before : after
first : last
begin start : end finish
open : close
include : exclude
including : excluding
allow permit : forbid prohibit
accept approve : reject refuse
agree : disagree
confirm : deny
support : oppose
succeed : fail
success : failure
win : lose
victory : defeat
present : absent
presence : absence
with : without
always : never
possible : impossible
able : unable
likely : unlikely
safe : dangerous
strong : weak
stronger : weaker
improve enhance : worsen impair
promote stimulate activate : inhibit suppress block
cause induce : prevent
enable : prevent
sensitive susceptible : resistant
required necessary : optional unnecessary
public : private
internal : external
inside : outside
buy purchase : sell
arrive : depart
join enter : leave
send : receive
build create : destroy
protect defend : attack
love : hate
happy : sad
rich : poor
hot warm : cold cool
old : new young
older : younger
ancient : modern
male : female
men : women
husband : wife
father : mother
brother : sister
son : daughter
north : south
northern : southern
east : west
eastern : western
left : right
upper : lower
day : night
urban : rural
domestic : foreign
local national : global international
major : minor
majority : minority
primary main : secondary
expensive costly : cheap
easy simple : difficult complex
full : empty
alive : dead
war : peace
legal : illegal
guilty : innocent
true correct : false incorrect
same : different
similar : different
common frequent : rare
often frequently usually : rarely seldom
temporary : permanent
profit : loss
hire : fire
add insert : remove delete
attach connect : detach disconnect
show : hide
visible : invisible
valid : invalid
active : inactive
acute : chronic
benign : malignant
healthy : sick
beneficial : harmful
effective : ineffective
useful : useless
significant : insignificant
direct : indirect
directly : indirectly
remember : forget
praise : criticize
encourage : discourage
positive : negative
continue : stop
maintain keep : abandon
best : worst
better : worse
best : worst
above : below
over : under
maximum : minimum
most : least
up : down
fast quick : slow
faster : slower
near : far
wide : narrow
deep : shallow
light : heavy dark
stable : unstable
consistent : inconsistent
advance : retreat
extend : shorten
expand : contract
attend : neglect
exceed : trail
superior : inferior
partly partially : fully
solely only : also
some : all
all every : no
`)

// contentStems returns the stems of a text's words of content.
func contentStems(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range surface.Words(text) {
		if lower := strings.ToLower(w); !surface.Function(lower) {
			set[stemOf(lower)] = true
		}
	}
	return set
}

func stemOf(lower string) string { return analysis.Stem(lower, "en") }
