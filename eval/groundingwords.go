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
			if len(others) == 0 {
				continue
			}
			form, ok := inflected(t.plain[lower], lower, others[random.IntN(len(others))])
			if !ok {
				continue
			}
			text = text[:words[i][0]] + asCapital(w, form) + text[words[i][1]:]
			done++
			break
		}
	}
	return text, done
}

// irregular are past forms that no rule makes.
var irregular = map[string]string{
	"rise": "rose", "fall": "fell", "grow": "grew", "shrink": "shrank", "lose": "lost", "win": "won", "buy": "bought", "sell": "sold", "begin": "began",
	"give": "gave", "take": "took", "make": "made", "get": "got", "keep": "kept", "leave": "left", "send": "sent", "cut": "cut", "let": "let", "find": "found",
	"go": "went", "hold": "held", "build": "built", "think": "thought", "say": "said", "tell": "told", "drop": "dropped", "stop": "stopped", "spend": "spent",
	"lead": "led", "meet": "met", "forget": "forgot", "hide": "hid", "seek": "sought", "speak": "spoke", "feel": "felt", "see": "saw", "hear": "heard",
	"fight": "fought", "beat": "beat", "choose": "chose", "plan": "planned", "come": "came", "throw": "threw", "teach": "taught", "split": "split",
}

// inflected puts a word into the form that form is of plain.
func inflected(plain, form, word string) (string, bool) {
	stem := func(w string) string { return strings.TrimSuffix(w, "e") }
	consonantY := strings.HasSuffix(word, "y") && len(word) > 2 && !strings.ContainsRune("aeiou", rune(word[len(word)-2]))
	switch form {
	case plain:
		return word, true
	case plain + "s", plain + "es":
		switch {
		case consonantY:
			return word[:len(word)-1] + "ies", true
		case strings.HasSuffix(word, "s"), strings.HasSuffix(word, "sh"), strings.HasSuffix(word, "ch"), strings.HasSuffix(word, "x"):
			return word + "es", true
		}
		return word + "s", true
	case plain + "d", plain + "ed":
		if past, ok := irregular[word]; ok {
			return past, true
		}
		if consonantY {
			return word[:len(word)-1] + "ied", true
		}
		return stem(word) + "ed", true
	case stem(plain) + "ing":
		return stem(word) + "ing", true
	}
	return "", false
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
increase rise grow raise
decrease decline drop fall reduce
begin start commence
end finish conclude
buy purchase acquire
big large huge
small little tiny
fast quick rapid
important significant key crucial vital
help assist support
make create produce
show demonstrate reveal indicate
inform notify
state declare
think believe
use utilize employ
need require
get obtain
provide supply offer
keep retain maintain
stop halt cease
allow permit
prevent avoid
change alter modify
improve enhance
choose select pick
discuss debate
plan intend
try attempt
answer reply respond
explain clarify
find discover identify
detect locate
examine investigate study
check verify confirm
happen occur
cause induce trigger
outcome result
goal objective aim
method approach technique
problem issue difficulty
idea concept
area region
part portion
type kind sort
amount quantity
company firm corporation
worker employee
job position
money funds
doctor physician
illness disease
medicine drug medication
therapy treatment
kids children
people persons individuals
home residence
car automobile
road street
city town
country nation
film movie
song track
author writer
win triumph
beat defeat
prize award
famous renowned prominent
rich wealthy
old elderly
new novel
beautiful attractive
happy glad
sad unhappy
angry furious
difficult hard tough
easy simple
strange odd unusual
common widespread prevalent
rare uncommon
entire whole complete
enough sufficient
about approximately around
nearly almost
also additionally
because since
often frequently
usually typically generally
sometimes occasionally
only merely solely
mainly mostly primarily largely
quickly rapidly
initial first
final last
main principal
several multiple numerous
different distinct
similar comparable
identical same
error mistake fault
trial test
data information
folder directory
delete remove erase
insert add
send transmit
connect link join
divide split separate
combine merge
close shut
repair fix
damage harm
destroy demolish
protect defend
attack assault
arrest detain
custody detention
law legislation
lawyer attorney
accusation allegation
prove establish
agree consent
refuse reject decline
accept approve
criticize condemn
praise commend
predict forecast
expect anticipate
estimate evaluate assess
associate correlate
involve entail
contain hold
represent denote
suggest propose recommend
encourage promote
inhibit suppress block
activate stimulate
regulate control modulate
develop evolve
expand extend broaden
focus concentrate
speak talk
teach instruct
pupil student
teacher instructor
customer client
earnings profit
revenue sales
currently presently now
previously formerly earlier
soon shortly
recently lately
brother sibling
father dad
mother mom
leader head chief
member participant
soldier troop
ship vessel
plane aircraft
trip journey
picture image photo
feature characteristic attribute
function role
expensive costly
cheap inexpensive
safe secure
dangerous hazardous
effective efficacious
useful helpful beneficial
harmful detrimental
necessary required
possible feasible
likely probable
clear obvious evident
true correct accurate
false incorrect wrong
ensure guarantee
achieve accomplish attain
continue proceed
stay remain
depart leave
move relocate
carry transport
collect gather
store save
seek search
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
