package eval

import (
	"slices"
	"strings"
)

// Verbs that a question may ask with, in their plain form: those that are hardly ever
// nouns, and those that often are.
var (
	plainVerbs = wordsOf(`beat call partner experiment back prime place accelerate accept accompany accomplish account achieve acquire activate adapt add address adopt advocate affect afford agree aid allow alter amend announce
anticipate appear apply appoint appreciate approve argue arise arrive ask assassinate assert assess assign assist associate assume attain attempt attend attract attribute award
ban be become befall begin believe belong borrow break breathe bring broadcast build buy calculate carry cease celebrate characterize choose cite claim classify coincide collect combine come
commit compare compete complete compose comprise compromise concede conclude conduct confer confirm connect conquer consider consist constitute construct consume contain continue contract contribute
convert cooperate correlate correspond create criticize cross cultivate decide declare decrease dedicate defeat defend define deliver demand demonstrate deny depart depend depict deploy
derive descend describe deserve destroy detect determine develop devote die differ differentiate diminish disagree disappear discover discredit discriminate discuss displace display dissolve distinguish distribute
divide do dominate donate draw drive eat educate elect eliminate elucidate emerge emigrate employ enable enact encounter encourage end enforce enhance enjoy enlarge ensure enter entitle establish evaluate evolve
examine exceed exclude exhibit exist expand expel expire explain explode explore express extend face fail fall favor favour feature fight finalize find finish flee float flow fly forbid force
form formulate fund gain gather generate get give go govern graduate grant grow happen have head help hold host house identify illustrate imagine impair impede implement imply import
impose improve include incorporate increase indicate induce influence inform inherit inhibit initiate inspire install instruct integrate intend interact interfere introduce invade invent invest investigate invite involve
join justify keep kill know lack last launch lead learn leave lend lie limit link list live locate lose lower maintain make manage manufacture marry matter mean meet merge migrate modify modulate moderate
mutate need negotiate normalise normalize observe obtain occupy occur offer omit open operate oppose organize originate overlap overthrow own participate pass pay perceive perform perish permit persuade play possess
practice practise praise precede predict predispose prefer prepare preserve prevail prevent proclaim produce prohibit promote propose protect protest prove provide publish purchase pursue put raise reach react read realize rebel
receive recognize recommend recover reduce refer reflect refuse regard register regulate reject rejoin relate release rely remain remove render replace represent require resemble reside resign resist resolve respond
restore restrict result retain retire retreat reveal revert rise rule run satisfy save say secede see seek seem select sell send separate serve settle share show shrink sign simplify sing solve speak specify
spend split spread stand start state stay stem stimulate stop store strengthen strive study submit subside succeed suffer suggest suit supply support suppose suppress surpass surrender surround survive sustain swim take teach tell tend
terminate think threaten throw trace train transform translate transmit transport travel treat trigger try turn underestimate undergo underlie underprescribe understand unite use utilize value vary visit vote wait want warn wear weigh
win wish withdraw witness work worsen write yield counteract intercept score finance broaden exhume pertain adhere donate curb apologize assist reoccupy relieve ease lessen recall compile prompt subscribe acknowledge ameliorate attenuate facilitate mediate translate exacerbate expose persist reproduce
commence halt elevate climb notify proclaim furnish reply clarify situate erect verify erase insert attach detach repair fix demolish assault arrest detain censure commend forecast broaden concentrate
instruct guarantee proceed gather notice trail attend neglect hire hide forget remember discourage abandon shorten advance disconnect`)

	nounVerbs = wordsOf(`account aid attempt award ban benefit bid broadcast cause challenge change charge claim close combat command compromise contract control cost cover cross damage date debate decrease defeat delay demand
design display dream drive end estimate exercise experience exhibit export face fall favor feature fight film finish flow focus force form fund gain grant guide harm head help hold host house hurt impact import increase
influence inflow interest judge label lack land launch lead limit link list live love lower market matter measure merit move name need object offer open order own pass pattern pay peak perform plan plant play practice
present process produce program progress promise protest purchase push question race raise range rank rate reach record reform regard register release remain report request rescue result return review reward rise rule run share shift show sign sound
space split sponsor spread stage stand start state stem stop store stress strike study suit supply support surrender survey swim switch talk target teach term test threat title total touch trace track trade train transfer transport travel treat trigger trust try turn use
value view visit voice vote wage wait walk want watch wish witness work yield`)
)

// irregularVerbs has, of each, the plain form, the past and the participle where it is
// another.
var irregularVerbs = strings.Fields(`arise/arose/arisen be/was/been beat/beat/beaten become/became/become begin/began/begun bind/bound bite/bit/bitten bleed/bled blow/blew/blown break/broke/broken breed/bred
bring/brought broadcast/broadcast build/built burn/burned buy/bought catch/caught choose/chose/chosen come/came/come cost/cost cut/cut deal/dealt dig/dug do/did/done draw/drew/drawn drink/drank/drunk
drive/drove/driven eat/ate/eaten fall/fell/fallen feed/fed feel/felt fight/fought find/found flee/fled fly/flew/flown forbid/forbade/forbidden forget/forgot/forgotten freeze/froze/frozen get/got give/gave/given
go/went/gone grow/grew/grown hang/hung have/had hear/heard hide/hid/hidden hit/hit hold/held hurt/hurt keep/kept know/knew/known lay/laid lead/led learn/learned leave/left lend/lent let/let lie/lay/lain
light/lit lose/lost make/made mean/meant meet/met overthrow/overthrew/overthrown pay/paid put/put quit/quit read/read ride/rode/ridden ring/rang/rung rise/rose/risen run/ran/run say/said see/saw/seen seek/sought
sell/sold send/sent set/set shake/shook/shaken shoot/shot show/showed/shown shrink/shrank/shrunk shut/shut sing/sang/sung sink/sank/sunk sit/sat sleep/slept speak/spoke/spoken spend/spent split/split
spread/spread spring/sprang/sprung stand/stood steal/stole/stolen stick/stuck strike/struck strive/strove/striven swear/swore/sworn sweep/swept swim/swam/swum swing/swung take/took/taken teach/taught tear/tore/torn tell/told
think/thought throw/threw/thrown undergo/underwent/undergone underlie/underlay/underlain understand/understood wear/wore/worn win/won wind/wound withdraw/withdrew/withdrawn write/wrote/written bear/bore/born rebuild/rebuilt`)

// doubled are verbs whose last letter is doubled before "ed".
var doubled = wordsOf("admit ban commit compel confer control drop equip expel infer occur omit permit plan prefer propel rebel refer stem step stop submit transfer transmit trap unplug")

// verbForms are the forms of the verbs that are known.
type verbForms struct {
	past       map[string]string // by the plain form, where it is irregular
	ofPast     map[string]string // plain forms, by the past
	ofThird    map[string]string // plain forms, by that of "she" and "it"
	participle map[string]bool
}

var verbs = func() *verbForms {
	f := &verbForms{past: map[string]string{}, ofPast: map[string]string{}, ofThird: map[string]string{}, participle: map[string]bool{}}
	for _, line := range irregularVerbs {
		forms := strings.Split(line, "/")
		f.past[forms[0]] = forms[1]
		f.ofPast[forms[1]] = forms[0]
		f.participle[forms[len(forms)-1]] = true
	}
	delete(f.ofPast, "was")
	for _, list := range []map[string]bool{plainVerbs, nounVerbs} {
		for v := range list {
			if past := pastOf(f, v); past != v {
				f.ofPast[past] = v
			}
			f.ofThird[thirdOf(v)] = v
		}
	}
	return f
}()

func consonantY(verb string) bool {
	return strings.HasSuffix(verb, "y") && len(verb) > 2 && !strings.ContainsRune("aeiou", rune(verb[len(verb)-2]))
}

func pastOf(f *verbForms, verb string) string {
	switch past := f.past[verb]; {
	case past != "":
		return past
	case strings.HasSuffix(verb, "e"):
		return verb + "d"
	case consonantY(verb):
		return verb[:len(verb)-1] + "ied"
	case doubled[verb]:
		return verb + verb[len(verb)-1:] + "ed"
	}
	return verb + "ed"
}

func thirdOf(verb string) string {
	switch {
	case verb == "be":
		return "is"
	case verb == "have":
		return "has"
	case consonantY(verb):
		return verb[:len(verb)-1] + "ies"
	case slices.ContainsFunc([]string{"s", "sh", "ch", "x", "z", "o"}, func(e string) bool { return strings.HasSuffix(verb, e) }):
		return verb + "es"
	}
	return verb + "s"
}

// participleOf is the participle of a verb whose past is given.
func participleOf(verb, past string) string {
	if past != pastOf(verbs, verb) {
		return past
	}
	for _, line := range irregularVerbs {
		if forms := strings.Split(line, "/"); forms[0] == verb {
			return forms[len(forms)-1]
		}
	}
	return past
}

// knows reports whether a plain form is that of a verb of the tables.
func (f *verbForms) knows(verb string) bool {
	return plainVerbs[verb] || nounVerbs[verb] || f.past[verb] != ""
}

// irregularParticiple reports whether a verb's participle is not its past.
func (f *verbForms) irregularParticiple(verb string) bool {
	past := pastOf(f, verb)
	return participleOf(verb, past) != past
}

// isParticiple reports whether a word in small letters is the participle of a verb.
func (f *verbForms) isParticiple(word string) bool {
	return f.participle[word] || len(word) > 4 && strings.HasSuffix(word, "ed") && !strings.HasSuffix(word, "eed") && !noParticiples[word] && !strings.Contains(word, "-")
}

var noParticiples = wordsOf("hundred sacred naked wicked rugged aged beloved limited united advanced increased reduced related-to gifted talented unprecedented")

// Words that say how the parts of a question hang together.
var (
	determiners  = wordsOf("a an the this that these those its their his her our my your some any each every no another both all many most several")
	prepositions = wordsOf(`of in on at for with by from to into onto over under above below between among during before after since until through throughout against about around near behind beside
beyond across along as than like without within upon toward towards off per via despite regarding concerning following prior due except outside inside`)
	pronouns     = wordsOf("it he she they we you i him her them us me itself himself herself themselves")
	conjunctions = wordsOf("and or but nor")
	relatives    = wordsOf("who whom whose which that where when why how what if whether because while")
	helpers      = wordsOf("do does did")
	modals       = wordsOf("can could will would may might must should shall")
	beings       = wordsOf("is are was were")
	havings      = wordsOf("has have had")

	// predicates are adjectives and participles that seldom stand before a noun, and what
	// comes before one.
	predicates = wordsOf(`necessary needed useful effective safe feasible reliable justified justifiable associated related linked correlated influenced affected involved superior inferior equivalent equal
similar identical different comparable harmful beneficial valuable suitable sufficient adequate appropriate applicable acceptable accurate predictive indicative aware responsible essential important possible
predictable identifiable sustainable viable able unable likely unlikely due present absent willing compliant satisfied ready required caused determined explained mediated moderated impaired compromised inherited
different efficacious cost-effective worthwhile warranted advantageous detrimental dangerous sensitive specific relevant critical crucial crude true reproducible undertreated ototoxic based worse better
really still always actually truly strongly significantly positively negatively inversely directly independently clinically economically socially more less as too made considered called known
higher lower noisier`)
)
